"""`statestore demo` and `tour`: what they print, and how they end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.cli import machine
from processor.cli.machine import DemoRun, kept_parts, print_step
from processor.cli.main import main
from processor.environment.programs.downloads import ShowProgress
from processor.environment.stores.kinds import KINDS
from processor.environment.stores.postgres import POSTGRES
from processor.tools.demo import live
from processor.tools.demo.tour import SAMPLE, readable_lines


def test_a_step_says_how_many_there_are(capsys: Any) -> None:
    print_step(3, "producing records")
    assert capsys.readouterr().err == "step 3 of 5: producing records\n"


SAME, DIFFERENT = "the runs published the same documents, byte for byte", "the runs published different documents"


@pytest.fixture
def third(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third kind of store."""
    monkeypatch.setitem(
        KINDS, "third", replace(POSTGRES, name="third", embedded=replace(POSTGRES.embedded, title="T3"))
    )


@pytest.mark.usefixtures("third")
@pytest.mark.parametrize("odd", [*KINDS, "third"])
@pytest.mark.parametrize(
    ("documents", "wrong", "status", "says"),
    [
        ({b"1": b"{}", b"2": None}, [], 0, SAME),
        ({b"1": b"{}"}, [], 0, SAME),
        ({b"1": b"{}"}, ["1"], 1, SAME),
        ({b"1": b"{} "}, [], 1, DIFFERENT),
        ({b"1": b"{}", b"3": b"{}"}, [], 1, DIFFERENT),
        ({}, [], 1, DIFFERENT),
    ],
)
def test_the_runs_on_all_stores_must_publish_the_same_bytes_and_the_sql_answer(
    documents: dict[bytes, bytes | None],
    wrong: list[str],
    status: int,
    says: str,
    odd: str,
    capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = {name: DemoRun(documents={b"1": b"{}"}, wrong=[], lines=[f"of {name}"]) for name in KINDS}
    made = usual | {odd: DemoRun(documents=documents, wrong=wrong, lines=[f"of {odd}"])}
    monkeypatch.setattr(machine, "_run_on", lambda store, recorded, parts, follow: made[store])
    assert main(["demo"]) == status
    shown = capsys.readouterr()
    assert shown.out.splitlines()[: 2 * len(KINDS) + 1] == [
        *(line for name in KINDS for line in ("", f"of {name}")),
        says,
    ]
    titles = (kind.embedded.title for kind in KINDS.values())
    assert "".join(f"the table is in {title}\n" for title in titles) in shown.err
    assert ("differs" in shown.err) == bool(status)


@pytest.mark.usefixtures("third")
@pytest.mark.parametrize("store", [*KINDS, "third"])
def test_the_demo_on_one_store_compares_no_runs(store: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {store: DemoRun(documents={b"1": b"{}"}, wrong=[], lines=["of one"])}
    monkeypatch.setattr(machine, "_run_on", lambda store, recorded, parts, follow: made[store])
    assert main(["demo", "--store", store]) == 0
    assert "the runs" not in capsys.readouterr().out


def test_a_demo_with_the_console_keeps_its_parts_and_says_how_to_remove_them(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, Any]] = []

    def run_on(store: str, _: Any, parts: Any, follow: bool) -> DemoRun:
        opened.append((store, parts))
        return DemoRun(documents={b"1": b"{}"}, wrong=[], lines=["of Postgres"])

    monkeypatch.setattr(machine, "_run_on", run_on)
    monkeypatch.setattr(machine, "start_kept_console", lambda store: f"http://127.0.0.1:8290/of/{store}")
    assert main(["demo", "--console"]) == 0
    assert opened == [("postgres", kept_parts)]
    said = capsys.readouterr().out
    assert "the console over this run is at http://127.0.0.1:8290/of/postgres/; " in said
    assert "local down --dir .statestore/demo` removes all" in said


@pytest.mark.parametrize(
    ("flags", "store"), [([], "postgres"), (["--store", "dynamodb"], "dynamodb"), (["--store", "postgres"], "postgres")]
)
def test_the_live_demo_has_its_table_in_postgres_unless_a_flag_names_moto(
    flags: list[str], store: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(where: str, _: ShowProgress) -> tuple[int, list[str], int]:
        return 1, [] if where == store else ["1"], 0

    monkeypatch.setattr(live, "run_live_demo", run)
    assert main(["demo", "--live", *flags]) == 0
    assert "1 documents equal the SELECT, 0 dead letters" in capsys.readouterr().out


def test_a_document_has_a_line_for_each_member_and_ends_early_if_it_is_long() -> None:
    assert list(readable_lines({"name": "é", "stars": [1]})) == [
        "     {",
        '       "name": "é",',
        '       "stars": [',
        "         1",
        "       ]",
        "     }",
    ]
    *_, last = readable_lines(list(range(100)))
    assert last == "     ... 62 more lines"


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
