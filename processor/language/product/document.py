"""Makes the document from the rows that its joins found: filter, order, limit, selection. Pure, and the same for every store.

Each level makes its members in the product's order: first the selected ones, then the embeds; either as values, or at once as
JSON text. Renderers of one root share what is equal in their products (`SharedLevel`): the rows that count, the JSON text of an
embed that several of them show, and the JSON text of a shown column's value.

The rows of a join that count are those that pass `where`, and that have a row in each `required` join below them. Where several
products join, filter and order alike, one `CountedRows` serves them all, and finds its rows once for each row above.

Rows are ordered by the terms of `order_by`; nulls come last in both directions. Ties, and rows without `order_by`, are ordered by
the row's primary key: column by column, numbers by value, text by code point. A list join has the order of the array above.

`read_root_key` reads a document's key as people write it: a JSON object (`{"email": "a@example.org"}`), or its one value
(`a@example.org`).
"""

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, Protocol

from processor.counts import Count
from processor.language.product.counted import Totals, aggregate_of_totals
from processor.language.product.expressions.expression import (
    GROUP,
    Aggregate,
    ClockTime,
    Column,
    Computed,
    Evaluate,
    Expression,
    FindRows,
    Path,
    RowLevel,
    Scope,
    Type,
    compile_expression,
    node_of,
    references,
)
from processor.language.product.expressions.expression import Match as Match
from processor.language.product.join_fields import converted_of, element_values, join_keys
from processor.language.product.product import (
    BareValue,
    Fields,
    Join,
    Product,
    Selection,
    WholeRow,
    align_columns,
    embeds,
    gathered_paths,
    lifted,
    members_below,
    root_entity,
)
from processor.values import canonical_json
from processor.values.canonical_json import dumps
from processor.values.entity import Entity
from processor.values.record import Value
from processor.values.values import canonical_value, to_microseconds
from registry.fields import column_of

Rank = Callable[[Value], Any]
Entities = Mapping[str, Entity]


@dataclass(slots=True)
class SharedLevel:
    """The compiled parts that products share at a level of their root's tree: the `rows` of its joins, by the place of the join
    and by all that decides which rows count; the `embeds`, by the place of the join and by the whole join."""

    rows: dict[Any, "CountedRows"] = field(default_factory=dict)
    embeds: dict[Any, Any] = field(default_factory=dict)


class CountingLevel(RowLevel, Protocol):
    """The level of a join's rows as one product sees it."""

    filtered: bool
    """Whether a row counts only with the rows of some joins below it."""

    def complete(self, scope: Scope) -> bool:
        """Whether every required join of the row has a row that counts."""


