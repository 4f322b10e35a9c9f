"""`statestore run --from ... --to ... --embedded --once` on real parts ends with the documents of `try` and of Postgres."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import read_records

Story = Any  # the class in conftest.py
ON_DYNAMODB = pytest.param(("--store", "dynamodb"), marks=pytest.mark.rest)


@pytest.fixture(scope="module", params=[(), ON_DYNAMODB], ids=["postgres", "dynamodb"])
def both(
    request: pytest.FixtureRequest, module_story: Story, statestore: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """The published messages that `try`, and `run` on embedded parts of its own, wrote for the same file. Without `--store` those
    parts have no DynamoDB API."""
    tried, ran = (tmp_path_factory.mktemp(name) / "published.jsonl" for name in ("try", "run"))
    words = [*module_story.define, "--from", module_story.file]
    assert main(["try", *words, "--to", str(tried)]) == 0
    words += ["--to", str(ran), "--embedded", "--once", "--batch", "120", "--local-dir", str(ran.parent / "none")]
    words += ["--wait-seconds", "0.2", "--settle-seconds", "0.2", *request.param]
    done = subprocess.run([*statestore, "run", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len({dict(record.headers)["statestore.batch"] for record in records(ran)}) >= 3
    assert ("starting kafka, postgres, dynamodb" in done.stderr) == bool(request.param)
    return tried, ran


def test_the_last_document_of_each_key_is_that_of_try(both: tuple[Path, Path]) -> None:
    tried, ran = (last(path) for path in both)
    assert len(tried) > 50
    assert {key: ran.get(key) for key in tried} == tried
    assert {key: value for key, value in ran.items() if value is not None} == {
        key: value for key, value in tried.items() if value is not None
    }


def test_the_last_document_of_each_key_is_the_answer_of_postgres(both: tuple[Path, Path], module_story: Story) -> None:
    for path in both:
        assert module_story.wrong(str(path)) == []


def test_dead_letters_have_the_keys_topics_and_reasons_of_try(both: tuple[Path, Path]) -> None:
    tried, ran = (letters(Path(f"{path}.rejects.jsonl")) for path in both)
    assert len(tried) >= 1
    assert ran == tried


def test_the_sequence_of_each_key_rises_by_one(both: tuple[Path, Path]) -> None:
    for path in both:
        highest: dict[bytes | None, int] = {}
        for record in read_records(str(path)):
            sequence = int(dict(record.headers)["statestore.sequence"] or b"")
            assert sequence == highest.get(record.key, 0) + 1
            highest[record.key] = sequence


def last(path: Path) -> dict[bytes | None, Any]:
    """The last document of each key; None for a deleted root."""
    return {r.key: None if r.value is None else canonical_json.loads(r.value) for r in records(path)}


def letters(path: Path) -> list[tuple[str, str, str]]:
    lines = [canonical_json.loads(line) for line in path.read_text().splitlines()]
    return sorted((str(line.get("key", line.get("key_base64"))), line["topic"], line["reason"]) for line in lines)


def records(path: Path) -> Iterator[Record]:
    return read_records(str(path))
