"""A source table as a definition describes it: its key, its columns with their types, and its topic.

`parse_type` reads a column type from the text of a definition, and `str(ColumnType)` gives that text back.

A placeholder is a value that did not change, and that the source did not read (TOAST). Debezium writes its connector's
`unavailable.value.placeholder`, one text, and the type of a column decides the form:

    text, xml, json, numeric as text        the text
    bytea                                   its bytes in Base64, also for URLs, or in hex
    text[], json[]; bytea[]; uuid[]         an array with the text; with such bytes; with the UUID of the text (Java's version 3)
    smallint[], int[], bigint[], date[],    an array with a number for each byte
    float8[]; numeric[] as bytes            such numbers as Debezium writes decimals
    hstore, hstore[]                        {text: text}, as an object or as JSON text

Debezium 3.6.3 writes null in place of some of these. The default text always counts, next to that of the entity: a topic may hold
records from before the connector's setting.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import md5
from typing import Any, Final, Literal, NamedTuple, cast, get_args
from uuid import UUID

from processor.text import nearest
from processor.values import canonical_json

PLACEHOLDER: Final = "__debezium_unavailable_value"
"""Debezium's default."""
HEX: Final = "hex:"
"""Debezium reads the rest of such a setting as bytes in hex."""
_LEAST: Final = 8
"""Bytes of a placeholder whose hex digits are not taken for another value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """texts: the forms that are text. plain: the texts that count inside a value, too. lists: the forms that are arrays. maps:
    the forms that are objects."""

    texts: frozenset[str]
    plain: frozenset[str]
    lists: tuple[list[Any], ...]
    maps: tuple[dict[str, Any], ...]

    def is_in(self, value: Any) -> bool:
        """Whether the value is the placeholder, in any form."""
        if type(value) is str:
            return value in self.texts
        if type(value) is list:
            return value in self.lists
        return type(value) is dict and value in self.maps

    def is_inside(self, value: Any) -> bool:
        """Whether a member or an element of the value, at any depth, is the text."""
        if type(value) is str:
            return value in self.plain
        if type(value) is dict:
            return any(map(self.is_inside, value.values()))
        return type(value) is list and any(map(self.is_inside, value))


@lru_cache(maxsize=256)
def placeholder_of(setting: str) -> Placeholder:
    """The forms of the placeholder that the connector has by this setting, and of the default. Raises ValueError for wrong hex
    digits."""
    own = _forms(_bytes(setting))
    if setting == PLACEHOLDER:
        return own
    default = placeholder_of(PLACEHOLDER)
    return Placeholder(
        texts=own.texts | default.texts,
        plain=own.plain | default.plain,
        lists=own.lists + default.lists,
        maps=own.maps + default.maps,
    )


def _bytes(setting: str) -> bytes:
    return bytes.fromhex(setting.removeprefix(HEX)) if setting.startswith(HEX) else setting.encode()


def _forms(data: bytes) -> Placeholder:
    text = data.decode(errors="replace")
    base64, url = b64encode(data).decode(), urlsafe_b64encode(data).decode()
    encoded = {base64, url, url.rstrip("=")} | ({data.hex()} if len(data) >= _LEAST else set())
    json_text, as_map = canonical_json.dumps({text: text}), {text: text}
    numbers = [byte - 256 if byte > 127 else byte for byte in data]
    unscaled = [b64encode(bytes([byte])).decode() for byte in data]
    scaled = [{"scale": 0, "value": one} for one in unscaled]
    singles = sorted({text, json_text, name_uuid(data)} | encoded)
    return Placeholder(
        texts=frozenset({text, json_text} | encoded),
        plain=frozenset({text}),
        lists=(*([one] for one in singles), [as_map], numbers, unscaled, scaled),
        maps=(as_map,),
    )


def name_uuid(data: bytes) -> str:
    """The UUID that Java's `UUID.nameUUIDFromBytes` makes of bytes."""
    return str(UUID(bytes=md5(data, usedforsecurity=False).digest(), version=3))


