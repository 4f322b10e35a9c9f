"""What every kind of envelope promises: the same changes of a table give the same rows, whatever kind says them."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from processor.language.definitions.json_schemas import entities_schema
from processor.values.entity import Entity
from processor.values.envelopes.kind import Envelope, RowImage
from processor.values.envelopes.kinds import ENVELOPES, FORMATS, kind_of, read_image, row_value
from processor.values.record import Change, Ignored, Rejected, Truncated
from processor.values.source_transaction import SourceTransaction
from tests.unit.engine.protocol.decoding import decoded, entity
from tests.unit.values.envelopes.samples import SAMPLES, Samples

PAGE = Path(__file__).parents[4] / "docs" / "definitions.md"
SOURCES = PAGE.with_name("debezium.md")
ITEM = entity(
    "item",
    "id",
    "id int, name string, big int, exact decimal, amount decimal(12,2), data string, day date, at timestamp, ms timestamp(ms), "
    "us timestamp(us), ns timestamp(ns), j json, tags string[]",
)
ROW: dict[str, Any] = {
    "id": 7,
    "name": "Ann",
    "big": 2**63 - 1,
    "exact": "12345678901234567890123456789012345678",
    "amount": "12.34",
    "data": b64encode(b"\x00\xff").decode(),
    "day": "2026-11-20",
    "at": "2026-11-20T22:38:37.758449Z",
    "ms": 1795214317758,
    "us": 1795214317758449,
    "ns": 1795214317758449000,
    "j": {"a": [1.5]},
    "tags": ["x", None],
}
STORED = {
    **ROW,
    "exact": Decimal(ROW["exact"]),
    "amount": Decimal("12.34"),
    "ms": "2026-11-20T22:38:37.758Z",
    "us": "2026-11-20T22:38:37.758449Z",
    "ns": "2026-11-20T22:38:37.758449Z",
    "j": {"a": [Decimal("1.5")]},
}
KEY = {"id": 7}
ALL = pytest.mark.parametrize("kind", ENVELOPES, ids=FORMATS)


def _changes(kind: Envelope, value: Any, table: Entity = ITEM, key: Any = KEY) -> Iterator[Any]:
    """What the value says to an entity that pins the kind, and to another; with the envelope of a schema, and without."""
    flags = SAMPLES[kind.name].flags
    for pinned in (kind.name,) if flags else (None, kind.name):
        for given in (value, {"schema": None, "payload": value}):
            yield decoded(replace(table, format=pinned, decimals="text", deleted=flags), key, given)


def _rows(kind: Envelope, value: Any, table: Entity = ITEM, key: Any = KEY) -> Any:
    """The row that the value gives in every way."""
    found = list(_changes(kind, value, table, key))
    assert all(isinstance(one, Change) for one in found), found
    assert len({json.dumps(one.row, default=str) for one in found}) == 1
    return None if found[0].row is None else dict(found[0].row)


@ALL
def test_a_kind_has_samples(kind: Envelope) -> None:
    assert isinstance(SAMPLES[kind.name], Samples)


@ALL
def test_an_insert_and_a_snapshot_give_every_value_exactly(kind: Envelope) -> None:
    samples = SAMPLES[kind.name]
    assert _rows(kind, samples.insert(ROW)) == STORED
    assert _rows(kind, samples.snapshot(ROW)) == STORED


@ALL
def test_an_update_gives_the_new_row(kind: Envelope) -> None:
    assert _rows(kind, SAMPLES[kind.name].update({**ROW, "name": "Bo"}, ROW)) == STORED


@ALL
def test_nulls_stay_nulls(kind: Envelope) -> None:
    nulls = KEY | dict.fromkeys(set(ROW) - {"id"})
    assert _rows(kind, SAMPLES[kind.name].insert(nulls)) == nulls


@ALL
def test_absent_columns_are_null_and_named(kind: Envelope) -> None:
    value = SAMPLES[kind.name].insert({"id": 7, "name": "Ann"})
    assert _rows(kind, value) == dict.fromkeys(ROW) | {"id": 7, "name": "Ann"}
    for one in _changes(kind, value):
        assert one.absent is not None
        assert set(one.absent.columns) == set(ROW) - {"id", "name"}


@ALL
def test_undeclared_columns_of_the_row_are_kept_and_members_of_the_kind_are_none(kind: Envelope) -> None:
    assert _rows(kind, SAMPLES[kind.name].insert({**ROW, "more": "x"})) == {**STORED, "more": "x"}


@ALL
def test_a_delete_and_a_tombstone_delete_by_the_key(kind: Envelope) -> None:
    for value in (SAMPLES[kind.name].delete(ROW), None):
        found = list(_changes(kind, value))
        assert [(one.key, one.row) for one in found] == [((7,), None)] * len(found)


@ALL
def test_an_update_of_the_key_names_the_former_key_where_the_kind_shows_it(kind: Envelope) -> None:
    samples = SAMPLES[kind.name]
    for one in _changes(kind, samples.update({**ROW, "id": 6}, ROW)):
        assert one.key == (7,)
        assert one.former == ((6,) if samples.shows_former_keys else None)


@ALL
def test_a_replay_gives_the_same_change(kind: Envelope) -> None:
    value = SAMPLES[kind.name].insert(ROW)
    assert list(_changes(kind, value)) == list(_changes(kind, value))


@ALL
def test_a_truncate_is_no_change(kind: Envelope) -> None:
    value = SAMPLES[kind.name].truncate()
    if value is not None:
        assert {type(one) for one in _changes(kind, value)} == {Truncated}
        assert {one.why for one in _changes(kind, value, replace(ITEM, truncate="ignore"))} == {"truncate"}


@ALL
def test_a_control_message_changes_no_row_and_is_counted(kind: Envelope) -> None:
    for value in SAMPLES[kind.name].controls():
        for one in _changes(kind, value, key=None):
            assert isinstance(one, Ignored), one
            assert one.why == "control"


@ALL
def test_the_table_of_an_entity_picks_its_records(kind: Envelope) -> None:
    value = SAMPLES[kind.name].of_other_table(ROW)
    assert (value is not None) == kind.names_table
    if value is not None:
        table = replace(ITEM, table="public.item")
        assert {one.why for one in _changes(kind, value, table)} == {"other table"}
        assert _rows(kind, SAMPLES[kind.name].insert(ROW), table) == STORED


@ALL
def test_a_record_names_its_transaction_where_the_kind_has_transactions(kind: Envelope) -> None:
    samples, table = SAMPLES[kind.name], replace(ITEM, transactions="shop.transaction")
    for one in _changes(kind, samples.insert(ROW), table):
        assert one.transaction is None
    value = samples.in_transaction(ROW)
    for one in () if value is None else _changes(kind, value, table):
        assert one.transaction == SourceTransaction("760", "public.item", 2)


@ALL
def test_a_kind_is_recognised_by_its_own_members_alone(kind: Envelope) -> None:
    samples = SAMPLES[kind.name]
    for value in (samples.insert(ROW), samples.snapshot(ROW), samples.update(ROW, ROW), json.loads(kind.sample)):
        found, _ = kind_of(value, ITEM)
        assert found is (FORMATS["plain"] if samples.flags else kind)
        assert not kind.members or kind.members & value.keys()
        bare = {name: member for name, member in value.items() if name not in kind.members}
        assert not kind.members or kind.recognise(bare, ITEM) is None
        assert sum(other.recognise(value, ITEM) is not None for other in ENVELOPES if other.wraps) == kind.wraps


@ALL
def test_a_table_whose_columns_have_the_names_of_the_members_has_plain_rows(kind: Envelope) -> None:
    table = entity("odd", "id", ", ".join(["id int", *(f"{name} json" for name in sorted(kind.members))]))
    row = {"id": 7} | dict.fromkeys(sorted(kind.members), "x")
    assert _read(table, row).row == row


@ALL
def test_the_value_of_a_row_is_read_back_as_the_row(kind: Envelope) -> None:
    pinned = replace(ITEM, format=kind.name)
    assert _read(pinned, row_value(ROW, pinned)).row == ROW
    for table in ("item", "public.item", "shop.public.item") if kind.names_table else ():
        picked = replace(pinned, table=table)
        assert _read(picked, row_value(ROW, picked)).row == ROW
        assert read_image(row_value(ROW, picked), replace(picked, table="other")) == "other table"


@ALL
@pytest.mark.parametrize("poison", [b"", b"{", b"[]", b"7", b'"x"', b"true", b"[{}]", b"\xff", b"\x00", b"NaN"])
def test_a_poisoned_value_is_a_dead_letter(kind: Envelope, poison: bytes) -> None:
    assert isinstance(decoded(replace(ITEM, format=kind.name), KEY, poison), Rejected)


@ALL
def test_the_text_of_numbers_may_be_bytes_only_where_the_kind_says_it(kind: Envelope) -> None:
    pinned = replace(ITEM, format=kind.name)
    assert pinned.learns("amount") == (kind.reading.text == "debezium")


def _read(table: Entity, value: Any) -> RowImage:
    image = read_image(value, table)
    assert isinstance(image, RowImage)
    return image


@ALL
def test_each_row_of_a_record_is_a_change_of_its_own_key(kind: Envelope) -> None:
    rows = [{**ROW, "id": number, "name": f"name {number}"} for number in (1, 2, 3)]
    value = SAMPLES[kind.name].several(*rows)
    for one in () if value is None else _changes(kind, value, key=None):
        assert [(change.key, change.row["name"]) for change in (*one.others, one)] == [
            ((number,), f"name {number}") for number in (1, 2, 3)
        ]
        assert [change.part for change in (one, *one.others)] == [0, 1, 2]


def test_the_schema_of_editors_offers_each_kind() -> None:
    assert entities_schema()["definitions"]["entity"]["properties"]["format"]["enum"] == list(FORMATS)


def test_the_page_of_definitions_has_a_row_of_each_kind() -> None:
    lines = ["| `format` | A value | Delete | Transaction |", "|---|---|---|---|"]
    lines += [f"| `{k.name}` | `{k.sample}` | {k.deletes} | {k.transactions} |" for k in ENVELOPES]
    assert "\n".join(lines) in PAGE.read_text()


def test_the_page_of_sources_begins_with_a_table_that_has_each_kind() -> None:
    rows = [
        line.split(" | ") for line in SOURCES.read_text().partition("\n## ")[0].splitlines() if line.startswith("| ")
    ]
    assert {len(row) for row in rows} == {6}
    named = {word for row in rows for word in re.findall(r"`(\w+)`", row[1])}
    assert named - {"format"} == FORMATS.keys()
