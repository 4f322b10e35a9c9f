"""A product as its definition describes it: a tree of joins below a root, the selection of each level, and its gate. Pure.

The gate says when the document of a root goes out, once it has changed. `align_columns` puts the fields of both sides of a join
in one order, so that both sides encode the same key. `used_columns` finds the columns that a product reads at each level: a
change of other columns does not touch the product (rule 8 of docs/architecture.md). This module does not know access paths.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Literal, NamedTuple, cast

from processor.language.product.expressions.expression import (
    Column,
    Computed,
    Expression,
    Path,
    aggregates,
    node_of,
    references,
)
from processor.language.product.join_fields import (
    array_of,
    convert,
    converted_of,
    folded_field,
    parse_compared,
    type_of,
    typed_field,
)
from processor.values.entity import Compare, ComputedColumn, Entity
from processor.values.record import Value
from processor.values.values import canonical_value
from registry.fields import column_of, columns_of
from statestore import keys

AT_MOST: Final = 60.0
"""The default of `Gate.at_most`, in seconds: most source transactions end within a few, and a consumer that sees nothing
new for a minute begins to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What must be true before a changed root goes out; durations in seconds of the job's clock, 0 for none."""

    whole: bool = False
    """Each source transaction that touched the root is complete."""
    quiet: float = 0.0
    """The root has not changed for this duration."""
    every: float = 0.0
    """Its last message has at least this age."""
    at_most: float = AT_MOST
    """After this duration the root goes out, whatever the others say."""


OPEN: Final = Gate()
"""The gate that holds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerm:
    """One term of `order_by`. Nulls come last in both directions."""

    by: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRow:
    """A level without `fields` and `value`: the declared columns in their order, then the undeclared ones by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """`fields`: an object with these members, in this order."""

    members: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BareValue:
    """`value`: a bare value instead of an object."""

    expression: Expression


Selection = WholeRow | Fields | BareValue


def expressions(selection: Selection) -> tuple[Expression, ...]:
    """The expressions of a selection. `WholeRow` has none: it takes every column."""
    match selection:
        case Fields(members=members):
            return tuple(expression for _, expression in members)
        case BareValue(expression=expression):
            return (expression,)
        case WholeRow():
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A join below a level.

    on: pairs of child and parent column, in the order of the definition; a side may be the elements of an array column (`ids[]`,
    `inner[].id`). compare: how the text of each pair compares; empty where all pairs compare as they are. shown: True for an
    `embed`, whose result is the member `name`; False for a `join`, which serves only expressions.
    where: the condition on rows that count. required: the row above counts only if this join has a row.
    total: `<name>_total` shows the number of rows before `limit`. strong: the join is read without an index. written: the
    pairs as their author wrote them, where an expression is in place of a column; else empty.
    lift: how many levels above its own the join belongs to, for a join to the rows of another join of its level: the rows of all
    joins between are one list. place: of a shown one among the members that the joins of that level make. distinct: each element
    is in the list once. key: the text that is the key of an element, in a list that is an object.
    level: of a recursive join, 1 for the first level, 2 for the join of the same name below it, and so on; else 0. recursive: the
    number of levels from this one on. as_list: the rows of all levels are one list.
    part: the name of the join in a union. parts: of the first join of a union, the names of the other joins of its level
    whose rows are in its list. ordered: an index has the rows in their order, so that a read ends at the limit.
    """

    name: str
    entity: str
    many: bool
    shown: bool
    on: tuple[tuple[str, str], ...]
    order_by: tuple[OrderTerm, ...] = ()
    limit: int | None = None
    total: bool = False
    where: Expression | None = None
    required: bool = False
    selection: Selection = WholeRow()
    joins: tuple["Join", ...] = ()
    strong: bool = False
    compare: tuple[Compare, ...] = ()
    lift: int = 0
    place: int = 0
    distinct: bool = False
    key: Expression | None = None
    level: int = 0
    recursive: int = 0
    as_list: bool = False
    part: str = ""
    parts: tuple[str, ...] = ()
    ordered: bool = False
    written: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def listed(self) -> bool:
        """Whether this is a list join: it looks up each element of the parent's array. `required` then leaves out elements."""
        return array_of(self.parent_columns) is not None

    @property
    def child_columns(self) -> tuple[str, ...]:
        return tuple(child for child, _ in self.on)

    @property
    def parent_columns(self) -> tuple[str, ...]:
        return tuple(parent for _, parent in self.on)

    def equalities(self, above: str) -> list[str]:
        """The pairs as people read them, with how their text compares: `code = customer.country (ci, trimmed)`."""
        compares = self.compare or ((),) * len(self.on)
        return [
            f"{child} = {above}.{parent}" + (f" ({', '.join(compare)})" if compare else "")
            for (child, parent), compare in zip(self.written or self.on, compares, strict=True)
        ]

    @property
    def aggregated(self) -> bool:
        """Whether aggregates make one value or object of all rows."""
        return any(True for e in expressions(self.selection) for _ in aggregates(node_of(e)))

    @property
    def gathers(self) -> bool:
        """Whether the rows of several joins are one list: of the parts of a union, or of all levels of a recursive join. The
        levels may also be one group."""
        return bool(self.parts) or (self.level > 0 and (self.as_list or self.aggregated))


