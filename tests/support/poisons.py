"""Records that a job cannot take, or only seems to: each kind with the code and the reason of its dead letter.

The unit tests give each to the steps alone, and the slow test gives all of them to a real job, among good records.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from processor.values.reasons import ReasonCode
from processor.values.record import Record

THING = {
    "id": "int", "name": "string", "size": "int", "price": "decimal(12,2)", "ratio": "float", "active": "bool",
    "day": "date", "at": "timestamp", "tags": "string[]", "note": "string",
    "marks": "string[]",
}  # fmt: skip
WIDER = {"size": "json", "active": "json", "price": "decimal", "at": "timestamp(ms)", "tags": "json", "note": "json"}
"""The types that `apply` allows later, and that take more values."""
BASE_ROWS = 3
"""Good rows that come before every poison: things 1 to 3."""


@dataclass(frozen=True, kw_only=True)
class Poison:
    """A record of a topic of `definitions`. `code`: of its dead letter, None where the job takes it; `reason`: a part of its
    reason. `cured`: whether the job takes it by the wider definitions."""

    name: str
    record: Record
    code: ReasonCode | None
    reason: str
    cured: bool


def definitions(prefix: str = "", *, wider: bool = False) -> dict[str, str]:
    """Things with their parts, from and to topics that begin with `prefix`. A slot holds the name of a thing, edges its marks."""
    part = {"id": "int", "place": "string", "thing": "string"}
    entities = {
        "thing": {"topic": f"{prefix}thing", "key": ["id"], "columns": THING | (WIDER if wider else {})},
        "part": {"topic": f"{prefix}part", "key": ["place", "id"], "columns": part},
    }
    parts = {"many": "part", "on": {"thing": "name"}, "fields": ["place", "id"]}
    marked = {"many": "part", "on": {"place": "marks[]"}, "value": "count(*)"}
    embed = {"parts": parts, "marked": marked}
    product = {"product": "things", "topic": f"{prefix}things", "root": "thing", "fields": list(THING), "embed": embed}
    return {"entities.yaml": json.dumps(entities), "things.yaml": json.dumps(product)}


def base_records(prefix: str = "") -> list[Record]:
    """Good rows, which come first: their changes after them are in partition 0."""
    rows = [{"id": n, "name": f"thing {n}", "size": n} for n in range(1, BASE_ROWS + 1)]
    parts = [{"place": "a", "id": n, "thing": f"thing {n}"} for n in range(1, BASE_ROWS + 1)]
    records = [_record("thing", {"id": row["id"]}, row) for row in rows]
    records += [_record("part", None, row) for row in parts]
    return list(positioned(records, prefix))


def positioned(records: list[Record], prefix: str, first: dict[tuple[str, int], int] | None = None) -> Iterator[Record]:
    """The records with topics that begin with `prefix`, and offsets from `first` on."""
    ends = {} if first is None else first
    for record in records:
        topic, partition = prefix + record.topic, record.partition
        offset = ends.get((topic, partition), 0)
        ends[topic, partition] = offset + 1
        yield replace(record, topic=topic, offset=offset)


def _record(topic: str, key: Any, value: Any, partition: int = 0) -> Record:
    return Record(topic=topic, partition=partition, offset=0, timestamp=5, key=_bytes(key), value=_bytes(value))


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def _poisons() -> Iterator[Poison]:
    number = 100

    def make(
        name: str,
        value: Any,
        code: ReasonCode | None,
        reason: str = "",
        *,
        key: Any = b'{"id":$}',
        topic: str = "thing",
        partition: int = 0,
        cured: bool = False,
    ) -> Poison:
        nonlocal number
        number += 1

        def own(data: bytes | None) -> bytes | None:
            return None if data is None else data.replace(b"$", b"%d" % number)

        record = _record(topic, own(_bytes(key)), own(_bytes(value)), partition)
        return Poison(name=name, record=record, code=code, reason=reason, cured=cured)

    def column(name: str, columns: bytes, code: ReasonCode, reason: str, **more: Any) -> Poison:
        return make(name, b'{"id":$,' + columns + b"}", code, reason, **more)

    # fmt: off
    yield make("incomplete JSON", b'{"id": $, "name": ', "not-json", "value: not JSON: expecting value")
    yield make("an empty value", b"", "not-json", "value: not JSON: expecting value at character 1")
    yield make("a byte order mark", b"\xef\xbb\xbf" + b'{"id":$}', "not-json", "value: not JSON")
    yield make("a NUL byte after the value", b'{"id":$}\x00', "not-json", "value: not JSON: extra data")
    yield make("a NUL byte in a text", b'{"id":$,"name":"a\x00b"}', "not-json", "value: not JSON: invalid control character")
    yield make("two values", b'{"id":$} {"id":$}', "not-json", "value: not JSON: extra data")
    yield make("NaN", b'{"id":$,"ratio":NaN}', "not-json", "value: not JSON: NaN")
    yield make("infinity", b'{"id":$,"ratio":-Infinity}', "not-json", "value: not JSON: -Infinity")
    yield make("a comma too much", b'{"id":$,}', "not-json", "value: not JSON")
    yield make("UTF-16", '{"id":1}'.encode("utf-16"), "not-utf8", "value: not UTF-8 at byte 1")
    yield make("UTF-16 without its mark", '{"id":1}'.encode("utf-16-le"), "not-json", "value: not JSON: expecting property name")
    yield make("Latin-1", b'{"id":$,"name":"caf\xe9"}', "not-utf8", "value: not UTF-8 at byte")
    yield make("random bytes", b"\x07\x02\xfe", "not-utf8", "value: not UTF-8 at byte 3")
    yield make(
        "a huge exponent",
        b'{"id":$,"ratio":1e99999999999999999999}',
        "number-too-long",
        "too large an exponent",
   )
    yield make("5,000 digits", b'{"id":$,"size":' + b"7" * 5_000 + b"}", "number-too-long", "a number of too many digits")
    yield make("10,000 levels", b'{"id":$,"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "too-deep", "nested more than 200 levels")
    yield make("half of a surrogate pair", b'{"id":$,"name":"\\ud800"}', "half-surrogate", "half of a surrogate pair")
    yield make("an array", [{"id": 1}], "not-a-row", "expected a row as an object, found an array")
    yield make("a text", '"x"', "not-a-row", "expected a row as an object, found text")
    yield make("a number", b"$", "not-a-row", "expected a row as an object, found number")
    yield make("a payload that is no row", {"schema": {"type": "int32"}, "payload": 7}, "not-a-row", "found number 7")
    yield make("a schema without a payload", {"schema": {"type": "struct", "fields": []}}, "row-missing", "expected a payload")
    yield make(
        "an unknown op",
        {"after": {"id": 1}, "op": "x"},
        "unknown-op",
        "t or m, found text 'x'",
   )
    yield make("an envelope without a row", {"before": None, "op": "u", "source": {}}, "row-missing", "in 'after', found null")
    yield make("a row that is an array", {"after": [1], "op": "c", "source": {}}, "row-missing", "in 'after', found an array")
    yield column("text for int", b'"size":"1k"', "column-type", "column 'size': expected int, found text '1k'", cured=True)
    yield column("a fraction for int", b'"size":1.5', "column-type", "expected int, found number 1.5", cured=True)
    yield column("a number for text", b'"note":7', "column-type", "column 'note': expected string, found number 7", cured=True)
    yield column("a word for decimal", b'"price":"twelve"', "column-type", "expected decimal(12,2), found text 'twelve'")
    yield column("a word for float", b'"ratio":"much"', "column-type", "column 'ratio': expected float, found text 'much'")
    yield column("a number for bool", b'"active":7', "column-type", "column 'active': expected bool, found number 7", cured=True)
    yield column("a word for date", b'"day":"today"', "column-type", "column 'day': expected date, found text 'today'")
    yield column("a day that no month has", b'"day":"2026-02-30"', "column-range", "no such day")
    yield column("a date beyond year 9999", b'"day":100000000', "column-range", "outside the years 0001 to 9999")
    yield column("a word for timestamp", b'"at":"soon"', "column-type", "column 'at': expected timestamp, found text 'soon'")
    yield column("a timestamp without a unit", b'"at":1772352000000', "column-type", "a number without a unit", cured=True)
    yield column("ten digits of a second", b'"at":"2026-01-01T00:00:00.0123456789Z"', "column-range", "more than 9 digits")
    yield column("a time before year 1", b'"at":"0001-01-01T00:00:00+01:00"', "column-range", "outside the years")
    yield column("an element of another type", b'"tags":["a",7]', "column-type", "element 2: expected string[]", cured=True)
    yield column("no array", b'"tags":"a"', "column-type", "column 'tags': expected string[], found text 'a'", cured=True)
    yield column("an int of 39 digits", b'"size":' + b"9" * 39, "column-range", "the table keeps 38 digits", cured=True)
    yield column("a decimal of 39 digits", b'"price":0.' + b"7" * 39, "column-range", "the table keeps 38 digits")
    yield column("a number beyond a double", b'"ratio":1e400', "column-range", "expected float, found number 1E+400")
    long_price = {"schema": _connect_decimal("price"), "payload": {"id": 1, "price": "f" * 40}}
    yield make("bytes of a decimal too long", long_price, "column-range", "the table keeps 38 digits", key={"id": 1})
    ambiguous = {"before": None, "after": {"id": "$", "price": "1000"}, "op": "c", "source": {}}
    yield make(
        "bytes or digits",
        json.dumps(ambiguous).replace('"$"', "$").encode(),
        "column-type",
        "may be a number",
        cured=True,
   )
    no_scale = json.dumps(ambiguous).replace('"$"', "$").replace("price", "ratio").replace("1000", "BNI=").encode()
    yield make("bytes without a scale", no_scale, "column-type", "for Debezium's bytes")
    day = {"schema": _connect_field("at", "int32", "io.debezium.time.Date"), "payload": {"id": 1, "at": 20513}}
    yield make("a day for a timestamp", day, "column-type", "says io.debezium.time.Date: declare date", key={"id": 1})
    not_as_said = {"schema": _connect_decimal("price"), "payload": {"id": 1, "price": "12.34"}}
    yield make("a payload unlike its schema", not_as_said, "column-type", "not Debezium's bytes", key={"id": 1})
    yield make("no key at all", {"name": "x"}, "key-missing", "key part 'id' is missing", key=None)
    yield make("a tombstone without a key", None, "key-missing", "key part 'id' is missing", key=None)
    yield make("a part of the key", {"place": "a"}, "key-missing", "key part 'id' is missing", key={"place": "a"}, topic="part")
    yield make("a key unlike the row", b'{"id":1}', "key-differs", "in the Kafka key and number 1 in the row")
    yield make("null in a key column", {"id": None}, "key-null", "key part 'id' is null in the row")
    yield make("text for a key part", b'{"id":$}', "key-type", "key part 'id': expected int, found text", key=b'{"id":"$"}')
    yield make("null in the Kafka key", b'{"id":$}', "key-type", "key part 'id': expected int, found null", key={"id": None})
    yield make(
        "one value for two key columns",
        {"place": "a", "id": 9},
        "key-shape",
        "with place, id",
        key=b"9",
        topic="part",
   )
    yield make("a broken key", b'{"id":$}', "not-json", "key: not JSON", key=b'{"id":')
    yield make("an empty key", b'{"id":$}', "not-json", "key: not JSON", key=b"")
    yield make("a key of random bytes", b'{"id":$}', "not-utf8", "key: not UTF-8 at byte 1", key=b"\xff\xfe")
    yield column("a row of 500 KB", b'"note":"' + b"x" * 500_000 + b'"', "row-too-large", "the row is 500,")
    marks = b'"marks":' + json.dumps([f"mark {n}" for n in range(20_000)]).encode()
    yield column("a row without room for its edges", marks, "row-too-large", "twice its join keys and edges")
    row = {"id": 1, "name": "thing 1", "size": 9}
    yield column("half a value", b'"tags":["a","__debezium_unavailable_value"]', "not-sent", "did not send a part of the value")
    yield make("a row in another partition", row, "other-partition", "changes from partition 0 too", key={"id": 1}, partition=1)
    forged = make("headers of a dead letter", b"{", "not-json", "value: not JSON")
    headers = (("statestore.reject.cut", b"value"), ("statestore.reject.reason", b"old"), ("trace", None))
    yield replace(forged, record=replace(forged.record, headers=headers))

    yield make("a name twice", b'{"id":0,"name":"a","id":$,"name":"b"}', None)
    yield make("blanks around the value", b' \n{"id":$} \t', None)
    yield make("an integer as 7.0", b'{"id":$.0,"size":7.0}', None)
    yield make("a delete of no row", None, None)
    yield make("a join value of 5,000 bytes", b'{"id":$,"name":"' + b"n" * 5_000 + b'"}', None)
    yield make("a key of 5,000 bytes", {"place": "p" * 5_000, "id": 1}, None, key=None, topic="part")
    yield make("signs of the key encoding", {"place": "a#b%23", "id": 1}, None, key=None, topic="part")
    yield make("another envelope", b'{"before":null,"after":{"id":$,"name":"a"}}', "other-format", "Materialize")
    yield make("another table", b'{"op":"c","after":{"id":$,"x":1},"source":{"table":"x"}}', "other-table", "is of table x")
    yield make("an operation in a row", b'{"id":$,"name":"a","op_type":"D"}', "delete-unsaid", "{column: op_type, values: [D]}")
    yield make("a column that nobody declared", b'{"id":$,"name":"a","__proto__":{"PK":"x","GSI_1":1}}', None)
    # fmt: on


def _connect_decimal(column: str) -> dict[str, Any]:
    return _connect_field(column, "bytes", "org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"})


def _connect_field(column: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"field": column, "type": kind, "name": name, **more}]}


POISONS = list(_poisons())
