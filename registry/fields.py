"""The fields of slots and edges. Pure.

A field is a column (`code`), the elements of one (`ids[]`, `inner[].id::number`), or text of either that compares in its own way
(`code::ci`, `tags[]::ci+trimmed`). In place of a column, a field may have an expression over columns of the row
(`computed_column`):

    =string {"lower(string)":["email"]}                         lower(email)
    =string+ci {"left(string,int)":["code",["int","3"]]}        left(code, 3), whose text compares so
    =json {"->(json,string)":["meta",["string","refs"]]}[].id   the elements of an array within json

Such a text is complete: no definition of an author can change what a slot holds. A name of a function stays for ever.

Behind its fields, a slot with an order has a text for each term of it, which no key has:

    =order {"desc":["at"]}                                      the rows of one key by `at`, descending; or `asc`
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

_COMPUTED = re.compile(r"=(\w+)((?:\+\w+)*) (\{.*\})", re.DOTALL)
_ELEMENTS = re.compile(r"(.+?)\[\](?:\..+?)?(?:::[\w+]+)?")
_COMPARED = re.compile(r"(.+)::(?:ci|trimmed|ci\+trimmed)")


def column_of(field: str) -> str:
    """The column of a field."""
    if "::" not in field and "[]" not in field:
        return field
    found = _ELEMENTS.fullmatch(field) or _COMPARED.fullmatch(field)
    return found.group(1) if found else field


class ComputedField(NamedTuple):
    """An expression in place of a column: the type of its values, how their text compares, and the node as JSON."""

    type: str
    compare: tuple[str, ...]
    node: Any


@lru_cache(maxsize=4096)
def computed_column(column: str) -> ComputedField | None:
    """The expression in place of a column; None for a column."""
    found = _COMPUTED.fullmatch(column) if column.startswith("=") else None
    return found and ComputedField(found[1], tuple(filter(None, found[2].split("+"))), json.loads(found[3]))


def columns_of(field: str) -> tuple[str, ...]:
    """The columns of the row that a field reads."""
    column = column_of(field)
    computed = computed_column(column)
    return (column,) if computed is None else tuple(dict.fromkeys(_columns_in(computed.node)))


def _columns_in(node: Any) -> Iterator[str]:
    """A column is a text, a literal a list, and a call an object of its function with a list of arguments."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for (args,) in [node.values()]:
            for arg in args:
                yield from _columns_in(arg)


def shown_field(field: str) -> str:
    """The field as people read it: `lower(email)`, `ref::int`, `meta #> '{refs}'[].id`."""
    column = column_of(field)
    computed = computed_column(column)
    return field if computed is None else _shown_node(computed.node) + field.removeprefix(column)


def shown_fields(fields: Iterable[str]) -> str:
    """The fields of a slot or an edge, as people read them: `owner#lower(name)`."""
    return "#".join(map(shown_field, fields))


def _shown_node(node: Any) -> str:
    if isinstance(node, str):
        return node
    if isinstance(node, list):
        quoted = isinstance(node[1], str) and node[0] not in ("int", "decimal", "float")
        return (
            f"'{node[1]}'" if quoted else str(node[1]).lower() if isinstance(node[1], bool) else str(node[1] or "null")
        )
    ((key, args),) = node.items()
    name, shown = key.partition("(")[0], [*map(_shown_node, args)]
    if name in ("as stored", "of scale", "without zeros"):
        return shown[0]
    if name.startswith("to "):
        return f"{shown[0]}::{name[3:]}"
    return f"{name}({', '.join(shown)})" if name[0].isalpha() or len(shown) != 2 else f" {name} ".join(shown)


def order_field(column: str, descending: bool) -> str:
    """The text of a term of an order."""
    name = json.dumps(column).replace("[", "\\u005b").replace("]", "\\u005d")
    return f'=order {{"{"desc" if descending else "asc"}":[{name}]}}'


def split_order(fields: Iterable[str]) -> tuple[tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """The fields of a slot's key, and the terms of its order: each column, and whether it descends."""
    key: list[str] = []
    terms: list[tuple[str, bool]] = []
    for field in fields:
        computed = computed_column(field)
        if computed is None or computed.type != "order":
            key.append(field)
        else:
            (((direction, (column,)),)) = computed.node.items()
            terms.append((column, direction == "desc"))
    return tuple(key), tuple(terms)


def type_text(field: str, declared: Mapping[str, str]) -> str:
    """The type of the values in a field's column, as in a declaration; empty where it is undeclared."""
    column = column_of(field)
    computed = computed_column(column)
    return declared.get(column, "") if computed is None else computed.type
