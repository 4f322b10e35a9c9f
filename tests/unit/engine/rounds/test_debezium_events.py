"""Captured records that are no change of a row, rows whose large values were not read, and tables whose columns change."""

import gzip
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.values.record import Change, Ignored, Record, Truncated
from processor.values.recorded_topics import read_records
from tests.unit.engine.protocol.decoding import entity
from tests.unit.engine.protocol.type_tables import SAMPLES
from tests.unit.engine.rounds.captured_topics import captured_rows, try_capture

ITEMS: dict[str, Any] = {
    "items": {
        "topic": "app.public.items",
        "key": ["id"],
        "columns": {"id": "int", "qty": "int", "code": "string", "note": "string"},
    }
}
COPY = ({"product": "copy", "root": "items"},)


def captured(file: str, topic: str) -> list[Record]:
    return [record for record in read_records(str(SAMPLES / f"{file}.jsonl.gz")) if record.topic == topic]


def ops(records: list[Record]) -> str:
    """The operations of records: `r` a snapshot row, `i` a row of an incremental snapshot."""
    texts = [(record.value or b"").replace(b'"snapshot":"incremental"', b'"op":"i"') for record in records]
    return "".join(text.partition(b'"op":"')[2][:1].decode() for text in texts)


def test_topics_that_no_entity_names_are_ignored_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = try_capture("postgres-events", tmp_path, capsys)
    assert outcome.documents["people"].keys() == {1, 2, 3}
    assert outcome.dead_letters == []
    kinds = {"app.transaction", "app.message", "app.public.signals", "__debezium-heartbeat.app"}
    assert outcome.unknown_topics.keys() == kinds | {"app.public.scratch", "app.public.marker"}
    assert sum(outcome.unknown_topics.values()) == outcome.counts["ignored"]
    counts = outcome.counts
    assert counts["read"] == counts["ignored"] + counts["applied"] + counts["superseded"]


@pytest.mark.parametrize("topic", ["app.transaction", "app.message", "__debezium-heartbeat.app", "app"])
def test_records_that_change_no_row_are_controls_also_in_the_topic_of_an_entity(topic: str) -> None:
    file = "mariadb-schema-changes" if topic == "app" else "postgres-events"
    records = captured(file, topic)
    assert len(records) >= 2
    for record in records:
        result = decode(record, entity("e", "id", "id int, name string"))
        assert isinstance(result, Ignored)
        assert result.why == "control"


def test_an_incremental_snapshot_repeats_rows_between_the_signals_of_its_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signals = [str(record.value) for record in captured("postgres-events", "app.public.signals")]
    for kind in ("execute-snapshot", "snapshot-window-open", "snapshot-window-close"):
        assert any(kind in signal for signal in signals)
    assert ops(captured("postgres-events", "app.public.users")) == "rrriiiu"
    outcome = try_capture("postgres-events", tmp_path, capsys, "--batch", "1")
    assert {key: without_orders(row) for key, row in outcome.documents["people"].items()} == users("postgres-events")
    assert outcome.counts["published"] == 3 + 4 + 1  # users, labels, the update; no repeated row


def test_a_truncate_stops_the_job_or_is_ignored() -> None:
    *inserts, truncate = captured("postgres-events", "app.public.scratch")
    scratch = entity("scratch", "id", "id int")
    assert [type(decode(record, scratch)) for record in inserts] == [Change, Change]
    assert isinstance(decode(truncate, scratch), Truncated)
    assert isinstance(decode(truncate, replace(scratch, truncate="ignore")), Ignored)


def test_a_row_that_arrives_first_without_its_large_value_has_null_until_the_value_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = try_capture(until_unhealed("postgres-toast", tmp_path), tmp_path, capsys).documents["people"]
    assert (before[1]["name"], before[1]["bio"]) == ("Ann T", None)
    assert before[7]["bio"].startswith("fresh ")  # a later full row
    assert (before[9]["name"], before[9]["bio"]) == ("Fay", None)  # a new key: the update did not read the bio
    after = try_capture("postgres-toast", tmp_path, capsys).documents["people"]
    assert {key: without_orders(row) for key, row in after.items()} == users("postgres-toast")


def test_with_replica_identity_full_a_first_record_has_its_large_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = try_capture(until_unhealed("postgres-toast-full", tmp_path), tmp_path, capsys).documents["people"]
    rows = users("postgres-toast")
    assert {key: without_orders(row) for key, row in documents.items()} == {key: rows[key] for key in (1, 7, 9)}


@pytest.mark.parametrize(
    ("file", "refused"), [("postgres-evolution", [7, 1, 8, 2]), ("postgres-evolution-schema", [7, 1, 2])]
)
def test_a_breach_of_the_contract_is_a_dead_letter_and_the_stream_goes_on(
    file: str, refused: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = try_capture(file, tmp_path, capsys, "--batch", "1", entities=ITEMS, products=COPY)
    assert [letter["key"].get("payload", letter["key"])["id"] for letter in outcome.dead_letters] == refused
    assert {letter["reason"].split(":")[0] for letter in outcome.dead_letters} == {"column 'qty'"}
    documents = outcome.documents["copy"]
    assert documents[1] == {"id": 1, "qty": 10, "code": "a", "note": "old"}
    assert documents[2] == {"id": 2, "qty": 20, "code": "b", "note": "old"}
    assert documents[3] == {"id": 3, "qty": 30, "code": "c", "note": "old", "colour": "blue"}
    assert documents[4] == {"id": 4, "qty": 40, "code": "d", "note": None, "colour": "green"}  # the column note is gone
    renamed = {"code": None, "note": None, "colour": "green"}
    assert documents[5] == renamed | {"id": 5, "qty": 50, "label": "e"}
    assert documents[6] == renamed | {"id": 6, "qty": 2**63 - 1, "label": "f"}  # int became bigint
    assert documents.keys() == {1, 2, 3, 4, 5, 6} | ({8} if 8 not in refused else set())


def test_dead_letters_of_a_changed_column_replay_under_a_declaration_that_takes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ITEMS["items"]["columns"] | {"qty": "json", "label": "string"}
    wider = {"items": ITEMS["items"] | {"columns": columns}}
    outcome = try_capture("postgres-evolution", tmp_path, capsys, entities=wider, products=COPY)
    assert outcome.dead_letters == []
    assert (outcome.documents["copy"][7]["qty"], outcome.documents["copy"][1]["qty"]) == ("many", "n10")
    assert outcome.documents["copy"][2]["label"] == "again"


def until_unhealed(file: str, folder: Path) -> Path:
    """The capture without its incremental snapshot."""
    part = folder / "part.jsonl"
    with gzip.open(SAMPLES / f"{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        part.write_text("".join(takewhile(lambda line: "unhealed" not in line, lines)))
    return part


def users(file: str) -> dict[Any, Any]:
    return {row["id"]: row for row in captured_rows(file)["users"]}


def without_orders(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "orders"}
