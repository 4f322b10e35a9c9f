"""How a product finds its rows, and why one of its documents is as it is.

The access paths are the tree of its joins, each with its requests both ways, and the requests for one document. They are made
from a compiled plan: `<user.username>` is a placeholder for the value of a row. `mermaid_lines` draws the tree as a Mermaid
diagram, which GitHub, GitLab and many editors draw.

The lineage of a document says for each join what it looked for and found, for each row the record that wrote it, why the document
leaves it out, and which of its columns have no value. The compiled levels that render the document also say why the document, or
a list in it, leaves a found row out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from processor.engine.plan.plan import EntityPlan, JoinPlan, Plan, ProductPlan, product_names
from processor.engine.plan.step import Lookup, Step
from processor.engine.protocol.assemble import assemble
from processor.engine.protocol.erasures import erasure_key, read_erasure
from processor.engine.protocol.ticks import job_clock
from processor.language.definitions.describe import describe_gate, describe_key, write_expression
from processor.language.definitions.shape import write_duration
from processor.language.product.document import CompiledJoin, CompiledLevel, Match, Renderer
from processor.language.product.expressions.expression import (
    ClockTime,
    Column,
    Evaluate,
    Expression,
    Path,
    Scope,
    compile_expression,
    node_of,
    references,
)
from processor.language.product.join_fields import convert
from processor.language.product.product import OPEN, Columns
from processor.text import first_of
from processor.tools.inspect.rows import EmptyColumn, FormerTopics, Origin, absence_text, empty_columns, origin_of
from registry.fields import column_of, shown_field
from registry.model import EdgePath, KeyPath, PlannedPath, SlotPath
from statestore import keys
from statestore.items import DELETED, version_of_item
from statestore.keys import Key, edge_partition, field_names, index_rows, partition, partition_prefix
from statestore.store import Item, Query
from statestore.table import range_name


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPath:
    """One direction of a join. `request`: DynamoDB's name of the request, empty if none is needed; `by`: the key or the index
    condition; `shared`: the index query is not pinned to one entity; `first`: how many rows it reads at first, in the order that
    the slot has, 0 for all; `strangers`: the entities because of which it is pinned,
    though siblings ask the same slot for the same value."""

    request: str
    by: str
    shared: bool = False
    strangers: tuple[str, ...] = ()
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedJoin:
    """A join. `down`: the path from a row above to its rows here; `up`: the path from a row here to the rows above; `together`:
    the siblings that the same request answers; `shared_with`: the other products of the root that have the same join, and so read
    and check its rows once for all. `lift`: how many levels further up its rows are one list.
    `levels`: of a recursive join, else 0; all have the same requests."""

    name: str
    kind: str
    entity: str
    shown: bool
    on: tuple[str, ...]
    where: str | None
    required: bool
    down: AccessPath
    up: AccessPath
    together: tuple[str, ...]
    below: tuple["ExplainedJoin", ...]
    shared_with: tuple[str, ...] = ()
    lift: int = 0
    levels: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedProduct:
    """A product. `group`: what makes the groups whose documents they are, empty for those of rows; `used`: the root's columns
    whose change rebuilds the document, None for all of them; `publish`: the gate of its documents, None without one; `clock`: the
    step of its clock, None without one; `tzdata`: the release of its time zones, None without one; `message_key`: the members of
    the key of its messages, where it is another one than that of the root; `headers`: those that the product gives its messages;
    `partition_by`: the columns that choose the partition; `requests`: the number of requests for one document if every join finds
    one row."""

    product: str
    version: int
    topic: str
    root: str
    where: str | None
    key: tuple[str, ...]
    group: tuple[str, ...]
    used: tuple[str, ...] | None
    publish: dict[str, str] | None
    message_key: dict[str, str]
    headers: dict[str, str]
    partition_by: tuple[str, ...]
    clock: str | None
    tzdata: str | None
    requests: dict[str, int]
    joins: tuple[ExplainedJoin, ...]


def explain(plan: Plan, product: ProductPlan) -> ExplainedProduct:
    """The access paths of a product."""
    root = plan.root_entity(product)
    return ExplainedProduct(
        product=product.product.name,
        version=product.version,
        topic=product.product.topic,
        root=product.product.root,
        where=None if product.product.where is None else write_expression(product.product.where),
        key=root.key,
        group=tuple(column.text for column in product.product.by),
        used=None
        if product.used is None
        else tuple(sorted(product.used if product.group else {*product.used, *root.key})),
        publish=None if product.gate == OPEN else describe_gate(product.gate),
        message_key=describe_key(product.product),
        headers={name: write_expression(of) for name, of in product.product.headers},
        partition_by=tuple(name for name, _ in product.product.partition_by),
        clock=write_duration(product.product.clock) if product.product.clock else None,
        tzdata=product.product.tzdata or None,
        requests=dict(_requests(product)),
        joins=_joins(plan, product, product.top),
    )


def explanation_lines(explained: ExplainedProduct) -> Iterator[str]:
    """The tree as text."""
    used = "any column" if explained.used is None else ", ".join(explained.used)
    yield f"{explained.product}, version {explained.version}: {_root_text(explained)}"
    yield f"  topic {explained.topic}; rebuilt when {used} of {explained.root} changes"
    if explained.message_key:
        yield f"  messages by {', '.join(f'{name} = {of}' for name, of in explained.message_key.items())}"
    if explained.headers:
        yield f"  headers {', '.join(f'{name} = {of}' for name, of in explained.headers.items())}"
    if explained.partition_by:
        yield f"  the partition by {', '.join(explained.partition_by)}, in place of the key"
    if explained.publish:
        yield f"  a document waits at its gate: {', '.join(f'{word} {value}' for word, value in explained.publish.items())}"
    if explained.clock:
        yield f"  made again when its clock, in steps of {explained.clock}, passes a boundary of the document"
    if explained.tzdata:
        yield f"  time zones by the rules of tzdata {explained.tzdata}"
    for join in explained.joins:
        yield from _join_lines(join, "  ")
    requests = ", ".join(f"{n} {name}" for name, n in explained.requests.items())
    yield f"one document, where every join finds one row: {requests} (keys go out 100 to a request)"


def _join_lines(join: ExplainedJoin, margin: str) -> Iterator[str]:
    hidden = "" if join.shown else " (join: not shown itself)"
    if join.lift:
        hidden += f" (a member {'one level' if join.lift == 1 else f'{join.lift} levels'} up: the rows are one list)"
    needed = ", required" if join.required else ""
    counts = f"{_where_text(join.where)}{needed}{hidden}"
    yield f"{margin}{join.name}: {join.kind} {join.entity} on {', '.join(join.on)}{counts}"
    together = f"; the same request answers {', '.join(join.together)}" if join.together else ""
    yield f"{margin}  down  {_path_text(join.down)}{together}"
    yield f"{margin}  up    {_path_text(join.up)}"
    if join.levels:
        yield f"{margin}  {join.levels} levels, each below the one before by the same requests, while rows are found"
    if join.shared_with:
        yield f"{margin}  read once with {product_names(join.shared_with)}"
    for below in join.below:
        yield from _join_lines(below, margin + "  ")


def _root_text(explained: ExplainedProduct) -> str:
    root = f"group of {explained.root} by {', '.join(explained.group)}" if explained.group else explained.root
    return f"a document for each {root}{_where_text(explained.where)}, by {'#'.join(explained.key)}"


def _where_text(where: str | None) -> str:
    return "" if where is None else f" where {where}"


def _path_text(path: AccessPath) -> str:
    if not path.request:
        return f"no request: {path.by}"
    pinned = "" if path.request != "Query" else ", shared" if path.shared else ", pinned"
    why = f", since {path.by.partition(' ')[0]} has rows of {', '.join(path.strangers)}, too" if path.strangers else ""
    first = f", the first {path.first:,} rows in its order" if path.first else ""
    return f"{path.request} {path.by}{pinned}{why}{first}"


def _joins(plan: Plan, product: ProductPlan, level: Sequence[int]) -> tuple[ExplainedJoin, ...]:
    nodes = [product.nodes[index] for index in level]
    users = [_users(plan, product, index) for index in level]
    return tuple(
        ExplainedJoin(
            name=node.join.name,
            kind="many" if node.join.many else "one",
            entity=node.join.entity,
            shown=node.join.shown,
            on=tuple(node.join.equalities(node.above)),
            where=None if node.join.where is None else write_expression(node.join.where),
            required=node.join.required,
            down=_path_down(plan, node),
            up=_path_up(plan, product, node),
            together=tuple(n.join.name for n in nodes if n is not node and _request_key(n) == _request_key(node)),
            below=_joins(plan, product, [i for i in node.below if product.nodes[i].join.level < 2]),
            shared_with=shared,
            lift=node.join.lift,
            levels=node.join.recursive,
        )
        for node, shared in zip(nodes, users, strict=True)
    )


def _users(plan: Plan, product: ProductPlan, index: int) -> tuple[str, ...]:
    """The other products that use the node of the merged tree that a product's own node became."""
    name = product.product.name
    users = plan.trees[product.product.tree].node_of(name, index).users
    return tuple(sorted(users.keys() - {name}))