def lifted(joins: Sequence[Join], at: tuple[str, ...] = ()) -> Iterator[tuple[Path, Join]]:
    """The joins that belong to a level and hang below other joins of it, with their paths from the level."""
    for join in joins:
        if at and join.lift == len(at):
            yield (*at, join.name), join
        yield from lifted(join.joins, (*at, join.name))


def members_below(joins: Sequence[Join]) -> Iterator[tuple[Path, Join]]:
    """All joins that belong to a level, with their paths from it."""
    yield from (((join.name,), join) for join in joins if not join.lift)
    yield from lifted(joins)


def gathered_paths(joins: Sequence[Join], path: Path) -> list[Path]:
    """The paths from a level to the joins whose rows are in the list of a gathering join at `path`, first its own."""
    join = join_at(joins, path)
    if join.parts:
        named = {one.name: at for at, one in members_below(joins)}
        return [path, *(named[name] for name in join.parts)]
    return [path + (join.name,) * n for n in range(join.recursive)]


def join_at(joins: Sequence[Join], path: Path) -> Join:
    """The join at a path."""
    found = next(join for join in joins if join.name == path[0])
    return join_at(found.joins, path[1:]) if path[1:] else found


def embeds(joins: Sequence[Join]) -> list[tuple[Path, Join]]:
    """The joins that are members of a level, in their order, with their paths from the level."""
    found: list[tuple[Path, Join]] = [((join.name,), join) for join in joins if join.shown and not join.lift]
    for path, join in sorted(lifted(joins), key=lambda one: one[1].place):
        if join.shown:
            found.insert(join.place, (path, join))
    return found


Columns = tuple[str, ...]


class GroupColumn(NamedTuple):
    """A column of a group. `field`: of its rows, which holds the value; `text`: the field as its author wrote it."""

    name: str
    field: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntity(Entity):
    """The roots of a product whose documents are of groups of rows: a root for each value of `columns`. No table has them: a
    group is there while `rows` has a row of it. `fields`: column -> the field of the rows that holds its value; `converted`: what
    has another form in the group than in the row."""

    rows: str
    fields: Mapping[str, str]
    converted: Columns

    def field_of_rows(self, field: str) -> str:
        """The field of the rows that has the value of a field of the group."""
        held = self.fields[column_of(field)]
        compared = parse_compared(field)
        if compared is None:
            return held
        return field if held == compared[0] else folded_field(held, cast(Compare, tuple(compared[1].split("+"))))

    def of_row(self, columns: Mapping[str, Value]) -> dict[str, Value]:
        """The columns of the group of a row with these columns."""
        found = convert(columns, self.converted)
        return {name: canonical_value(found.get(field), self.columns[name]) for name, field in self.fields.items()}

    def key_of_row(self, columns: Mapping[str, Value]) -> str | None:
        """The encoded key of the group of a row with these columns; None for a row in no group."""
        return keys.encode([*self.of_row(columns).values()])


class KeyPart(NamedTuple):
    """A member of the key of messages: a column of the root's key, or a constant where `column` is empty."""

    name: str
    column: str = ""
    constant: Value = None


def keys_cannot_meet(one: Sequence[KeyPart], other: Sequence[KeyPart]) -> bool:
    """Whether no message of a product has the key of a message of another one: a member of both has two constants."""
    constants = {part.name: part.constant for part in other if not part.column}
    return any(
        part.name in constants and not part.column and _differ(part.constant, constants[part.name]) for part in one
    )


def _differ(one: Value, other: Value) -> bool:
    return (type(one), one) != (type(other), other)


