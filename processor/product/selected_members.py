"""The members that a level selects of its rows, as values and as JSON text.

Products that show a column of a row share the JSON text of its value.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from processor.product.expressions.evaluate import Match, RowLevel, Scope, compile_expression
from processor.product.expressions.expression import Column
from processor.product.product import Fields, WholeRow
from processor.records.canonical_json import dumps
from processor.records.entity import Entity
from processor.records.record import Value


class SelectedMembers(NamedTuple):
    """Makes the selected members of a row: their values by name, or their JSON text without braces."""

    values: Callable[[Scope], dict[str, Value]]
    text: Callable[[Scope], str]


class ColumnTexts(dict[str, str]):
    """The JSON text of each column of a row, made when somebody asks for it."""

    def __init__(self, columns: Mapping[str, Value]) -> None:
        super().__init__()
        self._columns = columns

    def __missing__(self, column: str) -> str:
        text = self[column] = dumps(self._columns.get(column))
        return text


def select_members(
    entity: Entity, selection: WholeRow | Fields, level: RowLevel, embedded: Collection[str] = ()
) -> SelectedMembers:
    """The members that a level of rows of `entity` selects. `embedded`: the names of the members that the level embeds; a whole
    row has no undeclared column under such a name."""
    if isinstance(selection, WholeRow):
        row = partial(_whole_row, entity, frozenset(embedded))
        return SelectedMembers(row, lambda scope: dumps(row(scope))[1:-1])
    form = members_form(name for name, _ in selection.members)
    own = [(name, of.name) for name, of in selection.members if isinstance(of, Column) and not (of.path or of.up)]
    if own and len(own) == len(selection.members):
        texts = itemgetter(*[column for _, column in own])
        return SelectedMembers(
            lambda scope: {name: scope[0].columns.get(column) for name, column in own},
            lambda scope: form % texts(_column_texts(scope[0])),
        )
    members = [(name, compile_expression(of, level)) for name, of in selection.members]
    return SelectedMembers(
        lambda scope: {name: evaluate(scope) for name, evaluate in members},
        lambda scope: form % tuple([dumps(evaluate(scope)) for _, evaluate in members]),
    )


def members_form(names: Iterable[str]) -> str:
    """The JSON text of members with these names, to format with the text of each value."""
    return ",".join(f"{dumps(name).replace('%', '%%')}:%s" for name in names)


def _column_texts(row: Match) -> ColumnTexts:
    texts: ColumnTexts | None = row.found.get(ColumnTexts)
    if texts is None:
        texts = row.found[ColumnTexts] = ColumnTexts(row.columns)
    return texts


def _whole_row(entity: Entity, embedded: frozenset[str], scope: Scope) -> dict[str, Value]:
    columns, more = scope[0].columns, scope[0].more
    return {c: columns.get(c) for c in entity.columns} | {c: more[c] for c in sorted(more.keys() - embedded)}
