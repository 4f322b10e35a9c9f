"""Warns, by statistics of the state, of values that many rows hold, of too large documents, and of rows near an item's limit.

A document counts as large as the stored rows that it shows, so a product that selects few columns gets its warning too early.
"""

from collections.abc import Iterator

from processor.plan.access import Access, SlotRead
from processor.plan.plan import Plan
from processor.plan.planning import join_of
from processor.plan.product_plan import JoinPlan, ProductPlan
from processor.pricing.estimate import StatisticsIndex
from processor.records.message import MAX_MESSAGE_BYTES
from registry.model import JoinStatistics
from statestore.items import slot_name
from statestore.store import MAX_ITEM_BYTES

HOT_ROWS = 1_000
"""A warning is due for a value that finds at least so many rows."""
KAFKA_BYTES = 1024 * 1024
"""The largest message of Kafka, unless a topic or its broker is set otherwise."""
NEAR_LIMIT = 0.75
"""A warning is due for a row above this share of an item's limit."""


def size_warnings(plan: Plan, index: StatisticsIndex) -> Iterator[str]:
    """A warning for each value, document and row that is too large by these statistics, or nearly so."""
    nodes = {join_of(node): node for product in plan.products.values() for node in product.nodes}
    for node in nodes.values():
        yield from _hot_values(node, index)
    for product in plan.products.values():
        yield from _large_document(product, index)
    for name in plan.entities:
        sampled = index.entities.get(name)
        if sampled is not None and sampled.most_bytes > MAX_ITEM_BYTES * NEAR_LIMIT:
            size = f"a row of the sample has {sampled.most_bytes / 1024:,.0f} KiB"
            yield f"entity {name}: {size}, and an item of the table holds {MAX_ITEM_BYTES // 1024}; store less in a row"


def _hot_values(node: JoinPlan, index: StatisticsIndex) -> Iterator[str]:
    join, child = join_of(node), node.join.entity
    down, up = index.joins.get((join, "down")), index.joins.get((join, "up"))
    if down is not None and down.most >= HOT_ROWS:
        yield f"join {_found_rows(down, child)}: a document reads them all, and {_write_limit(node.down)}"
    if up is not None and up.most >= HOT_ROWS:
        rebuilt = f"a change of its {child} rebuilds the documents above each"
        yield f"join {_found_rows(up, node.above)}: {rebuilt}, and {_write_limit(node.up)}"


def _found_rows(found: JoinStatistics, entity: str) -> str:
    return f"{found.join}: {found.shown_value} finds {found.most:,} rows of {entity}"


def _write_limit(access: Access) -> str:
    """The write limit of rows that hold one value."""
    where = f"one key of {slot_name(access.slot)}" if isinstance(access, SlotRead) else "one partition of edges"
    return f"all are in {where}, which takes about 1,000 writes a second"


def _large_document(product: ProductPlan, index: StatisticsIndex) -> Iterator[str]:
    """A warning if the largest document is too large for a message. One of its joins finds its most rows, the others the mean."""
    means = [index.mean(node, "down") for node in product.nodes]
    rows = [0.0] * len(product.nodes)  # bytes of a row of each node, with what is embedded below it

    def embedded(level: tuple[int, ...]) -> float:
        return sum(_shown_rows(product.nodes[i], means[i]) * rows[i] for i in level)

    for number in reversed(range(len(rows))):
        node = product.nodes[number]
        rows[number] = index.bytes(node.join.entity) + embedded(node.below)
    document = index.bytes(product.product.root) + embedded(product.top)
    largest, cause = document, ""
    for number, path in enumerate(product.paths()):
        node = product.nodes[number]
        found = index.joins.get((join_of(node), "down"))
        if found is not None and _visible(product, number):
            size = document + (_shown_rows(node, found.most) - _shown_rows(node, means[number])) * rows[number]
            if size > largest:
                largest, cause = size, f" ({path} of {found.shown_value}: {found.most:,} rows)"
    if largest > KAFKA_BYTES:
        size_text = f"{product.product.name}: a document may have about {largest / 2**20:,.1f} MiB{cause}"
        limits = f"Kafka takes 1 MiB by default, the topics that the job makes {MAX_MESSAGE_BYTES >> 20} MiB"
        yield f"{size_text}; {limits}: add a `limit`"


def _shown_rows(node: JoinPlan, rows: float) -> float:
    """How many rows a document shows if the join finds `rows` rows."""
    join = node.join
    if not join.shown or join.aggregated:
        return 0
    limit = join.limit if join.many else 1
    return rows if limit is None else min(rows, limit)


def _visible(product: ProductPlan, number: int | None) -> bool:
    """Whether a document shows rows of a node: every join on the way to the node must show its rows."""
    while number is not None:
        if _shown_rows(product.nodes[number], 1) == 0:
            return False
        number = product.nodes[number].parent
    return True