class CountedRows:
    """The rows of a join that count, for each row above. `place`: where `Match.found` has the rows that the join found. `level`:
    what products share at the level of these rows."""

    __slots__ = ("_complete", "_key", "_levels", "_many", "_order", "level", "place", "tally", "where")

    def __init__(self, join: Join, place: object, above: Entity, entity: Entity, tally: Counter[str]) -> None:
        self.level = SharedLevel()
        self.place, self.tally = place, tally
        self._many, self._key = join.many, _key_rank(entity)
        self._levels = join.level

    def compile(self, join: Join, level: CountingLevel, entities: Entities) -> None:
        """Compiles the conditions and the order of the join, at the level of its rows."""
        self._complete = level.complete if level.filtered else None
        self.where = None if join.where is None else compile_expression(join.where, level)
        self._order = [
            (compile_expression(term.by, level), _rank(_type_of(term.by, join, entities)), term.descending)
            for term in reversed(join.order_by)
        ]

    def of(self, scope: Scope) -> list[Match]:
        """The rows below the row of this scope. The caller must not change the list."""
        found = scope[0].found
        rows: list[Match] | None = found.get(self)
        if rows is None:
            rows = found[self] = self._count(scope)
        return rows

    def ordered(self, scopes: list[Scope]) -> list[Scope]:
        """The rows with the rows above them, in the order of the join; equal ones in the given order."""
        return [scope for _, scope in self.merged([(self, scope) for scope in scopes])]

    def merged(self, found: list["Gathered"], *, by_key: bool = True) -> list["Gathered"]:
        """Rows of several joins with one order, in it; equal ones by their keys, if all joins have one entity, or in the given
        order."""
        if by_key:
            key = self._key
            found = sorted(found, key=lambda one: key(one[1][0]))
        for n, (_, rank, descending) in enumerate(self._order):
            values = [(rows._order[n][0](scope), (rows, scope)) for rows, scope in found]
            ranked = [(rank(value), one) for value, one in values if value is not None]
            ranked.sort(key=itemgetter(0), reverse=descending)
            found = [one for _, one in ranked] + [one for value, one in values if value is None]
        return found

    def _count(self, scope: Scope) -> list[Match]:
        rows: list[Match] = scope[0].found[self.place]
        if self._levels and rows:
            rows = self._without_cycles(rows, scope)
        if self._complete is not None:
            rows = [row for row in rows if self._complete((row, scope))]
        if self.where is not None:
            rows = [row for row in rows if self.where((row, scope)) is True]
        if len(rows) > 1:
            rows = [row for row, _ in self.ordered([(row, scope) for row in rows])]
            if not self._many:
                self.tally[Count.AMBIGUOUS] += 1
                del rows[1:]
        return rows

    def _without_cycles(self, rows: list[Match], scope: Scope) -> list[Match]:
        """The rows of a recursive join that are not above themselves."""
        above = self._keys_above(scope)
        kept = [row for row in rows if self._key(row) not in above]
        self.tally[Count.CYCLES] += len(rows) - len(kept)
        return kept

    def _keys_above(self, scope: Scope) -> set[Any]:
        above = set()
        for _ in range(self._levels):
            above.add(self._key(scope[0]))
            scope = scope[1]
        return above

    def is_above_itself(self, scope: Scope) -> bool:
        """Whether a row of a recursive join is also above itself."""
        return self._levels > 0 and self._key(scope[0]) in self._keys_above(scope[1])


Gathered = tuple[CountedRows, Scope]
"""A row of one of several joins, with the rows of that join."""


class CountedElements(CountedRows):
    """The rows of a list join that count. A found row occurs once for each element of the array above that finds it."""

    __slots__ = ("_child", "_child_converted", "_parent", "_parent_converted", "columns")

    def __init__(self, join: Join, place: object, above: Entity, entity: Entity, tally: Counter[str]) -> None:
        super().__init__(join, place, above, entity, tally)
        self._child, self._parent = align_columns(join, entity, above)
        self.columns = tuple(map(column_of, self._child))
        self._child_converted = converted_of(self._child, entity)
        self._parent_converted = converted_of(self._parent, above)

    def elements(self, scope: Scope) -> list[tuple[list[Match], list[Value]]]:
        """For each element of the array: the rows that it finds, and its values of the join columns."""
        return self._elements(self.of(scope), scope)

    def _count(self, scope: Scope) -> list[Match]:
        elements = self._elements(super()._count(scope), scope)
        return [row for rows, _ in elements for row in rows]

    def _elements(self, counted: list[Match], scope: Scope) -> list[tuple[list[Match], list[Value]]]:
        rows: dict[str | None, dict[int, Match]] = {}
        for row in counted:
            (key,) = join_keys(self._child, row.columns, self._child_converted)
            rows.setdefault(key, {})[id(row)] = row
        keys = join_keys(self._parent, scope[0].columns, self._parent_converted)
        elements = element_values(self._parent, scope[0].columns)
        return [(list(rows.get(key, {}).values()), values) for key, values in zip(keys, elements, strict=True)]


def counting(join: Join) -> Join:
    """The join without what only shows its rows: joins that are equal so have the same rows that count, in the same order."""
    own = join.where is None and all(isinstance(term.by, Column) and not term.by.path for term in join.order_by)
    below = tuple(one for one in join.joins if one.required) if own else join.joins
    plain = replace(join, name="", shown=False, limit=None, total=False, required=False, lift=0, place=0)
    plain = replace(plain, distinct=False, key=None, recursive=0, as_list=False, ordered=False, counted=False)
    return replace(plain, selection=WholeRow(), joins=below)


