"""Values of the source that a declared type cannot hold: a dead letter, or null where the entity says so."""

import json
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.decode import compare_columns, decode, dedupe
from processor.engine.rounds.decoding import shown_keys
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter
from processor.values.entity import Entity, parse_type
from processor.values.record import UNAVAILABLE, Change, Record, Rejected

COLUMNS = {
    "id": "int", "day": "date", "at": "timestamp", "us": "timestamp(us)", "ns": "timestamp(ns)", "ratio": "float",
    "price": "decimal(12,2)", "size": "int", "name": "string", "times": "timestamp[]", "paid": "bool",
}  # fmt: skip
VALUES: list[tuple[str, Any]] = [
    ("day", "infinity"), ("day", "-infinity"), ("day", "0000-00-00"), ("day", "2026-00-00"), ("day", "2026-02-30"),
    ("day", "-0043-03-15Z"), ("day", "0044-03-15 BC"), ("day", "10000-01-01"), ("day", 100_000_000), ("day", -2147472692),
    ("at", "infinity"), ("at", "-infinity"), ("at", "0000-00-00 00:00:00"), ("at", "-0043-03-15T12:00:00.000000Z"),
    ("at", "0044-03-15 12:00:00 BC"), ("at", "+294247-01-10T04:00:25.2Z"), ("at", "0001-01-01T00:00:00+01:00"),
    ("us", 9223372036825200000), ("us", -9223372036832400000), ("ns", 2**63 - 1), ("ns", -(2**63)),
    ("ratio", "NaN"), ("ratio", "Infinity"), ("ratio", "-Infinity"), ("ratio", 10**400),
    ("price", "NaN"), ("price", 10**130), ("size", 10**39), ("times", ["2026-01-01T00:00:00Z", "infinity"]),
]  # fmt: skip
"""Each column with a value that its type cannot hold."""
OTHERS: list[tuple[str, Any]] = [
    ("day", "soon"), ("day", True), ("at", "2026-13"), ("at", []), ("ratio", "x"), ("ratio", {}), ("price", "1,5"),
    ("size", "7"), ("size", 1.5), ("name", 7), ("paid", "maybe"), ("times", "x"), ("at", 17),
]  # fmt: skip
"""Each column with a value of another type."""


def table(**words: Any) -> Entity:
    columns = {name: parse_type(text) for name, text in COLUMNS.items()}
    return Entity(name="item", topic="item", key=("id",), columns=columns, **words)


def record(offset: int = 0, /, **row: Any) -> Record:
    row = {"id": 7, **row}
    value = json.dumps({"op": "c", "before": None, "after": row}).encode()
    return Record(topic="item", partition=0, offset=offset, key=json.dumps({"id": row["id"]}).encode(), value=value)


def changed(of: Record, entity: Entity) -> Change:
    result = decode(of, entity)
    assert isinstance(result, Change), result
    assert result.row is not None
    return result


@pytest.mark.parametrize(("column", "value"), VALUES)
def test_it_is_a_dead_letter_or_null_where_the_entity_says_so(column: str, value: Any) -> None:
    given = record(**{column: value, "name": "Ann"})
    for refusing in (
        table(),
        table(unrepresentable="refuse"),
        table(unrepresentable={"paid": "null", column: "refuse"}),
    ):
        assert isinstance(decode(given, refusing), Rejected)
    for allowing in (table(unrepresentable="null"), table(unrepresentable={column: "null"})):
        change = changed(given, allowing)
        assert change.row is not None
        assert (change.row[column], change.row["name"], change.nulled) == (None, "Ann", (column,))
        assert shown_keys(given, allowing) == {(7,)}
        compared = compare_columns(given, allowing)
        assert compared is not None
        assert compared.refused == ()


@pytest.mark.parametrize(("column", "value"), OTHERS)
def test_a_value_of_another_type_stays_a_dead_letter(column: str, value: Any) -> None:
    result = decode(record(**{column: value}), table(unrepresentable="null"))
    assert isinstance(result, Rejected)
    assert f"column '{column}'" in result.reason


def test_several_columns_of_a_record_become_null_and_a_record_without_them_names_none() -> None:
    entity = table(unrepresentable="null")
    change = changed(record(day="infinity", at="-infinity", ratio="NaN", size=3), entity)
    assert set(change.nulled) == {"day", "at", "ratio"}
    assert changed(record(day="2026-01-01", at=None), entity).nulled == ()


def test_a_key_is_never_null() -> None:
    columns = {"day": parse_type("date"), "name": parse_type("string")}
    entity = Entity(name="item", topic="item", key=("day",), columns=columns, unrepresentable="null")
    assert not entity.nulls("day")
    value = b'{"op":"c","before":null,"after":{"day":"infinity","name":"Ann"}}'
    result = decode(Record(topic="item", partition=0, offset=0, key=None, value=value), entity)
    assert isinstance(result, Rejected)


def test_null_in_a_column_without_nulls_is_the_value_that_the_source_has_and_not_one_that_it_did_not_send() -> None:
    entity = table(unrepresentable="null", not_null=frozenset({"at", "day"}))
    row = changed(record(at="infinity", day=None), entity).row
    assert row is not None
    assert (row["at"], row["day"]) == (None, UNAVAILABLE)


def test_a_later_value_counts_and_a_value_that_was_not_sent_keeps_the_null() -> None:
    entity = table(unrepresentable="null")
    first, second = record(0, at="infinity"), record(1, at="__debezium_unavailable_value", name="Eve")
    (net,) = dedupe([changed(first, entity), changed(second, entity)])
    assert net.change.row is not None
    assert (net.change.row["at"], net.change.row["name"]) == (None, "Eve")
    (net,) = dedupe([changed(first, entity), changed(record(1, at="2026-01-01T00:00:00Z"), entity)])
    assert net.change.row is not None
    assert net.change.row["at"] == "2026-01-01T00:00:00Z"


DEFINITIONS = {
    "entities.yaml": "item: {key: [id], columns: {id: int, at: timestamp}, unrepresentable: {at: null}}",
    "items.yaml": "{product: items, root: item}",
}


def test_a_job_counts_them_by_column_in_records_and_in_replayed_letters() -> None:
    trial = Trial(plan=plan_alone(load(DEFINITIONS), 3), settings=Settings())
    trial.batch([record(n, id=n, at="infinity" if n else "2026-01-01T00:00:00Z") for n in range(3)])
    assert trial.tally["nulled: item.at"] == 2
    documents = [json.loads(message.value or b"") for message in trial.published.messages]
    assert [one["at"] for one in documents] == ["2026-01-01T00:00:00Z", None, None]
    letter = DeadLetter(
        rejected=Rejected(record=record(3, id=3, at="-infinity"), reason="years", entity="item"), kept_since=0.0
    )
    assert [one.outcome for one in trial.driver.replay([letter])] == ["applied"]
    assert trial.tally["nulled: item.at"] == 3
