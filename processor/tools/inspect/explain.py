"""The access paths of a product: the tree of its joins, each with its requests both ways, and the requests for one document.

Pure: made from a compiled plan. `<user.username>` is a placeholder for the value of a row. Sends nothing and reads no state.
`mermaid_lines` draws the tree as a Mermaid diagram, which GitHub, GitLab and many editors draw.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from processor.engine.plan.plan import Plan
from processor.engine.plan.product_plan import JoinPlan, ProductPlan
from processor.engine.plan.tree_text import product_names
from processor.language.definitions.describe import describe_gate, write_expression
from processor.language.product.product import OPEN, Columns
from registry.model import EdgePath, KeyPath, PlannedPath, SlotPath
from statestore.keys import edge_partition, field_names, index_rows, partition, partition_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPath:
    """One direction of a join. `request`: DynamoDB's name of the request, empty if none is needed; `by`: the key or the index
    condition; `shared`: the index query is not pinned to one entity; `strangers`: the entities because of which it is pinned,
    though siblings ask the same slot for the same value."""

    request: str
    by: str
    shared: bool = False
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedJoin:
    """A join. `down`: the path from a row above to its rows here; `up`: the path from a row here to the rows above; `together`:
    the siblings that the same request answers; `shared_with`: the other products of the root that have the same join, and so read
    and check its rows once for all."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedProduct:
    """A product. `used`: the root's columns whose change rebuilds the document, None for all of them; `publish`: the gate of its
    documents, None without one; `requests`: the number of requests for one document if every join finds one row."""

    product: str
    version: int
    topic: str
    root: str
    where: str | None
    key: tuple[str, ...]
    used: tuple[str, ...] | None
    publish: dict[str, str] | None
    requests: dict[str, int]
    joins: tuple[ExplainedJoin, ...]


def explain(plan: Plan, product: ProductPlan) -> ExplainedProduct:
    """The access paths of a product."""
    root = plan.entities[product.product.root]
    return ExplainedProduct(
        product=product.product.name,
        version=product.version,
        topic=product.product.topic,
        root=root.name,
        where=None if product.product.where is None else write_expression(product.product.where),
        key=root.entity.key,
        used=None if product.used is None else tuple(sorted({*product.used, *root.entity.key})),
        publish=None if product.gate == OPEN else describe_gate(product.gate),
        requests=dict(_requests(product)),
        joins=_joins(plan, product, product.top),
    )


def explanation_lines(explained: ExplainedProduct) -> Iterator[str]:
    """The tree as text."""
    used = "any column" if explained.used is None else ", ".join(explained.used)
    yield f"{explained.product}, version {explained.version}: {_root_text(explained)}"
    yield f"  topic {explained.topic}; rebuilt when {used} of {explained.root} changes"
    if explained.publish:
        yield f"  a document waits at its gate: {', '.join(f'{word} {value}' for word, value in explained.publish.items())}"
    for join in explained.joins:
        yield from _join_lines(join, "  ")
    requests = ", ".join(f"{n} {name}" for name, n in explained.requests.items())
    yield f"one document, where every join finds one row: {requests} (keys go out 100 to a request)"


def _join_lines(join: ExplainedJoin, margin: str) -> Iterator[str]:
    hidden = "" if join.shown else " (join: not shown itself)"
    needed = ", required" if join.required else ""
    counts = f"{_where_text(join.where)}{needed}{hidden}"
    yield f"{margin}{join.name}: {join.kind} {join.entity} on {', '.join(join.on)}{counts}"
    together = f"; the same request answers {', '.join(join.together)}" if join.together else ""
    yield f"{margin}  down  {_path_text(join.down)}{together}"
    yield f"{margin}  up    {_path_text(join.up)}"
    if join.shared_with:
        yield f"{margin}  read once with {product_names(join.shared_with)}"
    for below in join.below:
        yield from _join_lines(below, margin + "  ")


def _root_text(explained: ExplainedProduct) -> str:
    return f"a document for each {explained.root}{_where_text(explained.where)}, by {'#'.join(explained.key)}"


def _where_text(where: str | None) -> str:
    return "" if where is None else f" where {where}"


