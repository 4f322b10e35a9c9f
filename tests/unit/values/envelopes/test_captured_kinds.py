"""Records that Canal and Maxwell wrote of one MariaDB server: each kind gives the rows of the server.

`tests/capture/mysql_connectors.py` captured them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.values.record import Change, Ignored, Record, Rejected, Truncated
from tests.unit.engine.protocol.decoding import entity

DATA = Path(__file__).parents[3] / "data"
ITEM = entity("item", "id", "id int, name string, more int")
SAMPLE = entity(
    "sample",
    "id",
    "id int, flag bool, tiny int, tiny_u int, big int, big_u int, single float, double float, price decimal(12,2), "
    "long_number decimal, bits int, varchar string, binary string, blob string, date date, at6 timestamp, moment timestamp, "
    "year int, json json(text), mood string",
)
STORED = {
    "flag": "True", "tiny": "-128", "tiny_u": "255", "big": "-9223372036854775808", "big_u": "18446744073709551615",
    "single": "1.1", "double": "0.1", "price": "12.34", "long_number": "12345678901234567890123456789012345678",
    "bits": "513", "varchar": "Zoë 中 🙂", "binary": "AP8=", "blob": "AP/7", "date": "2026-11-20",
    "at6": "2026-11-20T22:38:37.758449Z", "moment": "2026-11-20T22:38:37Z", "year": "2026", "mood": "happy",
}  # fmt: skip
KINDS = pytest.mark.parametrize("kind", ["canal", "maxwell"])


def records(kind: str, table: str) -> list[Record]:
    lines = (DATA / kind / "records.jsonl").read_text().splitlines()
    of_table = [line for line in lines if json.loads(line)["table"] == table]
    return [Record(topic=table, partition=0, offset=n, key=None, value=one.encode()) for n, one in enumerate(of_table)]


def changes(kind: str, table: Any) -> list[Any]:
    return [decode(record, table) for record in records(kind, table.name)]


@KINDS
def test_every_type_of_the_server_is_read(kind: str) -> None:
    first = next(one for one in changes(kind, SAMPLE) if isinstance(one, Change))
    assert first.row is not None
    assert {name: str(first.row[name]) for name in STORED} == STORED
    assert json.dumps(first.row["json"], default=str) == '{"b": "1.50", "a": [1, null]}'


@KINDS
def test_a_zero_date_is_a_dead_letter_that_names_its_column(kind: str) -> None:
    reasons = [one.reason for one in changes(kind, SAMPLE) if isinstance(one, Rejected)]
    assert len(reasons) == 4
    assert all(reason.startswith(("column 'date'", "column 'at6'", "column 'moment'")) for reason in reasons)


@KINDS
def test_the_changes_in_their_order_give_the_table_of_the_server(kind: str) -> None:
    table: dict[Any, Any] = {}
    seen: list[dict[Any, Any]] = []
    for one in changes(kind, ITEM):
        if isinstance(one, Truncated):
            seen.append(table)
            table = {}
            continue
        assert isinstance(one, Change | Ignored), one
        if isinstance(one, Ignored):
            assert one.why == "control"
            continue
        written = {change.key[0]: change.row and change.row["name"] for change in (one, *one.others)}
        table = {key: name for key, name in {**table, **written}.items() if key not in written or is_row(one, key)}
        seen.append(dict(table))
    assert {2: "ax", 3: "bx", 4: "cx"} in seen  # after `set id = id + 1`
    assert {2: "y", 3: "bx", 4: "cx", 9: "z", 12: "x!", 50: "r"} in seen
    assert seen[-1] == {2: "y", 70: None}


def is_row(change: Change, key: Any) -> bool:
    return any(one.key[0] == key and one.row is not None for one in (change, *change.others))


def test_a_row_that_a_record_changes_twice_is_one_change() -> None:
    (twice,) = [one for one in changes("canal", ITEM) if isinstance(one, Change) and one.row and one.row["name"] == "r"]
    assert (twice.key, twice.others, twice.index) == ((50,), (), 0)


def test_a_record_that_moves_rows_through_each_others_keys_deletes_the_last_former_key_alone() -> None:
    moved = next(one for one in changes("canal", ITEM) if isinstance(one, Change) and one.former)
    assert {change.key[0]: change.row and change.row["name"] for change in (moved, *moved.others)} == {
        4: "cx", 3: "bx", 2: "ax", 1: None,
    }  # fmt: skip
    assert sorted(change.index for change in (moved, *moved.others)) == [0, 1, 2, 3]