def _path_down(plan: Plan, node: JoinPlan) -> AccessPath:
    if node.ordered is None:
        return _access_path(plan, node.join.entity, node.down, node.above, node.parent_columns)
    slot = SlotPath(slot=node.ordered.slot)
    path = _access_path(plan, node.join.entity, slot, node.above, node.parent_columns)
    return replace(path, first=node.ordered.rows + 1)


def _path_up(plan: Plan, product: ProductPlan, node: JoinPlan) -> AccessPath:
    if node.parent is None and isinstance(node.up, KeyPath):
        return AccessPath(request="", by=f"the key of the {'group' if product.group else node.above} is known")
    return _access_path(plan, node.above, node.up, node.join.entity, node.child_columns)


def _access_path(plan: Plan, entity: str, access: PlannedPath, asker: str, columns: Columns) -> AccessPath:
    """The request for the rows of `entity` that join the values of `columns` of the entity `asker`."""
    value = "#".join(f"<{asker}.{shown_field(column)}>" for column in columns)
    if isinstance(access, KeyPath):
        return AccessPath(request="BatchGetItem", by=f"PK = '{_partition_text(plan, entity)}' AND SK = {value}")
    if isinstance(access, EdgePath):
        edges = f"PK = '{edge_partition(entity, field_names(access.fields), '')}' + {value}"
        return AccessPath(request="Query of edges, BatchGetItem", by=edges)
    query = plan.query(entity, access, "")
    by = f"{query.slot} = {value}{pin_text(query)}"
    return AccessPath(request="Query", by=by, shared=not access.pinned, strangers=access.strangers)


