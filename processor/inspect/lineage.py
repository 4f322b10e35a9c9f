"""The rows of a document, each with the position of the change that wrote it and the request that finds it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processor.inspect.access_paths import pin_text
from processor.plan.plan import Plan
from processor.plan.product_plan import JoinPlan, ProductPlan
from processor.plan.step import Lookup, Step
from processor.product.document import Match
from processor.steps.assemble import assemble
from statestore import keys
from statestore.item_attributes import version_of_item
from statestore.keys import Key
from statestore.store import Query
from statestore.versions import decode_version


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A row of a document. `join`: the join that found it, empty for the root; `depth`: of that join; `epoch`, `partition` and
    `offset`: the position of the change that wrote the row last."""

    join: str
    depth: int
    entity: str
    key: str
    epoch: int
    partition: int
    offset: int
    request: str


def lineage(plan: Plan, product: ProductPlan, root: str) -> Step[tuple[SourceRow, ...]]:
    """The rows of the document whose root has the encoded key `root`, each before the rows below it; none without that root."""
    top = yield from assemble(plan, product, root)
    if top is None:
        return ()
    found = list(_walk(plan, product, top))
    items = yield tuple(key for *_, key in found)
    rows = []
    for (join, depth, entity, request, key), item in zip(found, items, strict=True):
        if item is not None:  # None: deleted after the document was assembled
            epoch, partition, offset = decode_version(version_of_item(item))
            row = SourceRow(
                join=join,
                depth=depth,
                entity=entity,
                key=key.sk,
                epoch=epoch,
                partition=partition,
                offset=offset,
                request=request,
            )
            rows.append(row)
    return tuple(rows)


def lineage_lines(rows: Sequence[SourceRow]) -> Iterator[str]:
    """The rows as text, a line each."""
    for row in rows:
        name = f"{row.join}: " if row.join else ""
        position = f"epoch {row.epoch}, partition {row.partition}, offset {row.offset}"
        yield f"{'  ' * row.depth}{name}{row.entity} {row.key}; {position}; by {row.request}"


def _walk(plan: Plan, product: ProductPlan, top: Match) -> Iterator[tuple[str, int, str, str, Key]]:
    root = plan.entities[product.product.root]
    key = root.key(keys.encode([top.columns[c] for c in root.entity.key]) or "")
    yield "", 0, root.name, _request_text(key), key
    yield from _below(plan, product, top, product.top, 1)


def _below(
    plan: Plan, product: ProductPlan, match: Match, nodes: Sequence[int], depth: int
) -> Iterator[tuple[str, int, str, str, Key]]:
    for node in (product.nodes[index] for index in nodes):
        child = plan.entities[node.join.entity]
        for found in match.found[node.join.name]:
            key = child.key(keys.encode([found.columns[c] for c in child.entity.key]) or "")
            yield node.join.name, depth, child.name, _request_text(_row_request(plan, node, match, found)), key
            yield from _below(plan, product, found, node.below, depth + 1)


def _row_request(plan: Plan, node: JoinPlan, match: Match, found: Match) -> Key | Lookup:
    """The request that found the row. For a list join, its key is an element that both rows have."""
    child_keys = node.child_keys(found.columns)
    key = next(key for key in node.parent_keys(match.columns) if key is not None and key in child_keys)
    return plan.request(node.join.entity, node.down, key)


def _request_text(request: Key | Lookup) -> str:
    match request:
        case Key(pk, sk):
            return f"PK = '{pk}' AND SK = '{sk}'"
        case Lookup(source=Query(slot=slot, value=value, entity=entity)):
            return f"{slot} = '{value}'{pin_text(entity)}"
        case Lookup(source=partition):
            return f"PK = '{partition}'"
    raise TypeError(f"{request} reads no row")
