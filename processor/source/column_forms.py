"""How a column of the source compares with its declared type: the SQL that gives a value as text, and its reading.

The text of an `exact` form equals `stored_text` of the stored value, so the source can hash it. Other forms must be read: JSON
and floats have many texts of one value. A column without a form cannot be compared, and the reason names why. Pure.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, NamedTuple

from processor.records import canonical_json
from processor.records.entity import ColumnType
from processor.records.record import Value
from processor.records.values import canonical_value

ReadText = Callable[[str], Value]


class ColumnForm(NamedTuple):
    """`sql`: of a value as text, with `{c}` for the column; `read`: the text as a JSON value. `json`: the text is JSON, and rows
    hold it as text where their records had no schema."""

    sql: str
    read: ReadText = str
    exact: bool = True
    json: bool = False


_SECONDS: Final = 'YYYY-MM-DD"T"HH24:MI:SS.US'
_INTEGERS: Final = re.compile(r"(smallint|integer|bigint|oid|(tiny|small|medium|big)?int\b.*|year.*)")
_TEXTS: Final = re.compile(
    r"(text|character varying.*|uuid|enum.*|citext|inet|cidr|macaddr8?|varchar.*|\w+text|set\(.*"
    r'|name|"char"|ltree|tsvector|xml|(int4|int8|num|date|ts)range)'
)
_CHARS: Final = re.compile(r"(character|char|bpchar)(\(.*\))?")
_DECIMALS: Final = re.compile(r"(numeric|decimal).*")
_FLOATS: Final = re.compile(r"(real|double.*|float)")
_TIMES: Final = re.compile(r"(timestamp.*|datetime.*)")
_ELEMENTS: Final = ("int", "string", "bool", "decimal", "float")


def form_of(kind: str, declared: ColumnType, *, mysql: bool) -> ColumnForm | str:
    """The form of a column whose type the source writes as `kind`; else the reason why it has none."""
    form = _array(kind, declared, mysql) if declared.array else _single(kind, declared.name, mysql)
    if isinstance(form, ColumnForm) and declared.name == "timestamp" and declared.unit == "ms":
        return form._replace(sql=f"{_trimmed(_cut(kind, mysql))}")
    if isinstance(form, ColumnForm) and form.json and (declared.text or declared.array):
        return form._replace(json=False)  # both sides are read
    return form or f"{kind} declared as {declared}"


def _single(kind: str, declared: str, mysql: bool) -> ColumnForm | None:
    text = "CONVERT({c} USING utf8mb4)" if mysql else "{c}::text"
    plain = "CAST({c} AS CHAR)" if mysql else "{c}::text"
    match declared:
        case "int" if _INTEGERS.fullmatch(kind):
            return ColumnForm(plain, int)
        case "bool" if kind == "boolean":
            return ColumnForm(plain, lambda text: text == "true")
        case "bool" if kind.startswith("tinyint"):
            return ColumnForm("IF({c} IS NULL, NULL, IF({c}, 'true', 'false'))", lambda text: text == "true")
        case "decimal" | "float" if _INTEGERS.fullmatch(kind):
            return ColumnForm(plain)
        case "decimal" | "float" if _DECIMALS.fullmatch(kind):
            return ColumnForm(_digits(kind) if mysql else "trim_scale({c})::text")
        case "float" if _FLOATS.fullmatch(kind) and not (mysql and kind.startswith("float")):
            return ColumnForm(plain, exact=False)
        case "string" if _TEXTS.fullmatch(kind) or (mysql and _CHARS.fullmatch(kind)):
            return ColumnForm(text)
        case "string" if _CHARS.fullmatch(kind):  # a cast to text drops the blanks at the end, which Debezium sends
            return ColumnForm("CASE WHEN {c} IS NOT NULL THEN concat({c}) END")
        case "string" if kind in ("json", "jsonb"):
            return ColumnForm(text, exact=False, json=True) if mysql else ColumnForm(text)
        case "date" if kind == "date":
            return ColumnForm("DATE_FORMAT({c}, '%Y-%m-%d')" if mysql else "to_char({c}, 'YYYY-MM-DD')")
        case "timestamp" if _TIMES.fullmatch(kind):
            return ColumnForm(_trimmed(_instant(kind, mysql)))
        case "json" if kind in ("json", "jsonb") or (mysql and kind == "longtext"):
            return ColumnForm(text, exact=False, json=True)
    return None


def _array(kind: str, declared: ColumnType, mysql: bool) -> ColumnForm | None:
    if kind in ("json", "jsonb"):
        return _single(kind, "json", mysql)
    if not kind.endswith("[]") or declared.name not in _ELEMENTS:
        return None
    return ColumnForm("to_json({c})::text", canonical_json.loads, exact=False)


def _instant(kind: str, mysql: bool) -> str:
    """A time in UTC, with six digits of the second."""
    if mysql:
        return "DATE_FORMAT({c}, '%Y-%m-%dT%H:%i:%s.%f')"
    return f"to_char({{c}}{' AT TIME ZONE $$UTC$$' if 'with time zone' in kind else ''}, '{_SECONDS}')"


def _cut(kind: str, mysql: bool) -> str:
    return f"left({_instant(kind, mysql)}, 23)"


def _trimmed(seconds: str) -> str:
    """A time without the last zeros of its second."""
    if "DATE_FORMAT" in seconds:
        return f"CONCAT(TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {seconds})), 'Z')"
    return f"rtrim(rtrim({seconds}, '0'), '.') || 'Z'"


def _digits(kind: str) -> str:
    """A decimal of MySQL without its last zeros."""
    text = "CAST({c} AS CHAR)"
    scaled = "," in kind and not kind.rstrip(")").endswith(",0")
    return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))" if scaled else text


def stored_text(value: Any) -> str:
    """The text of a canonical value that an exact form gives, too."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Decimal():
            return format(value, "f")
    return str(value) if isinstance(value, int) else canonical_json.dumps(value)


def source_value(text: str | None, form: ColumnForm, declared: ColumnType) -> Value:
    """The canonical value of a text of the source. Raises ValueError where the declared type refuses it: its record is a dead
    letter."""
    return None if text is None else canonical_value(form.read(text), declared)


def comparable_value(value: Value, form: ColumnForm) -> Value:
    """The value as two sides compare it: JSON that a row holds as text is read."""
    if form.json and isinstance(value, str):
        try:
            return canonical_json.loads(value)
        except ValueError:
            return value
    return value
