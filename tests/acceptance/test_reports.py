"""Cases from public reports: small definitions and recorded topics, the last document of each key, and the dead letters that must
appear. `expected.jsonl` of a case holds both; `args` holds further flags of `statestore try`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main

REPORTS = Path(__file__).parents[1] / "data" / "reports"
CASES = sorted(path.parent for path in REPORTS.glob("*/*/expected.jsonl"))


def lines(path: Path) -> list[dict[str, Any]]:
    """The JSON lines of a file; numbers compare as doubles. None of a file that is not there."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def last_documents(messages: list[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    return {(one["topic"], json.dumps(one["key"], sort_keys=True)): one["value"] for one in messages}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_the_last_documents_and_the_dead_letters_of_a_reported_case_are_right(case: Path, tmp_path: Path) -> None:
    published, rejected = tmp_path / "out.jsonl", tmp_path / "rejected.jsonl"
    args = (case / "args").read_text().split() if (case / "args").exists() else []
    files = ["--from", str(case / "in.jsonl"), "--to", str(published), "--rejects", str(rejected)]
    assert main(["try", "--definitions", str(case), *files, *args]) == 0
    expected = lines(case / "expected.jsonl")
    assert last_documents(lines(published)) == last_documents([one for one in expected if "reject" not in one])
    letters = {(one["topic"], one["offset"]): one["reason"] for one in lines(rejected)}
    wanted = [one["reject"] for one in expected if "reject" in one]
    assert sorted(offset for _, offset in letters) == sorted(one["offset"] for one in wanted)
    for one in wanted:
        found = [reason for (topic, offset), reason in letters.items() if offset == one["offset"]]
        assert any(re.search(one.get("match", ""), reason) for reason in found), (one, found)


@pytest.mark.rest
def test_the_last_rows_of_a_parent_with_30_000_children_are_the_last_and_all_count(tmp_path: Path) -> None:
    case, published, file = REPORTS / "joins" / "50-hot-parent", tmp_path / "out.jsonl", tmp_path / "in.jsonl"
    rows = [{"id": n, "acc_id": 1, "at": n * 7_919 % 30_000, "text": "t"} for n in range(30_000)]
    given = [{"topic": "acc", "key": {"id": 1}, "value": {"id": 1, "name": "a"}}]
    given += [{"topic": "ev", "key": {"id": row["id"]}, "value": row} for row in rows]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in given))
    assert (
        main(["try", "--definitions", str(case), "--from", str(file), "--to", str(published), "--batch", "10000"]) == 0
    )
    last = [{"id": n} for n in sorted(range(30_000), key=lambda n: -(n * 7_919 % 30_000))[:3]]
    assert lines(published)[-1]["value"] == {"id": 1, "name": "a", "last": last, "last_total": 30_000}


def test_there_are_cases_of_connectors_and_of_joins() -> None:
    assert {case.parent.name for case in CASES} == {"cdc", "joins"}