def _rank(type_: Type) -> Rank:
    """The sort key of a type's values: microseconds for timestamps, else the value itself."""
    return to_microseconds if type_ == "timestamp" else _itself


def _itself(value: Value) -> Value:
    return value


def _key_rank(entity: Entity) -> Callable[[Match], Any]:
    """The sort key of rows that `order_by` leaves equal: the columns of their primary key."""
    columns, ranks = itemgetter(*entity.key), [(c, _rank(entity.columns[c].name)) for c in entity.key]
    if all(rank is _itself for _, rank in ranks):
        return lambda row: columns(row.columns)
    return lambda row: tuple([rank(row.columns[c]) for c, rank in ranks])


def _type_of(expression: Expression, join: Join, entities: Entities) -> Type:
    """The type of a term of `order_by`. A column of a row above orders nothing, so its type does not matter: None."""
    if isinstance(expression, Computed):
        return expression.node.type
    for step in expression.path:
        join = next(below for below in join.joins if below.name == step)
    return None if expression.up else entities[join.entity].columns[expression.name].name


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


Shape = tuple[tuple[str, int, "Shape"], ...]
"""The joins of a product in the tree of its root: name, number of the node, and the joins below."""


class Gone(enum.Enum):
    """The type of `GONE`: the root has no document. It fails `where`, or a required join has no row."""

    GONE = "gone"


GONE: Final = Gone.GONE


@dataclass(slots=True, kw_only=True)
class Renderer:
    """Renders documents of one product. `tally` counts, for metrics, lists that a limit `cut` and `one` joins with several rows
    (`ambiguous`). `shape`: the numbers of the joins, as keys of the rows of joins; None: their names are the keys.
    `shared`: what renderers of the root share, for documents that become JSON; a list that they share counts once. `clock`: of
    the documents of a product with a clock; its `changes` are those of the last document."""

    product: Product
    entities: Entities
    tally: Counter[str]
    shape: Shape | None = None
    shared: SharedLevel | None = None
    clock: ClockTime = field(default_factory=ClockTime)
    level: "CompiledLevel" = field(init=False)
    where: Evaluate | None = field(init=False)

    def __post_init__(self) -> None:
        product = self.product
        shared = SharedLevel() if self.shared is None or product.clock else self.shared  # its rows are of this moment
        compiler = _Compiler(self.entities, self.tally, self.clock)
        entity = root_entity(product, self.entities)
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
        self.clock.begin()
        return self.level.complete(scope) and (self.where is None or self.where(scope) is True)


Headers = tuple[tuple[str, bytes], ...]
"""The headers of a message, by name."""


class MessageParts:
    """Makes what a product gives its messages next to key and value, from the columns of the root: headers, what chooses the
    partition, and another key than the root's. A header without a value is left out. A tombstone has those that need only the
    key of the root: the other columns of a row that is gone are unknown."""

    __slots__ = ("_headers", "_partition", "_product", "_root")

    def __init__(self, product: Product, entities: Entities) -> None:
        self._product, self._root = product, root_entity(product, entities)
        level, key = CompiledLevel(self._root, WholeRow(), (), {}, ClockTime()), {*self._root.key}
        self._headers = [(name, compile_expression(of, level), _names_only(of, key)) for name, of in product.headers]
        self._partition = {name: compile_expression(of, level) for name, of in product.partition_by}

    def key(self, key: str) -> str:
        """The key of a message. `key`: of the root, as JSON."""
        return message_key(self._product, key)

    def headers(self, columns: Mapping[str, Value]) -> Headers:
        """The headers of the document of a root with these columns."""
        return self._made(columns, every=True)

    def headers_of_key(self, key: str) -> Headers:
        """The headers of a tombstone. `key`: of the root, as JSON."""
        columns = dict(zip(self._root.key, read_root_key(self._root, key), strict=True))
        return self._made(columns, every=False)

    def partition_key(self, columns: Mapping[str, Value]) -> bytes:
        """The key that chooses the partition of a document; empty where the key of the message does."""
        scope: Scope = (Match(columns, {}), None)
        values = {name: make(scope) for name, make in self._partition.items()}
        return canonical_json.encode(values) if values else b""

    def _made(self, columns: Mapping[str, Value], *, every: bool) -> Headers:
        scope: Scope = (Match(columns, {}), None)
        values = [(name, make(scope)) for name, make, of_key in self._headers if of_key or every]
        return tuple([(name, _header_text(value)) for name, value in values if value is not None])


