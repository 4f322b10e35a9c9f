"""The part of an index, or of a partition, that a read asks for: from a first to a last name, both included. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from statestore.keys import index_row, index_rows
from statestore.postgres.parameters import NumberColumn, TextColumn, number_column, text_column
from statestore.postgres.stored_text import NEXT, stored_key
from statestore.store import Query, Read


class Bounds(NamedTuple):
    """The names that a read asks for, as the table holds them. `last` None: up to the end."""

    value: str
    first: str
    last: str | None


def bounds(read: Read) -> Bounds:
    """The bounds of a read."""
    source, after, _ = read
    if isinstance(source, str):
        return Bounds(stored_key(source), stored_key(after.sk) + NEXT if after else "", None)
    first, last = _range(source)
    behind = stored_key(index_row(after)) + NEXT if after else ""
    return Bounds(stored_key(source.value), max(first, behind), last)


def bound_columns(reads: Sequence[Read]) -> tuple[TextColumn, TextColumn, TextColumn, NumberColumn]:
    """The columns value, first, last and most of these reads."""
    found = [bounds(read) for read in reads]
    values, firsts, lasts = ([one[n] for one in found] for n in range(3))
    return (
        text_column(values),
        text_column(firsts),
        text_column(lasts),
        number_column([read.limit for read in reads]),
    )


def _range(query: Query) -> tuple[str, str | None]:
    if query.row is not None:
        name = stored_key(index_row(query.row))
        return name, name
    if query.entity is None:
        return "", None
    prefix = stored_key(index_rows(query.entity))
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)  # the first text behind all with this prefix