def pin_text(query: Query) -> str:
    """The condition that pins a query to the rows of an entity; empty without a pin."""
    name = range_name(query.slot)
    return "" if query.entity is None else f" AND begins_with({name}, '{index_rows(query.entity)}')"


def _partition_text(plan: Plan, entity: str) -> str:
    unsharded = plan.entities[entity].entity.shards == 1
    return partition(entity, 1, "") if unsharded else f"{partition_prefix(entity)}<shard>"


def _request_key(node: JoinPlan) -> tuple[object, ...]:
    """A value that is equal for two siblings if they send the same request."""
    own = None if isinstance(node.down, SlotPath) and not node.down.pinned and not node.ordered else node.join.entity
    return node.down, own, node.parent_columns, node.ordered


def _requests(product: ProductPlan) -> Counter[str]:
    """The requests of `processor.engine.protocol.assemble` if every join finds one row: level by level, equal requests once."""
    found: Counter[str] = Counter(BatchGetItem=0 if product.group else 1)
    level: list[Sequence[int]] = [product.top]
    while any(level):
        distinct = {(n, _request_key(product.nodes[i])) for n, siblings in enumerate(level) for i in siblings}
        accesses = [access for _, (access, *_) in distinct]
        found["Query"] += sum(not isinstance(access, KeyPath) for access in accesses)
        found["BatchGetItem"] += any(not isinstance(access, SlotPath) for access in accesses)
        level = [product.nodes[i].below for siblings in level for i in siblings]
    return found


