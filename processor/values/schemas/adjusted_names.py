"""The names that Debezium gives to columns whose own names Avro does not allow (`field.name.adjustment.mode`).

column      avro        avro_unicode
user-id     user_id     user_u002did
2fa         _2fa        _u0032fa
user_id     user_id     user_u005fid
"""

from collections.abc import Iterable, Mapping
from string import ascii_letters, digits
from typing import Final, TypeVar

from processor.values.mismatch import Mismatch

T = TypeVar("T")
_FIRST: Final = frozenset(ascii_letters)
_LATER: Final = frozenset(ascii_letters + digits)


def adjusted_names(columns: Iterable[str]) -> dict[str, str]:
    """Adjusted name -> column, for the columns that have one. An adjusted name that is a column itself, or that two columns
    share, means neither."""
    columns = frozenset(columns)
    found: dict[str, set[str]] = {}
    for column in columns:
        for adjusted in {adjust_name(column, unicode=False), adjust_name(column, unicode=True)} - columns:
            found.setdefault(adjusted, set()).add(column)
    return {adjusted: next(iter(of)) for adjusted, of in found.items() if len(of) == 1}


def with_columns(members: Mapping[str, T], names: Mapping[str, str]) -> Mapping[str, T]:
    """The members under the names of their columns. Raises ValueError where two members are one column."""
    if names.keys().isdisjoint(members):
        return members
    made = {names.get(name, name): value for name, value in members.items()}
    if len(made) < len(members):
        raise _clash(members, names)
    return made


def _clash(members: Iterable[str], names: Mapping[str, str]) -> Mismatch:
    same: dict[str, list[str]] = {}
    for name in members:
        same.setdefault(names.get(name, name), []).append(name)
    column, found = next((column, found) for column, found in same.items() if len(found) > 1)
    both = " and ".join(map(repr, found))
    return Mismatch(f"column {column!r}: {both} of the record may both be this column", "column-type")


def adjust_name(column: str, *, unicode: bool = False) -> str:
    """The name in letters, digits and `_`: each other character becomes `_`, or with `unicode` its code."""
    kept = "" if unicode else "_"
    text = ""
    for n, char in enumerate(column):
        if char in kept or char in (_LATER if n else _FIRST):
            text += char
            continue
        units = char.encode("utf-16-be", "surrogatepass").hex()
        codes = [units[start : start + 4] for start in range(0, len(units), 4)]
        text += "".join(f"_u{code}" for code in codes) if unicode else "_" * len(codes)
        text += char if char in digits and not unicode else ""
    return text
