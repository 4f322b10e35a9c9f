"""Makes the document from the rows that its joins found: filter, order, limit, selection. Pure, and the same for every store.

Each level makes its members in the product's order: first the selected ones, then the embeds; either as values, or at once as
JSON text. `counted_rows` says which rows of a join count, and in which order. Renderers of one root share what is equal in their
products (`SharedLevel`): the rows that count, and the JSON text of an embed that several of them show.
"""

import enum
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

from processor.counts import Count
from processor.product.counted_rows import CountedElements, CountedRows, Entities, SharedLevel, counting
from processor.product.expressions.evaluate import GROUP, Evaluate, FindRows, Scope, compile_expression
from processor.product.expressions.evaluate import Match as Match
from processor.product.expressions.expression import Column, Expression
from processor.product.product import BareValue, Fields, Join, Product, Selection, WholeRow
from processor.product.selected_members import members_form, select_members
from processor.records.canonical_json import dumps
from processor.records.entity import Entity
from processor.records.record import Value

Shape = tuple[tuple[str, int, "Shape"], ...]
"""The joins of a product in the tree of its root: name, number of the node, and the joins below."""


class Gone(enum.Enum):
    """The type of `GONE`: the root has no document. It fails `where`, or a required join has no row."""

    GONE = "gone"


GONE: Final = Gone.GONE


@dataclass(slots=True, kw_only=True)
class Renderer:
    """Renders documents of one product. `tally` counts, for metrics, lists that a limit `cut` and `one` joins with several rows
    (`ambiguous`). `shape`: the numbers by which rows have the rows of joins; None: they have them by the names of the joins.
    `shared`: what renderers of the root share, for documents that become JSON; a list that they share counts once."""

    product: Product
    entities: Entities
    tally: Counter[str]
    shape: Shape | None = None
    shared: SharedLevel | None = None
    level: "CompiledLevel" = field(init=False)
    where: Evaluate | None = field(init=False)

    def __post_init__(self) -> None:
        product, shared = self.product, self.shared or SharedLevel()
        compiler = _Compiler(self.entities, self.tally)
        entity = self.entities[product.root]
        self.level = compiler.level(entity, product.selection, product.joins, self.shape, shared)
        self.where = None if product.where is None else compile_expression(product.where, self.level)

    def document(self, top: Match) -> Value | Gone:
        """The document of the root row `top`, or GONE."""
        scope: Scope = (top, None)
        return self.level.render(scope) if self._is_shown(scope) else GONE

    def text(self, top: Match) -> str | Gone:
        """The same document as compact JSON."""
        scope: Scope = (top, None)
        return self.level.text(scope) if self._is_shown(scope) else GONE

    def _is_shown(self, scope: Scope) -> bool:
        return self.level.complete(scope) and (self.where is None or self.where(scope) is True)


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles levels and joins. Takes what the shared level has already."""

    entities: Entities
    tally: Counter[str]

    def level(
        self, entity: Entity, selection: Selection, joins: Sequence[Join], shape: Shape | None, shared: SharedLevel
    ) -> "CompiledLevel":
        below: Mapping[str, tuple[object, Shape | None]]
        below = {join.name: (join.name, None) for join in joins} if shape is None else {n: (p, s) for n, p, s in shape}
        return CompiledLevel(
            entity, selection, {join.name: self._join(join, entity, *below[join.name], shared) for join in joins}
        )

    def _join(
        self, join: Join, above: Entity, place: object, shape: Shape | None, shared: SharedLevel
    ) -> "CompiledJoin":
        known: CompiledJoin | None = shared.embeds.get((place, join))
        if known is not None:
            return known
        entity, key = self.entities[join.entity], (place, counting(join))
        counted = shared.rows.get(key)
        rows = counted or (CountedElements if join.listed else CountedRows)(join, place, above, entity, self.tally)
        level = self.level(entity, join.selection, join.joins, shape, rows.level)
        if counted is None:
            rows.compile(join, level, self.entities)
            shared.rows[key] = rows
        made = (
            CompiledListJoin(join, rows, level, entity)
            if isinstance(rows, CountedElements)
            else CompiledJoin(join, rows, level)
        )
        shared.embeds[place, join] = made
        return made


class CompiledLevel:
    """A compiled level of a product's tree. `render` makes the level's value from a row, or from a group of rows, `text` its JSON
    text. `filtered`: a row counts only if required joins below it have rows."""

    __slots__ = ("_required", "filtered", "joins", "render", "text")

    def __init__(self, entity: Entity, selection: Selection, joins: Mapping[str, "CompiledJoin"]) -> None:
        self.joins = joins
        self._required = {n: one.rows.of for n, one in joins.items() if one.join.required and not one.join.listed}
        self.filtered = bool(self._required)
        self.render, self.text = self._renderers(entity, selection)

    def below(self, join: str) -> "CompiledLevel":
        return self.joins[join].level

    def rows(self, join: str) -> FindRows:
        return self.joins[join].rows.of

    def shown(self, join: str) -> Evaluate:
        return self.joins[join].show

    def complete(self, scope: Scope) -> bool:
        """Whether every required join of the row has a row that counts."""
        return all(rows(scope) for rows in self._required.values())

    def lacking(self, scope: Scope) -> list[str]:
        """The required joins of the row that have no row that counts."""
        return [name for name, rows in self._required.items() if not rows(scope)]

    def _renderers(self, entity: Entity, selection: Selection) -> tuple[Evaluate, Callable[[Scope], str]]:
        if isinstance(selection, BareValue):
            evaluate = compile_expression(selection.expression, self)
            return evaluate, lambda scope: dumps(evaluate(scope))
        embeds = [joined for joined in self.joins.values() if joined.join.shown]
        embedded = [name for embed in embeds for name in embed.names]
        members, members_text = select_members(entity, selection, self, embedded)
        if not embeds:
            return members, lambda scope: f"{{{members_text(scope)}}}"

        def render(scope: Scope) -> Value:
            document = members(scope)
            for embed in embeds:
                document |= embed.members(scope)
            return document

        def text(scope: Scope) -> str:
            texts = [members_text(scope), *[embed.text(scope) for embed in embeds]]
            return f"{{{','.join(filter(None, texts))}}}"

        return render, text


class _Form(NamedTuple):
    """How a join shows its rows. `render`: of a level; `array`: of the rows; `write`: of a value."""

    render: Callable[["CompiledLevel"], Callable[[Scope], Any]]
    array: Callable[[list[Any]], Any]
    write: Callable[[Value], Any]


_VALUE: Final = _Form(attrgetter("render"), list, lambda value: value)
_TEXT: Final = _Form(attrgetter("text"), lambda texts: f"[{','.join(texts)}]", dumps)


class CompiledJoin:
    """A compiled join below a level. `names`: of its members. One JSON text of them serves all products that show it alike."""

    __slots__ = ("_aggregated", "_form", "join", "level", "names", "rows")

    def __init__(self, join: Join, rows: CountedRows, level: CompiledLevel) -> None:
        self.join, self.rows, self.level = join, rows, level
        self._aggregated = join.aggregated
        self.names = (join.name, f"{join.name}_total") if join.total else (join.name,)
        self._form = members_form(self.names)

    def members(self, scope: Scope) -> dict[str, Value]:
        """The embed's members."""
        return dict(zip(self.names, self._with_total(scope, self.show(scope)), strict=True))

    def text(self, scope: Scope) -> str:
        """The embed's members as JSON text without braces."""
        found = scope[0].found
        text: str | None = found.get(self)
        if text is None:
            text = found[self] = self._form % self._with_total(scope, self._made(scope, _TEXT))
        return text

    def show(self, scope: Scope) -> Value:
        """The value of the embed."""
        return self._made(scope, _VALUE)

    def _made(self, scope: Scope, form: _Form) -> Any:
        join, rows, render = self.join, self.rows.of(scope), form.render(self.level)
        if self._aggregated:
            return render((Match(columns={}, more={}, found={GROUP: rows}), scope))
        if not join.many:
            return render((rows[0], scope)) if rows else form.write(None)
        if join.limit is not None and len(rows) > join.limit:
            self.rows.tally[Count.CUT] += 1
            rows = rows[: join.limit]
        return form.array([render((row, scope)) for row in rows])

    def _with_total(self, scope: Scope, shown: Any) -> tuple[Any, ...]:
        return (shown, len(self.rows.of(scope))) if self.join.total else (shown,)