def message_parts(product: Product, entities: Entities) -> MessageParts | None:
    """What makes the product's parts of its messages; None where it has none."""
    own = product.headers or product.partition_by or product.key
    return MessageParts(product, entities) if own else None


def _names_only(expression: Expression, columns: Collection[str]) -> bool:
    """Whether an expression reads no other columns of the row than these."""
    return all(isinstance(one, Column) and one.name in columns for one in references(node_of(expression)))


def _header_text(value: Value) -> bytes:
    """A value as the document shows it, text without its quotes. Half of a surrogate pair, which UTF-8 lacks, is escaped."""
    return (value if isinstance(value, str) else dumps(value)).encode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles levels and joins. Takes what the shared level has already."""

    entities: Entities
    tally: Counter[str]
    clock: ClockTime

    def level(
        self,
        entity: Entity,
        selection: Selection,
        joins: Sequence[Join],
        shape: Shape | None,
        shared: SharedLevel,
        counted: Join | None = None,
    ) -> "CompiledLevel":
        below: Mapping[str, tuple[object, Shape | None]]
        below = {join.name: (join.name, None) for join in joins} if shape is None else {n: (p, s) for n, p, s in shape}
        compiled = {join.name: self._join(join, entity, *below[join.name], shared) for join in joins}
        return CompiledLevel(entity, selection, joins, compiled, self.clock, counted)

    def _join(
        self, join: Join, above: Entity, place: object, shape: Shape | None, shared: SharedLevel
    ) -> "CompiledJoin":
        known: CompiledJoin | None = shared.embeds.get((place, join))
        if known is not None:
            return known
        entity, key = self.entities[join.entity], (place, counting(join))
        counted = shared.rows.get(key)
        rows = counted or (CountedElements if join.listed else CountedRows)(join, place, above, entity, self.tally)
        level = self.level(entity, join.selection, join.joins, shape, rows.level, join if join.counted else None)
        if counted is None:
            rows.compile(join, level, self.entities)
            shared.rows[key] = rows
        if isinstance(rows, CountedElements):
            made: CompiledJoin = CompiledListJoin(join, rows, level, entity)
        else:
            made = CompiledJoin(join, rows, level)
        shared.embeds[place, join] = made
        return made


class CompiledLevel:
    """A compiled level of a product's tree. `render` makes the level's value from a row, or from a group of rows, `text` its JSON
    text. `filtered`: a row counts only if required joins below it have rows. `counted`: the join of the level's rows, where
    totals may be in their place."""

    __slots__ = (
        "_flat",
        "_gathered",
        "_required",
        "clock",
        "counted",
        "embedded",
        "filtered",
        "joins",
        "render",
        "text",
    )

    def __init__(
        self,
        entity: Entity,
        selection: Selection,
        joins: Sequence[Join],
        compiled: Mapping[str, "CompiledJoin"],
        clock: ClockTime,
        counted: Join | None = None,
    ) -> None:
        self.joins, self.clock, self.counted = compiled, clock, counted
        required = [(path, join) for path, join in members_below(joins) if join.required and not join.listed]
        self._required = {join.name: self._finds(path) for path, join in required}
        self.filtered = bool(self._required)
        self._flat = [path for path, _ in lifted(joins)]
        gathering = [path for path, join in members_below(joins) if join.gathers and join.level < 2]
        self._gathered = {path: gathered_paths(joins, path) for path in gathering}
        self.embedded = [self._joined(path) for path, _ in embeds(joins)]
        self.render, self.text = self._renderers(entity, selection)

    def below(self, join: str) -> "CompiledLevel":
        return self.joins[join].level

    def rows(self, join: str) -> FindRows:
        return self.joins[join].rows.of

    def by_totals(self, node: Aggregate, of_rows: Evaluate) -> Evaluate:
        place, join = (GROUP, self.counted) if not node.over else self._counted_join(node.over)
        if join is None:
            return of_rows
        of_totals = aggregate_of_totals(node, join)

        def evaluate(scope: Scope) -> Value:
            found = scope[0].found[place]
            return of_totals(found.numbers) if isinstance(found, Totals) else of_rows(scope)

        return evaluate

    def _counted_join(self, path: Path) -> tuple[Any, Join | None]:
        joined = self.joins[path[0]]
        return joined.rows.place, joined.join if len(path) == 1 and joined.join.counted else None

    def shown(self, path: Path) -> Evaluate:
        return self._joined(path).show

    def scopes(self, path: Path) -> Callable[[Scope], list[Scope]]:
        steps, level = [], self
        for name in path:
            joined = level.joins[name]
            steps.append(joined.rows.of)
            level = joined.level
        if len(steps) == 1:
            find = steps[0]
            return lambda scope: [(row, scope) for row in find(scope)]
        ordered = joined.rows.ordered

        def flat(scope: Scope) -> list[Scope]:
            scopes = [scope]
            for find in steps:
                scopes = [(row, above) for above in scopes for row in find(above)]
            return ordered(scopes) if len(scopes) > 1 else scopes

        return flat

    def flat_places(self, scope: Scope) -> Iterator[tuple[tuple[int, int], int]]:
        """The places of the rows in the lists of several joins, by the identities of each row and of the row right above it."""
        for path in self._flat:
            for place, (row, above) in enumerate(self.scopes(path)(scope)):
                yield (id(row), id(above[0])), place

    def _finds(self, path: Path) -> Callable[[Scope], Any]:
        return self.joins[path[0]].rows.of if len(path) == 1 else self.scopes(path)

    def _joined(self, path: Path) -> "CompiledJoin":
        if path in self._gathered:
            return CompiledGathering([(self._at(one), self.scopes(one)) for one in self._gathered[path]])
        joined = self._at(path)
        return joined if len(path) == 1 else CompiledFlatJoin(joined, self.scopes(path), len(path) - 1)

    def _at(self, path: Path) -> "CompiledJoin":
        level = self
        for name in path[:-1]:
            level = level.joins[name].level
        return level.joins[path[-1]]

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
        shown = self.embedded
        embedded = [name for embed in shown for name in embed.names]
        members, members_text = select_members(entity, selection, self, embedded)
        if not shown:
            return members, lambda scope: f"{{{members_text(scope)}}}"

        def render(scope: Scope) -> Value:
            document = members(scope)
            for embed in shown:
                document |= embed.members(scope)
            return document

        def text(scope: Scope) -> str:
            texts = [members_text(scope), *[embed.text(scope) for embed in shown]]
            return f"{{{','.join(filter(None, texts))}}}"

        return render, text


class _Form(NamedTuple):
    """How a join shows its rows. `render`: of a level; `array`: of the rows; `object`: of the rows by their keys; `write`: of a
    value."""

    render: Callable[["CompiledLevel"], Callable[[Scope], Any]]
    array: Callable[[list[Any]], Any]
    object: Callable[[dict[str, Any]], Any]
    write: Callable[[Value], Any]


def _object_text(members: Mapping[str, str]) -> str:
    return f"{{{','.join(f'{dumps(name)}:{text}' for name, text in members.items())}}}"


_VALUE: Final = _Form(attrgetter("render"), list, lambda value: value, lambda value: value)
_TEXT: Final = _Form(attrgetter("text"), lambda texts: f"[{','.join(texts)}]", _object_text, dumps)


def _comparable(value: Value) -> Any:
    """A value as jsonb compares it: numbers by value, objects without an order."""
    match value:
        case bool():
            return ("bool", value)
        case dict():
            return frozenset((name, _comparable(one)) for name, one in value.items())
        case list():
            return ("list", *map(_comparable, value))
    return value


class CompiledJoin:
    """A compiled join below a level. `names`: of its members. One JSON text of them serves all products that show it alike."""

    __slots__ = ("_aggregated", "_form", "_key", "join", "level", "names", "rows")

    def __init__(self, join: Join, rows: CountedRows, level: CompiledLevel) -> None:
        self.join, self.rows, self.level = join, rows, level
        self._aggregated = join.aggregated
        self.names = (join.name, f"{join.name}_total") if join.total else (join.name,)
        self._form = members_form(self.names)
        self._key = None if join.key is None else compile_expression(join.key, level)

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
        found = self._found(scope)
        if self._aggregated:
            if self.join.counted and isinstance(totals := scope[0].found[self.rows.place], Totals):
                found = totals
            group = Match(columns={}, more={}, found={GROUP: found})
            return form.render(self.level)((group, self._above_group(scope)))
        if not self.join.many:
            return form.render(self.level)(found[0]) if found else form.write(None)
        return self._collected(found, form)

    def _found(self, scope: Scope) -> list[Scope]:
        """The rows of the embed, each with the rows above it."""
        return [(row, scope) for row in self.rows.of(scope)]

    def _above_group(self, scope: Scope) -> Scope:
        """The rows that `parent` names in an aggregate. `scope`: of the row of the embed."""
        return scope

    def _with_total(self, scope: Scope, shown: Any) -> tuple[Any, ...]:
        return (shown, len(self._once(self._found(scope)))) if self.join.total else (shown,)

    def _once(self, scopes: list[Scope]) -> list[Scope]:
        """The rows, without those whose element is equal to an earlier one, where each element is once in the list."""
        if not self.join.distinct:
            return scopes
        first: dict[Any, Scope] = {}
        render = self._renderer(_VALUE)
        for one in scopes:
            first.setdefault(_comparable(render(one)), one)
        return list(first.values())

    def _collected(self, scopes: list[Scope], form: _Form) -> Any:
        """The list of the rows, or the object of them by their keys; of rows with one key the first."""
        scopes = self._once(scopes)
        if self.join.limit is not None and len(scopes) > self.join.limit:
            self.rows.tally[Count.CUT] += 1
            scopes = scopes[: self.join.limit]
        render = self._renderer(form)
        if self._key is None:
            return form.array([render(one) for one in scopes])
        first: dict[Any, Scope] = {}
        for one in scopes:
            if key := self._of_row(one)._key:
                first.setdefault(key(one), one)
        return form.object({name: render(one) for name, one in first.items() if name is not None})

    def _renderer(self, form: _Form) -> Callable[[Scope], Any]:
        """Makes the element of a row of the list."""
        return form.render(self.level)

    def _of_row(self, scope: Scope) -> "CompiledJoin":
        """The join that found a row of the list."""
        return self


class CompiledFlatJoin(CompiledJoin):
    """A join to the rows of another join of its level: the rows of all of them are one list. `depth`: of how many."""

    __slots__ = ("_depth", "_scopes")

    def __init__(self, joined: CompiledJoin, scopes: Callable[[Scope], list[Scope]], depth: int) -> None:
        super().__init__(joined.join, joined.rows, joined.level)
        self._scopes, self._depth = scopes, depth

    def _found(self, scope: Scope) -> list[Scope]:
        return self._scopes(scope)

    def _above_group(self, scope: Scope) -> Scope:
        for _ in range(self._depth):  # `parent` counts the rows between
            scope = (Match(columns={}, more={}), scope)
        return scope


class CompiledGathering(CompiledJoin):
    """The rows of several joins as one list or one group: of the levels of a recursive join, or of the parts of a union. A row
    has the number of its join as `depth`."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[tuple[CompiledJoin, Callable[[Scope], list[Scope]]]]) -> None:
        first = parts[0][0]
        super().__init__(first.join, first.rows, first.level)
        self._parts = parts

    def _renderer(self, form: _Form) -> Callable[[Scope], Any]:
        renderers = [form.render(joined.level) for joined, _ in self._parts]
        return lambda scope: renderers[scope[0].depth - 1](scope)

    def _of_row(self, scope: Scope) -> CompiledJoin:
        return self._parts[scope[0].depth - 1][0]

    def _found(self, scope: Scope) -> list[Scope]:
        found: list[Gathered] = []
        for depth, (joined, find) in enumerate(self._parts, 1):
            rows = [(Match(row.columns, row.more, row.found, depth), above) for row, above in find(scope)]
            if not rows and self.join.level:
                break
            found += [(joined.rows, one) for one in rows]
        return [one for _, one in self.rows.merged(found, by_key=not self.join.parts)]


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
        embedded = self.level.embedded

        def absent(element: Mapping[str, Value], scope: Scope) -> Value:
            document = {name: element.get(column) for name, column in members}
            nothing = Match(columns, {}, {place: [] for place in places})
            for embed in embedded:
                document |= embed.members((nothing, scope))
            return document

        return absent


