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


def test_there_are_cases_of_connectors_and_of_joins() -> None:
    assert {case.parent.name for case in CASES} == {"cdc", "joins"}
