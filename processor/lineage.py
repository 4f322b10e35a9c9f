"""The rows behind a document: of each its version, the position that it came from, and the request that finds it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processor.model.document import Match
from processor.model.elements import join_keys
from processor.model.plan import Node, Plan, ProductPlan
from processor.model.step import Edges, Request, Step
from processor.steps.assemble import assemble
from statestore import keys
from statestore.items import read_row
from statestore.keys import Key
from statestore.store import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A row. `join`: what found it, empty for the root; `depth`: of that join; `epoch` and `offset`: of the change that wrote it
    last, in its key's partition."""

    join: str
    depth: int
    entity: str
    key: str
    epoch: int
    offset: int
    request: str


def lineage(plan: Plan, product: ProductPlan, root: str) -> Step[tuple[Behind, ...]]:
    """The rows of the document whose root has the spelt key `root`, each before those below it; none without that root."""
    top = yield from assemble(plan, product, root)
    if top is None:
        return ()
    found = list(_walk(plan, product, top))
    items = yield tuple(key for *_, key in found)
    behind = []
    for (join, depth, entity, request, key), item in zip(found, items, strict=True):
        if item is not None:  # deleted since
            epoch, offset = map(int, read_row(item).version.split("."))
            behind.append(
                Behind(join=join, depth=depth, entity=entity, key=key.sk, epoch=epoch, offset=offset, request=request)
            )
    return tuple(behind)


def lines(behind: Sequence[Behind]) -> Iterator[str]:
    """The rows as text, a line each."""
    for row in behind:
        name = f"{row.join}: " if row.join else ""
        place = f"epoch {row.epoch}, offset {row.offset}"
        yield f"{'  ' * row.depth}{name}{row.entity} {row.key}; {place}; by {row.request}"


def _walk(plan: Plan, product: ProductPlan, top: Match) -> Iterator[tuple[str, int, str, str, Key]]:
    root = plan.entities[product.product.root]
    key = root.key(keys.spell([top.columns[c] for c in root.entity.key]) or "")
    yield "", 0, root.name, _spelt(key), key
    yield from _below(plan, product, top, product.top, 1)


def _below(
    plan: Plan, product: ProductPlan, match: Match, nodes: Sequence[int], depth: int
) -> Iterator[tuple[str, int, str, str, Key]]:
    for node in (product.nodes[index] for index in nodes):
        child = plan.entities[node.join.entity]
        for found in match.found[node.join.name]:
            key = child.key(keys.spell([found.columns[c] for c in child.entity.key]) or "")
            yield node.join.name, depth, child.name, _spelt(_request(plan, node, match, found)), key
            yield from _below(plan, product, found, node.below, depth + 1)


def _request(plan: Plan, node: Node, match: Match, found: Match) -> Request:
    """What was asked for the row: of a list join, with the element that it has in common with the row above."""
    held = join_keys(node.child_columns, found.columns)
    key = next(key for key in join_keys(node.parent_columns, match.columns) if key is not None and key in held)
    return plan.ask(node.join.entity, node.down, key)


def _spelt(request: Request) -> str:
    match request:
        case Key(pk, sk):
            return f"PK = '{pk}' AND SK = '{sk}'"
        case Query(slot=slot, value=value, pk=None, pk_prefix=None):
            return f"{slot} = '{value}'"
        case Query(slot=slot, value=value, pk=None, pk_prefix=prefix):
            return f"{slot} = '{value}' AND begins_with(PK, '{prefix}')"
        case Query(slot=slot, value=value, pk=pk):
            return f"{slot} = '{value}' AND PK = '{pk}'"
        case Edges(partition=partition):
            return f"PK = '{partition}'"
    raise TypeError(f"{request} reads no row")
