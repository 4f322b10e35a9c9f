"""Encodes keys: the one module that knows `#`, `!`, the escape sign and the names of partitions.

Promises: the encoding is injective (two different key tuples of one type never give one key), readable for ordinary values,
canonical per value (42, 42.0 and Decimal("42.00") are one key), never empty, at most `LIMIT` bytes in every store. Strings
compare byte for byte.

    part    = "%" (the empty string) | text with %, # and a leading ! escaped
    key     = part *("#" part)       | the first bytes of that, "%~", 64 hex digits   when longer than LIMIT bytes
    no key  = "!" PK "!" SK          the content of a slot whose row has no key there; no value has this encoding

    rows    = "TABLE#" entity, or "TABLE#" entity "#" shard     the partitions of an entity's rows
    index   = entity "#" SK                             the order of rows in an index, and the name of one row there
            | entity "#" order SK                       the same in an index with an order (`order_text`)
    edges   = "EDGE#" entity "#" fields "=" key                 the partition that names the rows which hold a key
    others  = kind, or kind "#" name                            the job's progress: `LEDGER#user#0`, `RUNS`

Slots and sort keys have one encoding. So a reader can use the slot value of one row as the sort key of another.
Does not: know which columns make a key, or in which order; the caller's plan does.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple
from zlib import crc32

LIMIT = 1024
"""The most `stored_bytes` of a key. DynamoDB takes 2048 bytes in a partition key and 1024 in a sort key; the smaller serves both.
A row of an index in Postgres takes 2704: two keys."""


ProgressKind = Literal[
    "CLOCK", "DUE", "ERASED", "FORMS", "IDENTITY", "LEDGER", "OPEN", "REPLAYS", "RUNS", "SEQUENCES", "TOPICS", "WALKS"
]
"""The kinds of partitions for the job's progress. They hold no rows and no edges."""


class Key(NamedTuple):
    """The primary key of an item in the table."""

    pk: str
    sk: str


def encode(parts: Sequence[object]) -> str | None:
    """The key of `parts` (str, int, Decimal, float or bool each); None when a part is None: a null joins nothing."""
    if None in parts:
        return None
    if len(parts) == 1:
        (part,) = parts  # needs no join, which takes twice as long
        key = _text(part) if type(part) is str else _part(part)
    else:
        key = "#".join([_text(part) if type(part) is str else _part(part) for part in parts])
    return key if len(key) * 4 <= LIMIT else _cut(key)


def partition(entity: str, shards: int, sk: str) -> str:
    """The partition key of the row of `entity` with sort key `sk`: `TABLE#star`, or `TABLE#star#07` of several shards."""
    return row_key(entity, shards, sk).pk


@lru_cache(maxsize=4096)
def _partition(entity: str, shard: int | None) -> str:
    return f"TABLE#{entity}" if shard is None else f"TABLE#{entity}#{shard:02d}"


def partitions(entity: str, shards: int) -> list[str]:
    """The partition keys of all rows of `entity`."""
    return [_partition(entity, None)] if shards == 1 else [_partition(entity, shard) for shard in range(shards)]


def partition_prefix(entity: str) -> str:
    """The prefix of all partition keys of an entity with several shards: `TABLE#star#`."""
    return f"TABLE#{entity}#"


def index_row(key: Key, order: str = "") -> str:
    """The name of a row in an index: `star#octocat#hello#world`. `order`: its place where the index has an order."""
    return _cut(f"{entity_of(key.pk)}#{order}{key.sk}")


def index_rows(entity: str) -> str:
    """The beginning of the names of all rows of an entity in every index: `star#`."""
    return f"{entity}#"


def behind_rows(entity: str) -> str:
    """The first text behind the names of all rows of an entity."""
    return f"{entity}{chr(ord('#') + 1)}"


@lru_cache(maxsize=4096)
def progress_partition(kind: ProgressKind, name: str = "") -> str:
    """A partition of the job's progress: `RUNS`, or `LEDGER#user#0` where each group of products has its own."""
    return f"{kind}#{name}" if name else kind


def is_progress(pk: str) -> bool:
    """Whether a partition holds the job's progress: no rows, and no edges."""
    return not pk.startswith(("TABLE#", "EDGE#"))


