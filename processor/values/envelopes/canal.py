"""Canal's flat messages, and those of TiCDC's protocol canal-json.

a change       {"type": "INSERT", "isDdl": false, "database": ..., "table": ..., "data": [{...}, ...], "mysqlType": {...}}
               "UPDATE" has the former values of the changed columns in "old", a row for each of "data"; "DELETE" the old rows
truncate       {"type": "TRUNCATE", "isDdl": true, "database": ..., "table": ...}
control        "isDdl": true with another type; "QUERY", the text of a statement whose rows follow; "TIDB_WATERMARK"

A record has the rows of one statement, and one row may be there twice. Each value is text; `mysqlType` says what it was: bytes
come as Latin-1, the words of enum and set as their numbers. Neither system sends a Kafka key that names the row.

Captured: Canal 1.1.7 over MariaDB 10.11 (tests/data/canal). Read, on 2026-11-27: TiCDC, whose mysqlType lacks the words of enum
and set unless content-compatible=true, at https://docs.pingcap.com/tidb/stable/ticdc-canal-json/.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal

from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage, RowImages
from processor.values.reasons import Mismatch, unexpected, within
from processor.values.record import Value
from processor.values.values import ANY_TEXT

_TYPES: Final = ("INSERT", "UPDATE", "DELETE")
_CONTROLS: Final = ("QUERY", "TIDB_WATERMARK")
_MEMBERS: Final = ("isDdl", "database", "table", "type")


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    if not all(name in payload for name in _MEMBERS) or all(name in entity.columns for name in _MEMBERS):
        return None
    kind = payload["type"]
    if payload["isDdl"] is True:
        return "row" if kind == "TRUNCATE" else "control"
    return "control" if kind in _CONTROLS else "row"


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    kind, ddl, rows = payload.get("type"), payload.get("isDdl"), payload.get("data")
    if ddl is True and kind == "TRUNCATE":
        return "truncate"
    if ddl is not False or kind not in _TYPES:
        raise unexpected("a message of Canal with type INSERT, UPDATE, DELETE or TRUNCATE", kind, code="unknown-op")
    if type(rows) is not list or not rows or not all(type(row) is dict for row in rows):
        raise unexpected("rows as an array of objects in 'data'", rows, code="row-missing")
    old = payload.get("old") if kind == "UPDATE" else None
    if type(old) is not list or len(old) != len(rows):
        old = [None] * len(rows)
    types = payload.get("mysqlType")
    converts = _converts(types if type(types) is dict else {}, entity)
    images = (_image(row, before, kind == "DELETE", converts) for row, before in zip(rows, old, strict=True))
    return next(images) if len(rows) == 1 else RowImages(tuple(images))


def _image(row: Payload, before: Any, deleted: bool, converts: Mapping[str, "Convert"]) -> RowImage:
    """The image of a row. A text that is not of its MySQL type stays as it is, and the job must not store the row."""
    read, former, refusal = dict(row), dict(before) if type(before) is dict else None, None
    for column, convert in converts.items():
        for values in (read, former):
            text = None if values is None else values.get(column)
            if values is None or type(text) is not str:
                continue
            try:
                values[column] = convert(text)
            except ValueError as error:
                refusal = refusal or within(f"column {column!r}", error)
    return RowImage(read, deleted, None, ANY_TEXT, former, refusal, keys="none")


Convert = Callable[[str], Value]
"""What a text of Canal says."""


def _converts(types: Mapping[str, Any], entity: Entity) -> dict[str, Convert]:
    """The functions for the columns whose text is not itself."""
    texts = ((name, text) for name, text in types.items() if type(text) is str)
    found = ((name, _convert(text, _is_json(entity, name))) for name, text in texts)
    return {name: convert for name, convert in found if convert is not None}


def _is_json(entity: Entity, column: str) -> bool:
    declared = entity.columns.get(column)
    return declared is not None and declared.name == "json"


_NUMBERS: Final = frozenset(
    {"tinyint", "smallint", "mediumint", "int", "integer", "bigint", "bit", "year", "bool", "boolean"}
    | {"decimal", "numeric", "float", "double", "real"}
)
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point"})
_SHAPES: Final = frozenset(
    {"linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"}
)
_TYPE: Final = re.compile(r"\s*([a-z]+)\s*(?:\((.*)\))?", re.IGNORECASE | re.DOTALL)
_WORD: Final = re.compile(r"'((?:[^']|'')*)'")


@lru_cache(maxsize=4096)
def _convert(mysql_type: str, is_json: bool) -> Convert | None:
    """The function for the texts of a column of this type; None where text is itself. `is_json`: the entity declares json."""
    match = _TYPE.match(mysql_type)
    name, inside = (match[1].lower(), match[2] or "") if match else ("", "")
    words = tuple(word.replace("''", "'") for word in _WORD.findall(inside))
    if name in _NUMBERS:
        return _number
    if name in _BYTES or name in _SHAPES:
        return _bytes
    if name == "enum" and words:
        return lambda text: _words(text, ("", *words), lambda number: (number,))
    if name == "set" and words:
        return lambda text: _words(text, words, lambda mask: (n for n in range(mask.bit_length()) if mask >> n & 1))
    return _json if name == "json" and is_json else None


def _number(text: str) -> Value:
    """The number; text that is none stays, and its column refuses it."""
    try:
        number = canonical_json.loads(text.lstrip("0") or "0") if text.isdigit() else canonical_json.loads(text)
    except ValueError:
        return text
    return number if type(number) in (int, Decimal) else text


def _bytes(text: str) -> str:
    try:
        return b64encode(text.encode("latin-1")).decode()
    except UnicodeEncodeError:
        raise Mismatch("bytes that are no Latin-1, as Canal writes bytes", "column-type") from None


def _words(text: str, words: tuple[str, ...], places: Callable[[int], Iterable[int]]) -> str:
    """The words of an enum or a set, which come as a number; text of a system that writes the words stays."""
    if not re.fullmatch("[0-9]{1,20}", text):
        return text
    try:
        return ",".join(words[place] for place in places(int(text)))
    except IndexError:
        raise Mismatch(f"number {text} of {len(words)} words of an enum or a set", "column-range") from None


def _json(text: str) -> Value:
    try:
        return canonical_json.loads(text)
    except ValueError as error:
        raise unexpected("json", text, str(error)) from None


def _tables(payload: Payload) -> tuple[str, ...]:
    table, database = payload.get("table"), payload.get("database")
    if "isDdl" not in payload or type(table) is not str or not table:
        return ()
    return (table, f"{database}.{table}") if type(database) is str and database else (table,)


def _key_columns(payload: Payload) -> tuple[str, ...]:
    names = payload.get("pkNames")
    return tuple(name for name in names if type(name) is str) if type(names) is list else ()


def _wrap(row: Payload, table: str) -> Value:
    database, _, name = table.rpartition(".")
    return {"data": [row], "database": database, "table": name, "type": "INSERT", "isDdl": False, "old": None}


CANAL: Final = Envelope(
    name="canal",
    system="Canal",
    wraps=True,
    members=frozenset({"isDdl"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=ANY_TEXT,
    tables=_tables,
    key_columns=_key_columns,
    operation="type",
    rows=("data", "old"),
    sample='{"data": [{"id": 1}], "database": "d", "table": "t", "type": "INSERT", "isDdl": false}',
    deletes="`type`: `DELETE`",
    transactions="none",
)