class CompiledListJoin(CompiledJoin):
    """A compiled list join. It shows each element of the array above, also an element without a row."""

    __slots__ = ("_absent", "_elements")

    def __init__(self, join: Join, rows: CountedElements, level: CompiledLevel, entity: Entity) -> None:
        super().__init__(join, rows, level)
        self._elements, self._absent = rows, self._without_row(entity)

    def _made(self, scope: Scope, form: _Form) -> Any:
        if self._aggregated:
            return super()._made(scope, form)
        render, shown = form.render(self.level), []
        for rows, values in self._elements.elements(scope):
            shown += [render((row, scope)) for row in rows]
            if not rows and not self.join.required:
                absent = self._absent(dict(zip(self._elements.columns, values, strict=True)), scope)
                shown.append(form.write(absent))
        return form.array(shown)

    def _without_row(self, entity: Entity) -> Callable[[Mapping[str, Value], Scope], Value]:
        """Shows an element without a row: all members are null except the join columns, and the joins below are empty."""
        match self.join.selection:
            case BareValue(expression=expression):
                name = _own_column(expression)
                return lambda element, scope: element.get(name)
            case Fields(members=selected):
                members = [(name, _own_column(expression)) for name, expression in selected]
            case WholeRow():
                members = [(name, name) for name in entity.columns]
        columns: dict[str, Value] = dict.fromkeys(entity.columns)
        places = [joined.rows.place for joined in self.level.joins.values()]
        embeds = [joined for joined in self.level.joins.values() if joined.join.shown]

        def absent(element: Mapping[str, Value], scope: Scope) -> Value:
            document = {name: element.get(column) for name, column in members}
            nothing = Match(columns, {}, {place: [] for place in places})
            for embed in embeds:
                document |= embed.members((nothing, scope))
            return document

        return absent


def _own_column(expression: Expression) -> str:
    """The name of the row's own column if the expression is one, else an empty text."""
    return expression.name if isinstance(expression, Column) and not (expression.path or expression.up) else ""