def _path_text(path: AccessPath) -> str:
    if not path.request:
        return f"no request: {path.by}"
    pinned = "" if path.request != "Query" else ", shared" if path.shared else ", pinned"
    why = f", since {path.by.partition(' ')[0]} has rows of {', '.join(path.strangers)}, too" if path.strangers else ""
    return f"{path.request} {path.by}{pinned}{why}"


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
            down=_access_path(plan, node.join.entity, node.down, node.above, node.parent_columns),
            up=_path_up(plan, node),
            together=tuple(n.join.name for n in nodes if n is not node and _request_key(n) == _request_key(node)),
            below=_joins(plan, product, node.below),
            shared_with=shared,
        )
        for node, shared in zip(nodes, users, strict=True)
    )


def _users(plan: Plan, product: ProductPlan, index: int) -> tuple[str, ...]:
    """The other products that use the node of the merged tree that a product's own node became."""
    name = product.product.name
    users = plan.trees[product.product.root].node_of(name, index).users
    return tuple(sorted(users.keys() - {name}))


def _path_up(plan: Plan, node: JoinPlan) -> AccessPath:
    if node.parent is None and isinstance(node.up, KeyPath):
        return AccessPath(request="", by=f"the key of the {node.above} is known")
    return _access_path(plan, node.above, node.up, node.join.entity, node.child_columns)


def _access_path(plan: Plan, entity: str, access: PlannedPath, asker: str, columns: Columns) -> AccessPath:
    """The request for the rows of `entity` that join the values of `columns` of the entity `asker`."""
    value = "#".join(f"<{asker}.{column}>" for column in columns)
    if isinstance(access, KeyPath):
        return AccessPath(request="BatchGetItem", by=f"PK = '{_partition_text(plan, entity)}' AND SK = {value}")
    if isinstance(access, EdgePath):
        edges = f"PK = '{edge_partition(entity, field_names(access.fields), '')}' + {value}"
        return AccessPath(request="Query of edges, BatchGetItem", by=edges)
    query = plan.query(entity, access, "")
    by = f"{query.slot} = {value}{pin_text(query.entity)}"
    return AccessPath(request="Query", by=by, shared=not access.pinned, strangers=access.strangers)


def pin_text(entity: str | None) -> str:
    """The condition that pins a query to the rows of an entity; empty without a pin."""
    return "" if entity is None else f" AND begins_with(GSI_SK, '{index_rows(entity)}')"


def _partition_text(plan: Plan, entity: str) -> str:
    unsharded = plan.entities[entity].entity.shards == 1
    return partition(entity, 1, "") if unsharded else f"{partition_prefix(entity)}<shard>"


def _request_key(node: JoinPlan) -> tuple[object, ...]:
    """A value that is equal for two siblings if they send the same request."""
    own = None if isinstance(node.down, SlotPath) and not node.down.pinned else node.join.entity
    return node.down, own, node.parent_columns


def _requests(product: ProductPlan) -> Counter[str]:
    """The requests of `processor.engine.protocol.assemble` if every join finds one row: level by level, equal requests once."""
    found: Counter[str] = Counter(BatchGetItem=1)
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
    root = plan.entities[product.product.root]
    yield "flowchart LR"
    heading = _label(product.product.name, f"a document for each {root.name}, by {', '.join(root.entity.key)}")
    yield f"    root[{heading}]"
    yield from _below(product, "root", product.top)


def _below(product: ProductPlan, above: str, nodes: Sequence[int]) -> Iterator[str]:
    for index in nodes:
        node = product.nodes[index]
        join = node.join
        kind = "many" if join.many else "one"
        on = ", ".join(join.equalities(node.above))
        arrow = "-->" if join.shown else "-.->"
        yield f"    {above} {arrow}|{_label(f'{join.name}: {kind}')}| n{index}[{_label(join.entity, on)}]"
        yield from _below(product, f"n{index}", node.below)


def _label(*lines: str) -> str:
    """The lines as one label, with codes for the signs that Mermaid reads as its own."""
    return f'"{"<br>".join(line.translate(_CODES) for line in lines)}"'