def _own_column(expression: Expression) -> str:
    """The name of the row's own column if the expression is one, else an empty text."""
    return expression.name if isinstance(expression, Column) and not (expression.path or expression.up) else ""


_EXAMPLES: Mapping[str, Value] = {"int": 7, "decimal": 7, "float": 7, "bool": True}


def read_root_key(root: Entity, text: str) -> tuple[Value, ...]:
    """The key's canonical values, in the key's order. Raises ValueError, which names the error and the correct form."""
    try:
        parts = canonical_json.loads_typed(text)
    except ValueError as error:
        if text.lstrip().startswith("{"):
            raise ValueError(
                f"the key {text} is {error}: write '{_example(root)}', with names and texts in double quotes, and "
                "single quotes around it for the shell"
            ) from None
        parts = text
    if not isinstance(parts, dict):
        if len(root.key) > 1:
            raise ValueError(f"the key of {root.name} has {len(root.key)} parts; give it as JSON: {_example(root)}")
        parts = {root.key[0]: text if root.columns[root.key[0]].name == "string" else parts}
    if set(parts) != set(root.key):
        raise ValueError(f"the key of {root.name} is {', '.join(root.key)}; give it as JSON: {_example(root)}")
    try:
        values = tuple(canonical_value(parts[column], root.columns[column]) for column in root.key)
    except ValueError as error:
        raise ValueError(f"the key {text} of {root.name}: {error}") from None
    if None in values:
        raise ValueError(
            f"the key {text} of {root.name} has a null part: write a value for each of {', '.join(root.key)}"
        )
    return values


