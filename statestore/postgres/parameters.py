"""The parameters of a statement: one array a column, in the binary format of Postgres, for all rows together.

psycopg's own arrays take four times the CPU, because they look for the type of each element.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

_TEXT, _TEXTS, _NUMBER, _NUMBERS = 25, 1009, 20, 1016
"""The types text, text[], bigint and bigint[], by Postgres' own numbers."""
_HEAD: Final = Struct("!iIIii")
_LENGTH: Final = Struct("!i")
_INT64: Final = Struct("!iq")
_NULL: Final = _LENGTH.pack(-1)


class TextColumn(NamedTuple):
    """An array of texts, as Postgres reads it."""

    data: bytes


class NumberColumn(NamedTuple):
    """An array of numbers of 64 bits, as Postgres reads it."""

    data: bytes


def text_column(values: Sequence[str | None]) -> TextColumn:
    """A column of texts."""
    return byte_column([None if value is None else value.encode() for value in values])


def byte_column(values: Sequence[bytes | None]) -> TextColumn:
    """A column of texts in UTF-8."""
    pack = _LENGTH.pack
    parts = [_NULL if value is None else pack(len(value)) + value for value in values]
    return TextColumn(_array(_TEXT, parts))


def number_column(values: Sequence[int | None]) -> NumberColumn:
    """A column of numbers."""
    return NumberColumn(_array(_NUMBER, [_NULL if value is None else _INT64.pack(8, value) for value in values]))


def teach(connection: Connection[Any]) -> None:
    """Lets a connection take columns as parameters."""
    connection.adapters.register_dumper(TextColumn, _TextColumnDumper)
    connection.adapters.register_dumper(NumberColumn, _NumberColumnDumper)


def _array(kind: int, parts: Iterable[bytes]) -> bytes:
    elements = list(parts)
    return _HEAD.pack(1, 1, kind, len(elements), 1) + b"".join(elements)


class _TextColumnDumper(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: TextColumn) -> bytes:
        return obj.data


class _NumberColumnDumper(_TextColumnDumper):
    oid = _NUMBERS
