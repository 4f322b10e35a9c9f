"""Tests what README alone has: its length, the event that it follows through, and its make targets.

`test_docs` runs its blocks and follows its links, as it does for every page; `test_figures` has its figures.
"""

import json
from pathlib import Path

from processor.definitions.load import load, read_directory
from processor.plan.access import SlotRead
from processor.plan.planning import plan_alone
from processor.records.recorded_topics import read_records
from processor.settings.settings import Settings
from processor.trial.trial import Trial
from statestore import keys
from statestore.items import read_row, slot_name
from statestore.keys import Key
from tests.acceptance.pages import ROOT, blocks_of

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
TARGETS = ("demo", "test", "check", "bench", "soak")


def test_the_page_has_at_most_two_hundred_lines() -> None:
    assert len(README.splitlines()) <= 200


def test_the_steps_turn_the_event_of_the_page_into_its_rows_and_its_document(tmp_path: Path) -> None:
    recorded = next(block.text for block in blocks_of(PAGE, "sh") if "topics.jsonl" in block.text)
    lines = [line + "\n" for line in recorded.splitlines() if line.startswith("{")]
    (tmp_path / "topics.jsonl").write_text("".join(lines))
    plan = plan_alone(load(read_directory(ROOT / "examples" / "github")), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    records = list(read_records(str(tmp_path / "topics.jsonl")))
    trial.batch(records)
    change, document = blocks_of(PAGE, "json")
    assert change.text == lines[-1]
    assert document.text.encode() == (trial.published.messages[-1].value or b"") + b"\n"
    for record in records:
        assert _row_line(trial, record.topic, record.key) in README
    read = next(node.down for node in plan.products["user_profile"].nodes if node.join.name == "starred_repos")
    assert isinstance(read, SlotRead)
    query = plan.query("star", read, "octocat")
    assert query.entity is None
    assert blocks_of(PAGE, "text")[0].text == f"{query.slot} = '{query.value}'\n"
    assert {item["PK"] for item in trial.store.query(query)} == {"TABLE#user", "TABLE#star", "TABLE#pull_request"}


def test_the_page_names_every_target_that_a_reader_needs() -> None:
    assert [target for target in TARGETS if f"| `make {target}` |" not in README] == []


def _row_line(trial: Trial, entity: str, key: bytes | None) -> str:
    """The line of the table of rows for one row."""
    columns = trial.plan.entities[entity].entity.key
    parts = json.loads(key or b"{}")
    at = Key(f"TABLE#{entity}", keys.encode([parts[c] for c in columns]) or "")
    row = read_row(trial.store.get([at])[at])
    slots = {slot_name(slot): f"`{value}` " for slot, value in row.slots.items()}
    return f"| `{at.pk}` | `{at.sk}` | {slots.get('GSI_1', '')}| {slots.get('GSI_2', '')}|"
