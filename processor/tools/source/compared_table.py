"""How a table of the source compares with its entity: the form of each column, and the statements of a comparison.

A form is the SQL that gives a value as text, and the reading of this text. The text of an `exact` form equals `stored_text` of
the stored value, so the source can hash it. Other forms must be read: JSON and floats have many texts of one value. A column
without a form cannot be compared, and the reason names why.

Promises: pure. Does not: send a statement.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import md5
from typing import Any, Final, NamedTuple

from processor.engine.plan.plan import EntityPlan
from processor.values import canonical_json
from processor.values.entity import ColumnType
from processor.values.record import Value
from processor.values.values import canonical_value
from statestore import keys


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table of the source."""

    schema: str
    name: str
    columns: Mapping[str, str]
    """Name -> type as the source writes it."""
    key: tuple[str, ...]
    """The columns of the primary key, in its order; empty: the table has none."""
    nearby: bool
    """Whether the table is in the schema (MySQL: database) of the connection."""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


ReadText = Callable[[str], Value]


class ColumnForm(NamedTuple):
    """How a column gives its values as text."""

    sql: str
    """Of a value as text, with `{c}` for the column."""
    read: ReadText = str
    """The text as a JSON value."""
    exact: bool = True
    """Equal values have equal texts."""
    json: bool = False
    """The text is JSON, and rows hold it as text where their records had no schema."""


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


def finite_form(form: ColumnForm, declared: ColumnType, *, mysql: bool) -> ColumnForm:
    """The form that gives null for a date or a time that the declared type cannot hold: infinity, years before 0001 and after
    9999, MySQL's zero dates."""
    if declared.name not in ("date", "timestamp") or declared.array:
        return form
    if mysql:
        return form._replace(sql=f"IF({{c}} >= '0001-01-01', {form.sql}, NULL)")
    zone = " 00:00:00+00" if declared.name == "timestamp" else ""
    years = f"{{c}} >= '0001-01-01{zone}' AND {{c}} < '10000-01-01{zone}'"
    return form._replace(sql=f"CASE WHEN {years} THEN {form.sql} END")


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