TypeName = Literal["int", "string", "float", "decimal", "bool", "date", "timestamp", "json"]
TimestampUnit = Literal["ms", "us", "ns"]
DecimalForm = Literal["text", "bytes"]
DEBEZIUM_FORMATS: Final = (None, "debezium", "flattened", "cloudevents")
"""The formats whose decimals may be Debezium's bytes. None: a record shows its own format."""
TruncateChoice = Literal["refuse", "ignore", "delete"]
KeepChoice = Literal["all", "declared"]
AbsentChoice = Literal["null", "keep"]
UnrepresentableChoice = Literal["refuse", "null"]
CompareWord = Literal["ci", "trimmed"]
Compare = tuple[CompareWord, ...]
"""How text compares, where not by its code points. `ci`: upper and lower case are one. `trimmed`: spaces at the end do not
count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """The type of a column."""

    name: TypeName
    array: bool = False
    """`string[]` is an array."""
    precision: int | None = None
    scale: int | None = None
    """`decimal(12,2)` has a precision and a scale."""
    unit: TimestampUnit | None = None
    """`timestamp(us)`: the unit of timestamps that come as bare numbers."""
    text: bool = False
    """`json(text)`: text is JSON in every record."""
    compare: Compare = ()
    """How its text compares; the text of the type has no word of it."""

    @property
    def kind(self) -> str | None:
        """Values compare and are ordered within one kind. None: values of this type do not compare."""
        if self.array or self.name == "json":
            return None
        return "number" if self.name in ("int", "float", "decimal") else self.name

    def __str__(self) -> str:
        args = [str(x) for x in (self.precision, self.scale, self.unit, "text" if self.text else None) if x is not None]
        return self.name + (f"({','.join(args)})" if args else "") + ("[]" if self.array else "")


class DeleteFlag(NamedTuple):
    """The member of plain and flattened records that says a delete, a column or a path (`_cdc.op`), and the texts of the values
    that say so; empty: every value but null, empty text and false. `truncates`: the texts that say that the source emptied the
    table."""

    column: str
    values: tuple[str, ...] = ()
    truncates: tuple[str, ...] = ()


def united(compares: Iterable[Compare]) -> Compare:
    """How texts compare with each other: by the words of all of them, in one order."""
    words = {word for compare in compares for word in compare}
    return tuple(word for word in get_args(CompareWord) if word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """A column that the source does not have: an expression over the columns of its row. `text`: as its author wrote it;
    `field`: the expression as a field of joins (`join_fields`); `compare`: the words of the column itself, without those of its
    sources."""

    type: ColumnType
    text: str
    field: str
    compare: Compare = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A source table."""

    name: str
    topic: str
    key: tuple[str, ...]
    """Its columns are not null."""
    columns: Mapping[str, ColumnType]
    """In the declared order."""
    shards: int = 1
    format: str | None = None
    """A word of `processor.values.envelopes.kinds.FORMATS`. None: each record shows its own kind."""
    truncate: TruncateChoice = "refuse"
    """When the source empties the table: the job stops, keeps the rows (`ignore`), or deletes those that are older (`delete`)."""
    decimals: DecimalForm | Mapping[str, DecimalForm] | None = None
    """The form of text in number columns, or in some of them, where a record has no schema: digits, or Debezium's bytes."""
    keep: KeepChoice = "all"
    """The columns that rows store."""
    source: str = ""
    """Its table in the source, `schema.table`; empty: by the topic."""
    transactions: str = ""
    """The connector's topic of ended transactions; empty: the records name no transaction."""
    unavailable: str = PLACEHOLDER
    """The connector's `unavailable.value.placeholder`."""
    absent: AbsentChoice | Mapping[str, AbsentChoice] | None = None
    """What declared columns, or some of them, have where a record lacks them: null, or the stored value. None: null, and `doctor`
    names them."""
    unrepresentable: UnrepresentableChoice | Mapping[str, UnrepresentableChoice] | None = None
    """What becomes of a value of the source that the declared type cannot hold, in all columns or in some: the record is a dead
    letter (`refuse`, the default), or the value is null."""
    not_null: frozenset[str] = frozenset()
    """The columns in which the source has no null: null there means a value that the source did not send."""
    table: str = ""
    """The table whose records count, `orders` or `public.orders`; the job ignores those of other tables. Empty: all count."""
    deleted: tuple[DeleteFlag, ...] = ()
    """The members that mark a row as deleted."""
    computed: Mapping[str, ComputedColumn] = field(default_factory=dict)
    """The columns that expressions make of the others. No row stores them: products and joins read the expressions."""

    @property
    def keeps_undeclared(self) -> bool:
        """Whether rows store the columns that the entity does not declare."""
        return self.keep == "all"

    def decimal_form(self, column: str) -> DecimalForm | None:
        """What the entity says of the text of numbers in a column."""
        return self.decimals.get(column) if isinstance(self.decimals, Mapping) else self.decimals

    def absent_choice(self, column: str) -> AbsentChoice | None:
        """What the entity says of a column that a record lacks."""
        return self.absent.get(column) if isinstance(self.absent, Mapping) else self.absent

    def nulls(self, column: str) -> bool:
        """Whether a value that the column's type cannot hold becomes null. Never in a column of the key."""
        said = self.unrepresentable
        choice = said.get(column) if isinstance(said, Mapping) else said
        return choice == "null" and column not in self.key

    def learns(self, column: str) -> bool:
        """Whether a record settles the form of text in a column: the column has a scale, so bytes can be read, and the entity
        does not say the form. A plain row has digits."""
        column_type = self.columns.get(column)
        scaled = column_type is not None and column_type.scale is not None
        return scaled and self.format in DEBEZIUM_FORMATS and self.decimal_form(column) is None