DocumentFormat = Literal["json", "avro"]
Compares = Mapping[str, Mapping[str, Compare]]
"""Entity -> column -> how its text compares. A column that is not in it compares as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """The definition of a document. `where`: the condition on root rows that have a document. `format`: of the documents in the
    topic. `gate`: when they go out. `compare`: how the columns that it reads compare; `computed`: the computed columns that it
    names, by entity. Joins and expressions have both already, and do not ask the entities. `by`: the columns of the groups whose
    documents they are, instead of single rows of the root entity; the first join then finds the rows of a group. `clock`: the
    step of its clock in seconds, 0 without one. `headers`: those that the product gives its messages, from columns of the root;
    `partition_by`: the columns of the root that choose the partition in place of the key; `key`: that of the messages, where it
    is another one than the root's. `tzdata`: the release of the time zones that its expressions name; empty without any."""

    name: str
    topic: str
    root: str
    selection: Selection
    joins: tuple[Join, ...]
    where: Expression | None = None
    format: DocumentFormat = "json"
    gate: Gate = OPEN
    compare: Compares = field(default_factory=dict)
    computed: Mapping[str, Mapping[str, ComputedColumn]] = field(default_factory=dict)
    by: tuple[GroupColumn, ...] = ()
    headers: tuple[tuple[str, Expression], ...] = ()
    partition_by: tuple[tuple[str, Expression], ...] = ()
    key: tuple[KeyPart, ...] = ()
    clock: int = 0
    tzdata: str = ""

    @property
    def roots(self) -> str:
        """What the documents are of: the root entity, or its groups, `sale by item`. Products with equal names share a ledger."""
        return group_name(self.root, (column.name for column in self.by)) if self.by else self.root

    @property
    def tree(self) -> str:
        """The name of the tree that the joins of the product are in. Products of one tree find their roots alike, and call the
        columns of their groups alike."""
        if not self.by:
            return self.root
        return group_name(self.root, (name if field == name else f"{name}={field}" for name, field, _ in self.by))

    @property
    def gated(self) -> bool:
        """Whether a changed root may have to wait."""
        return self.gate != OPEN

    def walk(self) -> Iterator[tuple[str, Join]]:
        """Each join with the entity above it: parents first, in the order of the definition."""
        above = _entities(self)
        return ((above[at[:-1]], join) for at, join in _paths((), self.joins))


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The words of an author for readers, about an entity with its columns, or about a product. Empty where there are none."""

    description: str = ""
    owner: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The entities and products of a definitions directory. Entities keep their order in entities.yaml, products follow the order
    of their file names. The notes stand apart: no registry, plan or job has them, so their edit changes no version."""

    entities: dict[str, Entity]
    products: dict[str, Product]
    entity_notes: Mapping[str, Note] = field(default_factory=dict, compare=False)
    product_notes: Mapping[str, Note] = field(default_factory=dict, compare=False)


def group_name(entity: str, columns: Iterable[str]) -> str:
    """The name of the groups of an entity by these columns. No entity has such a name."""
    return f"{entity} by {', '.join(keys.field_names((column.replace(',', '%2C'),)) for column in columns)}"


def group_entity(rows: Entity, by: Sequence[GroupColumn]) -> GroupEntity:
    """The groups of an entity's rows."""
    columns = {name: type_of(field, rows) for name, field, _ in by}
    return GroupEntity(
        name=group_name(rows.name, columns),
        topic=rows.topic,
        key=tuple(columns),
        columns=columns,
        keep="declared",
        transactions=rows.transactions,
        rows=rows.name,
        fields={name: field for name, field, _ in by},
        converted=converted_of([field for _, field, _ in by], rows),
    )


def root_entity(product: Product, entities: Mapping[str, Entity]) -> Entity:
    """The entity whose rows are the roots of the product: a table, or the groups of its rows."""
    rows = entities[product.root]
    return group_entity(rows, product.by) if product.by else rows


def walk_entities(product: Product, entities: Mapping[str, Entity]) -> Iterator[tuple[Entity, Join]]:
    """Each join with the entity above it, which may be the groups: parents first, in the order of the definition."""
    above = {at: entities[name] for at, name in _entities(product).items()} | {(): root_entity(product, entities)}
    return ((above[at[:-1]], join) for at, join in _paths((), product.joins))


