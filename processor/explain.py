"""What a product asks of the table: the tree of its joins with each access path, both ways, and what one document takes.

Pure: made from a compiled plan. `<user.username>` stands for the value of a row. Sends nothing and reads no state.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processor.definitions.describe import write
from processor.model.access import Access, Columns, EdgeRead, KeyRead, SlotRead
from processor.model.plan import Node, Plan, ProductPlan
from statestore.keys import edge_partition, partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One direction of a join. `request`: by DynamoDB's name, empty where nothing has to be asked; `by`: the key or the
    index condition; `shared`: an index query that is not pinned to one entity."""

    request: str
    by: str
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A join. `down`: from a row above to its rows here; `up`: from a row here to those above; `together`: the siblings that
    the same request answers."""

    name: str
    kind: str
    entity: str
    shown: bool
    on: tuple[str, ...]
    where: str | None
    required: bool
    down: Asked
    up: Asked
    together: tuple[str, ...]
    below: tuple["Branch", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A product. `used`: the root's columns whose change rebuilds the document, None for all of them; `requests`: what one
    document takes when every join finds one row."""

    product: str
    version: int
    topic: str
    root: str
    where: str | None
    key: tuple[str, ...]
    used: tuple[str, ...] | None
    requests: dict[str, int]
    joins: tuple[Branch, ...]


def explain(plan: Plan, product: ProductPlan) -> Explained:
    """The access paths of a product."""
    root = plan.entities[product.product.root]
    return Explained(
        product=product.product.name,
        version=product.version,
        topic=product.product.topic,
        root=root.name,
        where=None if product.product.where is None else write(product.product.where),
        key=root.entity.key,
        used=None if product.used is None else tuple(sorted({*product.used, *root.entity.key})),
        requests=dict(_requests(product)),
        joins=_branches(plan, product, product.top),
    )


def lines(explained: Explained) -> Iterator[str]:
    """The tree as text."""
    used = "any column" if explained.used is None else ", ".join(explained.used)
    yield f"{explained.product}, version {explained.version}: {_root(explained)}"
    yield f"  topic {explained.topic}; rebuilt when {used} of {explained.root} changes"
    for branch in explained.joins:
        yield from _branch_lines(branch, "  ")
    requests = ", ".join(f"{n} {name}" for name, n in explained.requests.items())
    yield f"one document, where every join finds one row: {requests} (keys go out 100 to a request)"


def _branch_lines(branch: Branch, margin: str) -> Iterator[str]:
    hidden = "" if branch.shown else " (join: not shown itself)"
    needed = ", required" if branch.required else ""
    counts = f"{_where(branch.where)}{needed}{hidden}"
    yield f"{margin}{branch.name}: {branch.kind} {branch.entity} on {', '.join(branch.on)}{counts}"
    together = f"; the same request answers {', '.join(branch.together)}" if branch.together else ""
    yield f"{margin}  down  {_asked(branch.down)}{together}"
    yield f"{margin}  up    {_asked(branch.up)}"
    for below in branch.below:
        yield from _branch_lines(below, margin + "  ")


def _root(explained: Explained) -> str:
    return f"a document for each {explained.root}{_where(explained.where)}, by {'#'.join(explained.key)}"


def _where(where: str | None) -> str:
    return "" if where is None else f" where {where}"


def _asked(asked: Asked) -> str:
    if not asked.request:
        return f"no request: {asked.by}"
    how = "" if asked.request != "Query" else ", shared" if asked.shared else ", pinned"
    return f"{asked.request} {asked.by}{how}"


def _branches(plan: Plan, product: ProductPlan, level: Sequence[int]) -> tuple[Branch, ...]:
    nodes = [product.nodes[index] for index in level]
    return tuple(
        Branch(
            name=node.join.name,
            kind="many" if node.join.many else "one",
            entity=node.join.entity,
            shown=node.join.shown,
            on=tuple(f"{child} = {node.above}.{parent}" for child, parent in node.join.on),
            where=None if node.join.where is None else write(node.join.where),
            required=node.join.required,
            down=_access(plan, node.join.entity, node.down, node.above, node.parent_columns),
            up=_up(plan, node),
            together=tuple(n.join.name for n in nodes if n is not node and _question(n) == _question(node)),
            below=_branches(plan, product, node.below),
        )
        for node in nodes
    )


def _up(plan: Plan, node: Node) -> Asked:
    if node.parent is None and isinstance(node.up, KeyRead):
        return Asked(request="", by=f"the key of the {node.above} is known")
    return _access(plan, node.above, node.up, node.join.entity, node.child_columns)


def _access(plan: Plan, entity: str, access: Access, asker: str, columns: Columns) -> Asked:
    """How rows of `entity` are asked for by the value of the asker's columns."""
    value = "#".join(f"<{asker}.{column}>" for column in columns)
    if isinstance(access, KeyRead):
        return Asked(request="BatchGetItem", by=f"PK = '{_partition(plan, entity)}' AND SK = {value}")
    if isinstance(access, EdgeRead):
        edges = f"PK = '{edge_partition(entity, access.fields, '')}' + {value}"
        return Asked(request="Query of edges, BatchGetItem", by=edges)
    query = plan.query(entity, access, "")
    pinned = (
        f" AND PK = '{query.pk}'"
        if query.pk
        else f" AND begins_with(PK, '{query.pk_prefix}')"
        if query.pk_prefix
        else ""
    )
    return Asked(request="Query", by=f"{query.slot} = {value}{pinned}", shared=not access.pinned)


def _partition(plan: Plan, entity: str) -> str:
    return partition(entity, 1, "") + ("" if plan.entities[entity].entity.shards == 1 else "#<shard>")


def _question(node: Node) -> tuple[object, ...]:
    """What two siblings that send the same request have in common."""
    own = None if isinstance(node.down, SlotRead) and not node.down.pinned else node.join.entity
    return node.down, own, node.parent_columns


def _requests(product: ProductPlan) -> Counter[str]:
    """The requests of `processor.steps.assemble` where every join finds one row: level by level, equal ones once."""
    found: Counter[str] = Counter(BatchGetItem=1)
    level: list[Sequence[int]] = [product.top]
    while any(level):
        asked = {(n, _question(product.nodes[i])) for n, siblings in enumerate(level) for i in siblings}
        queries = sum(not isinstance(question[0], KeyRead) for _, question in asked)
        found["Query"] += queries
        found["BatchGetItem"] += any(not isinstance(question[0], SlotRead) for _, question in asked)
        level = [product.nodes[i].below for siblings in level for i in siblings]
    return found
