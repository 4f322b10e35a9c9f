"""Mutates texts, bytes and JSON values by a seeded generator, as careless hands and broken programs would."""

import re
from decimal import Decimal
from random import Random
from typing import Any

WORDS = [
    "", " ", "--", "/* c */", "'", '"', "`", "1e", "1e5", "1e400", "-0.0", "9" * 5000, "0x1f", "0o9", "1_000", "NaN", "inf",
    ".nan", "~", "null",
    "true", "yes", "on", "[", "]", "{", "}", "[" * 150, "(" * 300, "*", "&a", "*a", "<<", "!!int x", "!!binary x", "!x y",
    "%", "%YAML 1.1", "---",
    "...", "|", ">", "?", ":", "- ", "#", "@", "\t", "\x00", "\x1f", "\x85", "\u2028", "\ufeff", "\ud800", "\\ud800",
    "\U0001f600", "²", "é",
    "id", "id[]", "id[].x", "parent", "parent.parent", "a.b.c.d", "on", "one", "many", "join", "embed", "fields", "value",
    "where", "order_by",
    "through", "distinct", "key", "except", "*", "flat", "group by id", "having", "filter (where", "array_agg(",
    "json_build_object(", "exists (select 1 from", "with t as (", "lateral (", "row_number() over (", "order by", "distinct on (",
    "limit", "total", "required", "strong", "sql", "topic", "shards", "format", "decimals", "key", "columns", "int",
    "table", "deleted", "column", "values", "absent", "unrepresentable",
    "decimal(12,2)", "decimal(99,99)",
    "timestamp(us)", "json[]", "string[]", "float", "date", "bool", "select", "from", "left join", "and", "or", "not", "is",
    "in", "between",
    "like", "escape", "case", "when", "then", "else", "end", "cast(", "::int", "::decimal(3)", "count(*)", "sum(", "avg(",
    "min(", "now()", "clock", "interval '1 day'", "interval", "current_date", "extract(epoch from",
    "||", "+", "-", "/", "=", "<>", "<", ">=", "(", ")", ",", ".", ";", "a < b < c", "f * 1e200", "2147483648",
    "9223372036854775808", "1/0",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 42, 2**31, 2**63 - 1, 2**63, -(2**64), 10**37, 10**38, 10**125, Decimal("0.5"),
    Decimal("-0.0"), Decimal("1.50"),
    Decimal("1E+126"), Decimal("1E-130"), Decimal("1E+400"), Decimal("1E-400"), Decimal("1E+999999"),
    Decimal("12345678901234567890.123456789"),
    "", " ", "0", "-1", "1e5", "NaN", "Infinity", "abc", "\x00", "\u2028", "é", "\U0001f600", "x" * 2000, "#", "%", "!",
    "2020-02-29",
    "2020-02-30", "0000-01-01", "9999-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00+23:59", "2020-01-01T00:00:00.1234567Z",
    "AQ==", "////",
    "__debezium_unavailable_value", {}, [], [None], [[]], {"": None}, {"id": None}, {"scale": 2, "value": "AQ=="},
    {"scale": 10**9, "value": "AQ=="},
    {"before": None, "after": {}, "op": "u"}, {"payload": {}}, {"schema": {}, "payload": None}, {"op": "d"}, [1, "a", None, {}],
]  # fmt: skip
_TOKEN = re.compile(r"\s+|\w+|.", re.DOTALL)


def mutate_text(text: str, random: Random, words: list[str] = WORDS) -> str:
    """The text after one to four changes: parts of it removed, repeated, moved, or replaced by awkward words."""
    for _ in range(random.choice((1, 1, 2, 4))):
        text = _change(text, random, words)
    return text


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """The bytes after one to four changes: of single bits and bytes, or of their text."""
    if random.random() < 0.5:
        return mutate_text(data.decode(errors="replace"), random).encode(errors="replace")
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(changed) + 1)
        match random.randrange(3):
            case 0:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                changed[at:at] = random.choice(
                    (b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"\\", b"{", b"[", b"9" * 5000)
                )
            case 2:
                del changed[at : at + random.randint(1, 20)]
    return bytes(changed)


def mutate_json(value: Any, random: Random) -> Any:
    """A copy of a JSON value with one part replaced, removed or renamed."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        name, changed = random.choice(list(value)), dict(value)
        match random.randrange(6):
            case 0:
                del changed[name]
            case 1:
                changed[random.choice((name.upper(), "", "id", "__op", "\x00", "payload"))] = changed.pop(name)
            case _:
                changed[name] = mutate_json(value[name], random)
        return changed
    if isinstance(value, list) and value and random.random() < 0.8:
        at, elements = random.randrange(len(value)), list(value)
        elements[at] = mutate_json(value[at], random)
        return elements
    return random.choice(VALUES)


def _change(text: str, random: Random, words: list[str]) -> str:
    tokens, lines = _TOKEN.findall(text), text.splitlines(keepends=True)
    if not tokens:
        return random.choice(words)
    at, line = random.randrange(len(tokens)), random.randrange(len(lines))
    match random.randrange(9):
        case 0 | 1 | 2:
            tokens[at] = random.choice(words)
        case 3:
            tokens.insert(at, random.choice(words))
        case 4:
            tokens[at] = random.choice(tokens)
        case 5:
            del tokens[at : at + random.randint(1, 5)]
        case 6:
            lines.insert(random.randrange(len(lines) + 1), lines[line])
            return "".join(lines)
        case 7:
            del lines[line]
            return "".join(lines)
        case 8:
            lines[line] = " " * random.randrange(5) + lines[line].lstrip()
            return "".join(lines)
    return "".join(tokens)