def align_columns(join: Join, child: Entity, parent: Entity) -> tuple[Columns, Columns]:
    """The join's child and parent columns, in pairs. If one side is a whole primary key, the pairs have the key's order. Else the
    parent's column names give the order."""
    pairs, compares = list(join.on), dict(zip(join.on, join.compare, strict=False))
    by_parent, by_child = {p: c for c, p in pairs}, dict(pairs)
    if set(by_parent) == set(parent.key) and len(pairs) == len(parent.key):
        pairs = [(by_parent[p], p) for p in parent.key]
    elif set(by_child) == set(child.key) and len(pairs) == len(child.key):
        pairs = [(c, by_child[c]) for c in child.key]
    else:
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
    return (
        tuple(typed_field(c, child, type_of(p, parent), compares.get((c, p), ())) for c, p in pairs),
        tuple(typed_field(p, parent, type_of(c, child), compares.get((c, p), ())) for c, p in pairs),
    )


def used_columns(product: Product) -> Mapping[Path, frozenset[str] | None]:
    """Path of a level -> the columns that joins and expressions of any level read there. None: all columns. The root's path is
    (), a join's path the names of the joins from the root to it. At a root of groups: the columns of the rows that make them."""
    found, whole = _read_columns(product)
    used = {at: None if at in whole else frozenset(columns) for at, columns in found.items()}
    if product.by:
        used[()] = frozenset(chain.from_iterable(columns_of(column.field) for column in product.by))
    return used


def compared_by_entity(product: Product) -> Mapping[str, frozenset[str]]:
    """The columns, by entity, whose way to compare may change a document: all that the product reads, but for those that it only
    shows."""
    found, entities = _read_columns(product, compared=True)[0], _entities(product)
    compared: dict[str, frozenset[str]] = {}
    for at, columns in found.items():
        compared[entities[at]] = compared.get(entities[at], frozenset()) | columns
    return compared


def _read_columns(product: Product, *, compared: bool = False) -> tuple[Mapping[Path, set[str]], set[Path]]:
    """The columns that the product names at each level, and the levels that show the whole row. `compared`: without columns that
    are members of an object as they are, and with the expressions of joins that nothing shows."""
    joins = dict(_paths((), product.joins))
    found: dict[Path, set[str]] = {at: set() for at in ((), *joins)}
    selections = {(): product.selection} | {at: join.selection for at, join in joins.items()}
    shown = [(), *(at for at, join in joins.items() if join.shown or compared)]

    def read(at: Path, expressions_there: Iterable[Expression]) -> None:
        for item in (item for expression in expressions_there for item in references(node_of(expression))):
            if isinstance(item, Column):
                found[at[: len(at) - item.up] + item.path].add(item.name)
            elif at + item.path not in shown:
                shown.append(at + item.path)

    read((), () if product.where is None else (product.where,))
    read((), (one for _, one in (*product.headers, *product.partition_by) if not compared or isinstance(one, Computed)))
    for at, join in joins.items():
        found[at].update(chain.from_iterable(map(columns_of, join.child_columns)))
        found[at[:-1]].update(chain.from_iterable(map(columns_of, join.parent_columns)))
        read(at, (*(() if join.where is None else (join.where,)), *(term.by for term in join.order_by)))
        read(at, () if join.key is None else (join.key,))
    for at in shown:  # `shown` grows: an expression may show another join, and a gathering one shows its next level
        if at and joins[at].gathers:
            level = at[: len(at) - 1 - joins[at].lift]
            there = joins[level].joins if level else product.joins
            paths = gathered_paths(there, at[len(level) :])
            shown += [one for one in ((*level, *path) for path in paths) if one not in shown]
        every = isinstance(selections[at], BareValue) or not compared
        read(at, (one for one in expressions(selections[at]) if every or isinstance(one, Computed)))
    return found, {at for at in shown if isinstance(selections[at], WholeRow)}


def used_by_entity(product: Product) -> Iterator[tuple[str, frozenset[str] | None]]:
    """The columns that the product reads at each level, with the level's entity. None: all columns."""
    entities = _entities(product)
    return ((entities[at], columns) for at, columns in used_columns(product).items())


def _entities(product: Product) -> Mapping[Path, str]:
    return {(): product.root} | {at: join.entity for at, join in _paths((), product.joins)}


def _paths(above: Path, joins: Sequence[Join]) -> Iterator[tuple[Path, Join]]:
    for join in joins:
        at = (*above, join.name)
        yield at, join
        yield from _paths(at, join.joins)