DIGEST_DIGITS: Final = 12
"""Hex digits of a row's hash: 48 bits. Two rows that differ have the same ones once in 2.8e14 cases. The sum of a page fits into
64 bits."""
Texts = Sequence[Any]
"""The texts of a row: its key columns, then its compared columns; null is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """A table and its entity."""

    entity: EntityPlan
    table: SourceTable
    forms: Mapping[str, ColumnForm]
    """Of the columns that compare, in their order."""
    left_out: Mapping[str, str]
    """Column -> why it does not compare."""
    key: tuple[str, ...]
    """The key columns in the order of the source's index."""
    mysql: bool
    """MySQL or MariaDB, else PostgreSQL."""
    gone: tuple[str, ...] = ()
    """The declared columns that the table does not have, and of which the entity does not say `absent`."""

    @property
    def name(self) -> str:
        """The name of the entity."""
        return self.entity.name

    @property
    def nulled(self) -> tuple[str, ...]:
        """The columns whose values compare as null where the declared type cannot hold them."""
        return tuple(name for name in self.forms if self.entity.entity.nulls(name))

    @property
    def is_exact(self) -> bool:
        """Whether the source can hash its rows."""
        return all(form.exact for form in self.forms.values())

    @property
    def is_ordered(self) -> bool:
        """Whether this side knows the order of the source's keys: all of them are integers."""
        return all(str(self.entity.entity.columns[name]) == "int" for name in self.key)

    def encoded(self, texts: Texts) -> str:
        """The encoded key of a row of the source. Raises ValueError for a key that the declared types refuse."""
        values = dict(zip(self.key, self.key_values(texts), strict=True))
        return keys.encode([values[name] for name in self.entity.entity.key]) or ""

    def key_values(self, texts: Texts) -> list[Value]:
        """The key of a row of the source, in the order of its index."""
        columns = self.entity.entity.columns
        pairs = zip(self.key, texts, strict=False)
        return [source_value(text, self.forms[name], columns[name]) for name, text in pairs]

    def stored_digest(self, columns: Mapping[str, Value]) -> int:
        """The hash of a stored row, equal to that of an equal row of the source."""
        values = (comparable_value(columns.get(name), form) for name, form in self.forms.items())
        texts = [None if value is None else stored_text(value) for value in values]
        row = "".join("-" if text is None else f"{len(text)}:{text}" for text in texts)
        return int(md5(row.encode(), usedforsecurity=False).hexdigest()[:DIGEST_DIGITS], 16)

    def place(self, columns: Mapping[str, Value]) -> str:
        """A text that sorts as the source sorts the key, where `is_ordered`; else empty."""
        return "".join(f"{columns[name] + 2**63:020d}" for name in self.key) if self.is_ordered else ""

    def fingerprint(self, after: bool, size: int) -> str:
        """The number of rows of a page, and the sum of their hashes."""
        page = f"SELECT {self._digest()} AS d FROM {self._from(after, size)}"
        total = "CAST(sum(d) AS CHAR)" if self.mysql else "sum(d)::text"
        return f"SELECT count(*), {total} FROM ({page}) AS page"

    def last_key(self, after: bool, size: int) -> str:
        """The key of the last row of a full page; no row for the last page."""
        return f"SELECT {self._keys()} FROM {self._from(after, 1)} OFFSET {size - 1}"

    def digests(self, after: bool, size: int) -> str:
        """The keys of a page and the hash of each row; for forms that are not exact, the values."""
        shown = self._digest() if self.is_exact else self._values()
        return f"SELECT {self._keys()}, {shown} FROM {self._from(after, size)}"

    def rows(self, count: int) -> str:
        """The keys and the values of rows, by `count` keys."""

        def is_row(n: int) -> str:
            pairs = ((name, f"k{n}_{i}") for i, name in enumerate(self.key))
            return " AND ".join(f"{self._column(name)} = {self._parameter(name, at)}" for name, at in pairs)

        wanted = " OR ".join(f"({is_row(n)})" for n in range(count))
        return f"SELECT {self._keys()}, {self._values()} FROM {self._table()} WHERE {wanted}"

    def parameters(self, values: Iterable[Value], prefix: str) -> dict[str, Any]:
        """The parameters of a key, in the order of the index."""
        return {f"{prefix}_{i}": self._bound(value) for i, value in enumerate(values)}

    def _bound(self, value: Value) -> Any:
        if not self.mysql:
            return stored_text(value)
        return value.replace("T", " ").removesuffix("Z") if isinstance(value, str) and self._is_time(value) else value

    def _is_time(self, value: str) -> bool:
        return value.endswith("Z") and any(str(self.entity.entity.columns[n]).startswith("timestamp") for n in self.key)

    def _table(self) -> str:
        return f"{self._quoted(self.table.schema)}.{self._quoted(self.table.name)} t"

    def _from(self, after: bool, limit: int) -> str:
        order = ", ".join(map(self._column, self.key))
        where = f" WHERE {self._behind()}" if after else ""
        return f"{self._table()}{where} ORDER BY {order} LIMIT {limit}"

    def _behind(self) -> str:
        """Behind the key `a_0, a_1, ...`, so that an index serves it in every database."""
        places = [(self._column(name), self._parameter(name, f"a_{i}")) for i, name in enumerate(self.key)]
        found = ""
        for column, value in reversed(places):
            found = f"({column} > {value} OR ({column} = {value} AND {found}))" if found else f"{column} > {value}"
        column, value = places[0]
        return f"{column} >= {value} AND {found}" if len(places) > 1 else found

    def _parameter(self, name: str, parameter: str) -> str:
        return f":{parameter}" if self.mysql else f"CAST(:{parameter} AS {self._key_type(name)})"

    def _key_type(self, name: str) -> str:
        kind = self.table.columns[name]
        return "text" if kind == "enum" else kind

    def _keys(self) -> str:
        return ", ".join(map(self._text, self.key))

    def _values(self) -> str:
        return ", ".join(map(self._text, self.forms))

    def _text(self, name: str) -> str:
        return self.forms[name].sql.replace("{c}", self._column(name))

    def _digest(self) -> str:
        sized = "CONCAT(CHAR_LENGTH({0}), ':', {0})" if self.mysql else "char_length({0})::text || ':' || {0}"
        parts = [f"coalesce({sized.format(f'({self._text(name)})')}, '-')" for name in self.forms]
        if self.mysql:
            return f"CAST(CONV(LEFT(MD5(CONCAT({', '.join(parts)})), {DIGEST_DIGITS}), 16, 10) AS UNSIGNED)"
        bytes_ = f"convert_to({' || '.join(parts)}, 'UTF8')"
        return f"('x' || left(md5({bytes_}), {DIGEST_DIGITS}))::bit({4 * DIGEST_DIGITS})::bigint"

    def _column(self, name: str) -> str:
        column = f"t.{self._quoted(name)}"  # a bare name would mean its text in an ORDER BY
        return (
            f"{column}::text" if not self.mysql and self.table.columns[name] == "enum" and name in self.key else column
        )

    def _quoted(self, name: str) -> str:
        quote = "`" if self.mysql else '"'
        return (quote + name.replace(quote, 2 * quote) + quote).replace(":", r"\:")


def compare_with(entity: EntityPlan, table: SourceTable, *, mysql: bool) -> ComparedTable | str:
    """The comparison of an entity with its table; else why there is none."""
    forms: dict[str, ColumnForm] = {}
    left_out: dict[str, str] = {}
    for name, declared in entity.entity.columns.items():
        kind = table.columns.get(name)
        form = "the table has no such column" if kind is None else form_of(kind, declared, mysql=mysql)
        if isinstance(form, ColumnForm):
            forms[name] = finite_form(form, declared, mysql=mysql) if entity.entity.nulls(name) else form
        else:
            left_out[name] = form
    for name in entity.entity.key:
        if name in left_out:
            return f"key column {name}: {left_out[name]}"
        if not forms[name].exact or entity.entity.columns[name].unit == "ms":
            return f"key column {name}: {table.columns[name]} has no exact order"
    left_out |= {name: "undeclared" for name in table.columns if name not in entity.entity.columns}
    key = table.key if set(table.key) == set(entity.entity.key) else entity.entity.key
    gone = tuple(name for name in left_out if name not in table.columns and entity.entity.absent_choice(name) is None)
    left_out = {name: why for name, why in left_out.items() if name not in gone}
    return ComparedTable(entity=entity, table=table, forms=forms, left_out=left_out, key=key, mysql=mysql, gone=gone)