def row_key(entity: str, shards: int, sk: str) -> Key:
    """The primary key of a row, from its encoded key."""
    return Key(_partition(entity, None if shards == 1 else crc32(sk.encode()) % shards), sk)


@lru_cache(maxsize=4096)
def entity_of(pk: str) -> str:
    """The entity of the rows in partition `pk`."""
    return pk.split("#", 2)[1]


def no_key(key: Key) -> str:
    """The content of a slot in which the row has no key: no join finds it, but it proves that the index shows the row."""
    return _cut(f"!{key.pk}!{key.sk}")


def is_no_key(slot: str) -> bool:
    """Whether a slot's content is a `no_key` of some row."""
    return slot.startswith("!")


@lru_cache(maxsize=4096)
def field_names(fields: tuple[str, ...]) -> str:
    """The fields of an edge as one text: `username`, `owner#name`, `ids[]`."""
    return "#".join(_text(field).replace("=", "%3D") for field in fields)


def edge_partition(entity: str, fields: str, key: str) -> str:
    """The partition of the edges that name the rows of `entity` whose `fields` (see `field_names`) hold `key`."""
    return _cut(f"EDGE#{entity}#{fields}={key}")


def stored_bytes(text: str) -> int:
    """The size of a key in the store that needs most: bytes of UTF-8, and U+0000 and U+0001 twice, as Postgres doubles them.
    Raises UnicodeEncodeError for half a surrogate pair."""
    return len(text.encode()) + text.count("\x00") + text.count("\x01")


_ORDERED_BYTES, _ORDERED_DIGITS, _MOST_EXPONENT = 48, 40, 4998
"""What counts of a text and of a number in an order. Values that are equal so far have one place."""
_TURNED = {code: 0x9F - code for code in range(0x21, 0x7F)}
"""Each printable character of ASCII, and the one that takes its place in a descending order."""


def order_text(terms: Iterable[tuple[object, bool]]) -> str:
    """The place of a row in an order: a text of printable ASCII, whose byte order is the order of the values. No place begins
    with another one. `terms`: each value (str, int, Decimal, float, bool or None), and whether it descends; nulls come last."""
    return "".join(
        "~" if value is None else _ordered(value).translate(_TURNED) if descending else _ordered(value)
        for value, descending in terms
    )


def _ordered(value: object) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case str():
            return value.encode(errors="surrogatepass")[:_ORDERED_BYTES].hex() + '"'
        case int() | Decimal():
            return _ordered_number(Decimal(value))
        case float():
            return _ordered_number(Decimal(repr(value)))
    raise TypeError(f"a {type(value).__name__} has no place in an order")


def _ordered_number(value: Decimal) -> str:
    if not value:
        return "1"
    exponent = value.adjusted()
    digits = "".join(map(str, value.as_tuple().digits[:_ORDERED_DIGITS])).rstrip("0")
    if abs(exponent) > _MOST_EXPONENT:
        exponent, digits = (_MOST_EXPONENT + 1 if exponent > 0 else -_MOST_EXPONENT - 1), ""
    size = f"{exponent + _MOST_EXPONENT + 1:04d}{digits}."
    return f"2{size}" if value > 0 else f"0{size.translate(_TURNED)}"


def _part(value: object) -> str:
    if type(value) is int:
        return str(value)
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return _number(value)
        case float():
            return _number(Decimal(repr(value)))
        case str():
            return _text(value)
    raise TypeError(f"a {type(value).__name__} cannot be part of a key")


@lru_cache(maxsize=65536)
def _text(value: str) -> str:
    if "%" in value or "#" in value:
        value = value.replace("%", "%25").replace("#", "%23")
    if value.startswith("!"):
        return "%21" + value[1:]
    return value or "%"


def _number(value: Decimal) -> str:
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _cut(key: str) -> str:
    if len(key) * 4 <= LIMIT or stored_bytes(key) <= LIMIT:
        return key
    head, room = key[: LIMIT - 66], LIMIT - 66
    while (excess := stored_bytes(head) - room) > 0:
        head = head[: -((excess + 3) // 4)]  # a character has at most 4 bytes
    from hashlib import sha256  # loads OpenSSL, and few keys are that long

    return f"{head}%~{sha256(key.encode()).hexdigest()}"