_CODES: Final = str.maketrans(
    {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;", "\n": " "}
)


def mermaid_lines(plan: Plan, product: ProductPlan) -> Iterator[str]:
    """The diagram: a box for the document and for each joined entity, an arrow for each join with its columns."""
    root = plan.root_entity(product)
    yield "flowchart LR"
    each = f"group of {product.product.root}" if product.group else root.name
    heading = _label(product.product.name, f"a document for each {each}, by {', '.join(root.key)}")
    yield f"    root[{heading}]"
    yield from _below(product, "root", product.top)


def _below(product: ProductPlan, above: str, nodes: Sequence[int]) -> Iterator[str]:
    for index in nodes:
        node = product.nodes[index]
        join = node.join
        kind = ("many" if join.many else "one") + (f", {join.recursive} levels" if join.recursive else "")
        on = ", ".join(join.equalities(node.above))
        arrow = "-->" if join.shown else "-.->"
        yield f"    {above} {arrow}|{_label(f'{join.name}: {kind}')}| n{index}[{_label(join.entity, on)}]"
        yield from _below(product, f"n{index}", [i for i in node.below if product.nodes[i].join.level < 2])


def _label(*lines: str) -> str:
    """The lines as one label, with codes for the signs that Mermaid reads as its own."""
    return f'"{"<br>".join(line.translate(_CODES) for line in lines)}"'


def why_left_out(level: CompiledLevel, where: Evaluate | None, text: Expression | None, scope: Scope) -> str:
    """Why a row does not count: the required join that has no row, or its `where`; empty where it counts."""
    lacking = level.lacking(scope)
    if lacking:
        return f"the required join `{lacking[0]}` has no row that counts"
    value = True if where is None else where(scope)
    if value is True or text is None:
        return ""
    condition = f"`where: {write_expression(text)}`"
    if value is False:
        return f"{condition} is false"
    columns = {write_expression(column): column for column in _single_columns(text, level)}
    nulls = [name for name, column in columns.items() if compile_expression(column, level)(scope) is None]
    cause = f", because {' and '.join(nulls)} {'is' if len(nulls) == 1 else 'are'} null" if nulls else ""
    return f"{condition} is null{cause}"


def why_row_is_left_out(joined: CompiledJoin, place: int | None, scope: Scope) -> str:
    """Why a join leaves a found row out; empty where the document shows it. `place`: of the row among those that count, None
    where it does not count."""
    join = joined.join
    if place is None and joined.rows.is_above_itself(scope):
        return "the row is above itself, so the levels end before it"
    if place is None:
        return why_left_out(joined.level, joined.rows.where, join.where, scope) or "a `one` shows the first row only"
    most = join.limit if join.many else 1
    if join.gathers and join.many:
        return "" if most is None else f"the list of all levels has at most {most} rows"
    if most is None or place < most:
        return ""
    return f"`limit: {join.limit}` ends the list before it" if join.many else "a `one` shows the first row only"


def _single_columns(expression: Expression, level: CompiledLevel) -> Iterator[Column]:
    """The columns that an expression reads, without those of the rows of an aggregate: they have one value."""
    for item in references(node_of(expression)):
        if isinstance(item, Column) and (not item.path or (not item.up and _reaches_one(item.path, level))):
            yield item


def _reaches_one(path: Path, level: CompiledLevel) -> bool:
    """Whether only `one` joins lead from the level to the row at `path`."""
    for step in path:
        joined = level.joins[step]
        if joined.join.many:
            return False
        level = joined.level
    return True


Items = Mapping[Key, Item | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A row that a join found, or the root. `key`: as the table encodes it; `origin`: None for a group; `left_out`: why the
    document does not show it, else empty; `empty`: the columns that the product reads and that have no value."""

    entity: str
    key: str
    origin: Origin | None
    left_out: str
    empty: tuple[EmptyColumn, ...]
    joins: tuple["AnsweredJoin", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredJoin:
    """A join below a row, with the rows that it found. `requests`: its key reads or queries; `note`: why it asked nothing, or
    found nothing by key; else empty."""

    name: str
    kind: str
    entity: str
    where: str | None
    requests: tuple[str, ...]
    note: str
    rows: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The lineage of the document of one root. `request`: the read of the root's row; `reason`: why there is no document, empty
    where there is one; `root`: None where no such row is stored."""

    request: str
    reason: str
    root: SourceRow | None

    def origins(self) -> Iterator[Origin]:
        """The records of the rows, from the root down."""
        return (row.origin for row in self.rows() if row.origin is not None)

    def rows(self) -> Iterator[SourceRow]:
        """The rows, from the root down."""
        level = [] if self.root is None else [self.root]
        while level:
            yield from level
            level = [below for row in level for join in row.joins for below in join.rows]


def lineage(plan: Plan, product: ProductPlan, root: str, topics: FormerTopics) -> Step[Lineage]:
    """The lineage of the document whose root has the encoded key `root`."""
    entity, group = plan.entities[product.product.root], product.group
    key: Key | Lookup = plan.request(entity.name, product.nodes[0].down, root) if group else entity.key(root)
    top = yield from assemble(plan, product, root)
    if top is None:
        if isinstance(key, Lookup):
            reason = f"no row of {entity.name} is in this group"
        else:
            item, erased = yield (key, erasure_key(entity.name, root))
            reason = _why_absent(item, erased, entity, root, topics)
        return Lineage(request=_request_text(key), reason=reason, root=None)
    entities = plan.declared_entities
    clock = ClockTime((yield from job_clock(product.product.clock)))
    renderer = Renderer(product=product.product, entities=entities, tally=Counter(), clock=clock)
    own = [key] if isinstance(key, Key) else []
    asked = list(dict.fromkeys([*own, *_keys_below(plan, product, top, product.top)]))
    answers = yield tuple(asked)
    tracer = _Tracer(plan, product, topics, dict(zip(asked, answers, strict=True)))
    refused = why_left_out(renderer.level, renderer.where, product.product.where, (top, None))
    place = _Place(entity, product.used, renderer.level, product.top)
    row = tracer.group(group.name, root, place, top, refused) if group else tracer.row(place, (top, None), refused)
    reason = "the product is being removed: the job replaces each document by a tombstone" if product.retracted else ""
    return Lineage(request=_request_text(key), reason=reason or _why_no_document(row, refused), root=row)


def _why_no_document(row: SourceRow | None, refused: str) -> str:
    if row is None:
        return "a change deleted the row of the root a moment ago"
    return (
        f"{'the row of the root' if row.origin else 'a row of the group'} is stored, but {refused}" if refused else ""
    )


def _why_absent(item: Item | None, erased: Item | None, entity: EntityPlan, root: str, topics: FormerTopics) -> str:
    """`item`: of the row, or its delete marker; `erased`: of its erasure. A record may have deleted the row after that."""
    if erased is not None and (item is None or read_erasure(erased).covers(version_of_item(item))):
        return f"the row {entity.name} {root} was erased (`statestore erase`), and no earlier record brings it back"
    if item is not None and DELETED in item:
        return f"the row {entity.name} {root} is deleted, by the record at {origin_of(item, entity, topics)}"
    return absence_text(entity, root)


def _keys_below(plan: Plan, product: ProductPlan, match: Match, nodes: tuple[int, ...]) -> Iterator[Key]:
    """The keys of all found rows below a row, and those of key reads that found none."""
    for node in (product.nodes[index] for index in nodes):
        if isinstance(node.down, KeyPath):
            yield from (plan.entities[node.join.entity].key(key) for key in _asked_keys(node, match))
        for row in match.found[node.join.name]:
            yield _key_of(plan.entities[node.join.entity], row)
            yield from _keys_below(plan, product, row, node.below)


class _Place(NamedTuple):
    """A level of the product's tree: its entity, the columns that the product reads there (None: all), and its joins."""

    entity: EntityPlan
    used: frozenset[str] | None
    level: CompiledLevel
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Tracer:
    plan: Plan
    product: ProductPlan
    topics: FormerTopics
    items: Items
    places: dict[tuple[int, int], int] = field(default_factory=dict)

    def row(self, place: _Place, scope: Scope, left_out: str) -> SourceRow | None:
        """The row of a match. None where a change deleted it after the document was assembled."""
        key = _key_of(place.entity, scope[0])
        item = self.items[key]
        if item is None or DELETED in item:
            return None
        self.places.update(place.level.flat_places(scope))
        columns = [name for name in place.entity.entity.columns if place.used is None or name in place.used]
        return SourceRow(
            entity=place.entity.name,
            key=key.sk,
            origin=origin_of(item, place.entity, self.topics),
            left_out=left_out,
            empty=empty_columns(item, place.entity, columns, self.topics),
            joins=tuple(self._join(self.product.nodes[index], place.level, scope) for index in place.nodes),
        )

    def group(self, name: str, key: str, place: _Place, top: Match, left_out: str) -> SourceRow:
        """The group of a document, which no record made."""
        self.places.update(place.level.flat_places((top, None)))
        joins = tuple(self._join(self.product.nodes[index], place.level, (top, None)) for index in place.nodes)
        return SourceRow(entity=name, key=key, origin=None, left_out=left_out, empty=(), joins=joins)

    def _join(self, node: JoinPlan, above: CompiledLevel, scope: Scope) -> AnsweredJoin:
        join, match = node.join, scope[0]
        requests = [self.plan.request(join.entity, node.down, key) for key in _asked_keys(node, match)]
        return AnsweredJoin(
            name=join.name,
            kind="many" if join.many else "one",
            entity=join.entity,
            where=None if join.where is None else write_expression(join.where),
            requests=tuple(map(_request_text, requests)),
            note=self._note(node, match, requests),
            rows=tuple(self._rows(node, above.joins[join.name], scope)),
        )

    def _rows(self, node: JoinPlan, joined: CompiledJoin, scope: Scope) -> Iterator[SourceRow]:
        """The rows that a join found: first those that count, in order."""
        place = _Place(self.plan.entities[node.join.entity], node.used, joined.level, node.below)
        counted = {id(row): row for row in joined.rows.of(scope)}
        found = {id(row): row for row in scope[0].found[node.join.name]}
        for index, row in enumerate((counted | found).values()):
            below = (row, scope)
            place_in_list = self.places.get((id(row), id(scope[0])), index if index < len(counted) else None)
            made = self.row(place, below, why_row_is_left_out(joined, place_in_list, below))
            if made is not None:
                yield made

    def _note(self, node: JoinPlan, match: Match, requests: list[Key | Lookup]) -> str:
        """Why the join asked nothing, or what the key reads found in place of rows."""
        if not requests:
            columns = [shown_field(column_of(field)) for field in node.parent_columns]
            read = convert(match.columns, node.parent_converted)
            nulls = [
                shown_field(column_of(field)) for field in node.parent_columns if read.get(column_of(field)) is None
            ]
            return f"`{nulls[0]}` of the {node.above} is null" if nulls else f"`{columns[0]}` has no elements"
        entity = self.plan.entities[node.join.entity]
        markers = [self.items.get(key) for key in requests if isinstance(key, Key)]
        gone = [origin_of(item, entity, self.topics) for item in markers if item is not None and DELETED in item]
        return f"the row is deleted, by the record at {gone[0]}" if gone else ""


def _asked_keys(node: JoinPlan, match: Match) -> list[str]:
    """The keys that the join looks for below a row."""
    return [key for key in dict.fromkeys(node.parent_keys(match.columns)) if key is not None]


def _key_of(entity: EntityPlan, match: Match) -> Key:
    return entity.key(keys.encode([match.columns[column] for column in entity.entity.key]) or "")


def _request_text(request: Key | Lookup) -> str:
    match request:
        case Key(pk, sk):
            return f"PK = '{pk}' AND SK = '{sk}'"
        case Lookup(source=Query() as query):
            return f"{query.slot} = '{query.value}'{pin_text(query)}"
        case Lookup(source=partition):
            return f"PK = '{partition}'"
    raise TypeError(f"{request} reads no row")


REQUESTS, LEFT_OUT, LOST = 3, 20, 5
"""How many requests of a join, rows that it leaves out, and rows with lost values the text shows. JSON has all of them."""


def lineage_lines(found: Lineage, came: Mapping[Origin, str]) -> Iterator[str]:
    """The lines of a lineage, without the reason for a missing document. `came`: when records came, as far as somebody asked."""
    if found.root is not None:
        yield from _row_lines(found.root, came, "", f"; by {found.request}")


def lost_lines(found: Lineage) -> Iterator[str]:
    """The columns that the document shows as null because their entity did not store them."""
    lost = [f"{row.entity} {row.key}: {one}" for row in found.rows() for one in row.empty if one.lost]
    yield from lost[:LOST]
    if len(lost) > LOST:
        yield f"and {len(lost) - LOST} more lost values"


def _row_lines(row: SourceRow, came: Mapping[Origin, str], margin: str, request: str = "") -> Iterator[str]:
    origin = f"; {row.origin}" if row.origin else ""
    time = f"; came {came[row.origin]}" if row.origin and row.origin in came else ""
    yield f"{margin}{row.entity} {row.key}{origin}{time}{request}"
    if row.left_out:
        yield f"{margin}  left out: {row.left_out}"
    if row.empty:
        yield f"{margin}  without a value: {', '.join(map(str, row.empty))}"
    for join in row.joins:
        yield from _answered_lines(join, came, margin + "  ")


def _answered_lines(join: AnsweredJoin, came: Mapping[Origin, str], margin: str) -> Iterator[str]:
    asked = f"by {first_of(join.requests, REQUESTS)}" if join.requests else "looks for nothing"
    note = f"; {join.note}" if join.note else ""
    yield f"{margin}{join.name}: {join.kind} {join.entity}, {asked}: {_count_text(join)}{note}"
    others = [row for row in join.rows if row.left_out]
    for row in [one for one in join.rows if not one.left_out] + others[:LEFT_OUT]:
        yield from _row_lines(row, came, margin + "  ")
    if len(others) > LEFT_OUT:
        yield f"{margin}  and {len(others) - LEFT_OUT} more rows that are left out"


def _count_text(join: AnsweredJoin) -> str:
    out = sum(bool(row.left_out) for row in join.rows)
    count = len(join.rows)
    rows = "no row" if not count else "1 row" if count == 1 else f"{count} rows"
    return f"{rows}, {out} left out" if out else rows
