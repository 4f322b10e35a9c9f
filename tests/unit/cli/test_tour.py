"""`statestore tour`, and the sample that the wheel brings."""

from pathlib import Path
from typing import Any

from processor.cli.main import main
from processor.tools.demo.tour import SAMPLE

EXAMPLE = Path(__file__).parents[3] / "examples" / "github"


def test_the_tour_ends_with_the_changed_document(capsys: Any) -> None:
    assert main(["tour"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == (
        '  starred_repos: [{"owner":"acme","name":"tool","description":"A better tool"}]'
    )
    assert shown.err == "next: `statestore tour --copy DIR` copies the files, for you to change\n"


def test_the_copied_sample_runs_through_try(tmp_path: Path, capsys: Any) -> None:
    copy = tmp_path / "mine"
    assert main(["tour", "--copy", str(copy)]) == 0
    assert capsys.readouterr().err == f"next: `statestore try --definitions {copy} --from {copy}/topics.jsonl`\n"
    assert main(["try", "--definitions", str(copy), "--from", str(copy / "topics.jsonl"), "--to", "/dev/null"]) == 0
    assert main(["tour", "--copy", str(copy)]) == 1
    assert "exists already: give --copy the name of a new directory" in capsys.readouterr().err


def test_the_definitions_of_the_sample_are_those_of_the_example() -> None:
    for name in ("entities.yaml", "user_profile.yaml"):
        assert (SAMPLE / name).read_bytes() == (EXAMPLE / name).read_bytes()