def message_key(product: Product, root_key: str) -> str:
    """The key of the product's messages of a root, as JSON. `root_key`: of the root, as JSON."""
    if not product.key:
        return root_key
    columns = canonical_json.loads(root_key)
    return canonical_json.dumps({p.name: columns[p.column] if p.column else p.constant for p in product.key})


def key_of_root(product: Product, key: str) -> str | None:
    """The key of the root, as JSON, of a message's key; None where no message of the product has it. A product with the root's
    key takes every text."""
    if not product.key:
        return key
    try:
        parts = canonical_json.loads(key)
    except ValueError:
        return None
    if not isinstance(parts, dict) or {*parts} != {part.name for part in product.key}:
        return None
    if any(_is_other(part.constant, parts[part.name]) for part in product.key if not part.column):
        return None
    return canonical_json.dumps({part.column: parts[part.name] for part in product.key if part.column})


def _is_other(constant: Value, value: Value) -> bool:
    return (type(constant), constant) != (type(value), value)


def _example(root: Entity) -> str:
    """A key of the root as JSON: numbers and truth without quotes, as the key takes them."""
    kinds = {column: root.columns[column].name for column in root.key}
    return canonical_json.dumps({column: _EXAMPLES.get(kind, "...") for column, kind in kinds.items()})