MAX_DIGITS: Final = 38
"""The table keeps this many significant digits of a number, in every store as in DynamoDB."""

_NAMES: Final = get_args(TypeName)
_UNITS: Final = get_args(TimestampUnit)
_TYPES: Final = (
    f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}, also decimal(precision,scale), timestamp(ms), timestamp(us), timestamp(ns) or "
    "json(text); [] after a type makes an array"
)
_SHAPE: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*(\[\s*\])?", re.ASCII)
_SQL_NAMES: Final = {
    "integer": "int", "bigint": "int", "smallint": "int", "long": "int", "serial": "int",
    "text": "string", "varchar": "string", "char": "string", "uuid": "string", "str": "string",
    "numeric": "decimal", "number": "decimal", "money": "decimal", "double": "float", "real": "float",
    "boolean": "bool", "jsonb": "json(text)", "object": "json", "array": "json[]",
    "datetime": "timestamp", "timestamptz": "timestamp",
}  # fmt: skip


def parse_type(text: str) -> ColumnType:
    """Reads a column type: `int`, `decimal(12,2)`, `timestamp(us)`, `json(text)`, `string[]`.

    Raises ValueError, which names the error and the correct form.
    """
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise ValueError(f"{text!r} is not a type: expected {_TYPES}")
    name, arguments, array = shape.group(1), shape.group(2), shape.group(3) is not None
    if name not in _NAMES:
        raise ValueError(f"unknown type {name!r}{_suggestion(name)}: expected {_TYPES}")
    type_name = cast(TypeName, name)
    if arguments is None:
        return ColumnType(name=type_name, array=array)
    if type_name == "decimal":
        precision, scale = _precision_and_scale(text, arguments)
        return ColumnType(name=type_name, array=array, precision=precision, scale=scale)
    if type_name == "timestamp":
        return ColumnType(name=type_name, array=array, unit=_unit(text, arguments))
    if type_name == "json":
        if arguments.strip() != "text":
            raise ValueError(f"{text!r}: expected json(text), for JSON that arrives as text")
        return ColumnType(name=type_name, array=array, text=True)
    raise ValueError(f"{text!r}: {name} takes nothing in parentheses")


def _precision_and_scale(text: str, arguments: str) -> tuple[int, int]:
    parts = [part.strip() for part in arguments.split(",")]
    if len(parts) not in (1, 2) or not all(re.fullmatch(r"[0-9]{1,4}", part) for part in parts):
        raise ValueError(f"{text!r}: expected decimal(precision,scale), for example decimal(12,2)")
    precision, scale = int(parts[0]), int(parts[1]) if len(parts) == 2 else 0
    if not 1 <= precision <= MAX_DIGITS or scale > precision:
        raise ValueError(f"{text!r}: expected a precision from 1 to {MAX_DIGITS} and a scale from 0 to the precision")
    return precision, scale


def _unit(text: str, arguments: str) -> TimestampUnit:
    unit = arguments.strip()
    if unit not in _UNITS:
        raise ValueError(f"{text!r}: expected the unit of numbers, timestamp(ms), timestamp(us) or timestamp(ns)")
    return cast(TimestampUnit, unit)


def _suggestion(name: str) -> str:
    lower = name.lower()
    near = lower if lower in _NAMES else _SQL_NAMES.get(lower) or nearest(lower, _NAMES)
    return f" (did you mean {near!r}?)" if near else ""
