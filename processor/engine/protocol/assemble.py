"""Fetches the rows of a root's documents: the root by key, then level by level the rows that each join of the tree finds.

The tree has the joins of all products that show the root, so the step decodes each row once, computes each join key once, and
checks each row once. It asks all requests of one level together. Siblings that share a slot ask the same lookup, which the
runner sends once. An index answer is only a hint, and so is an edge: the step checks each row's real columns against the join.
`processor.language.product.document` decides which rows a document shows, and in which order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from processor.engine.plan.plan import EntityPlan, JoinPlan, OrderedRead, Plan, ProductPlan, RootTree, TreeNode, merge
from processor.engine.plan.row_image import declared_columns, undeclared_columns
from processor.engine.plan.step import Lookup, OrderedPage, ShownRow, Step
from processor.language.product.counted import Totals, is_exact, sum_up
from processor.language.product.document import Match, Shape
from processor.language.product.expressions.expression import Evaluate, Expression, compile_expression
from processor.language.product.product import GroupEntity
from processor.values.record import Value
from registry.model import EdgePath, KeyPath
from statestore.items import entity_of_item
from statestore.keys import index_rows
from statestore.memory import READ_BYTES
from statestore.store import Item, Page
from statestore.values import item_size

Ask = tuple[Match, TreeNode, str]
"""The row above, the node of the tree, and the key to look for."""
Above = tuple[Match, tuple[int, ...]]
"""A row, and the joins below it."""
ROOT_ROW: Final = -1
"""The row of the root, as the number of a node."""
PAGES: Final = (Page, OrderedPage)
FEW: Final = 16
"""Rows of an answer that count as one half of a read unit: nobody looks for roots of this size."""


@dataclass(slots=True)
class RootReads:
    """What the assembly of one root reads. `asked`: requests by the numbers of the nodes, perhaps those of other roots too.
    `longest`: the most rows of a join below one row, which are of the entity `of`.

    `half_units`: an estimate by the rules of DynamoDB, two for a row by its key, and one for each 4 KB of an index answer, whose
    rows all count as heavy as the first one. Equal requests of the root count once; what roots share counts for each."""

    asked: Counter[int] = field(default_factory=Counter)
    rows: int = 1
    half_units: int = 2
    longest: int = 0
    of: str = ""

    def take(self, nodes: Sequence[TreeNode], answers: Sequence[Any]) -> None:
        """Counts the answers to the requests of these nodes."""
        rows = half_units = 0
        for node in nodes:
            self.asked[node.number] += 1
        for node, answer in _apart(nodes, answers):
            if not isinstance(answer, PAGES):  # a row by its key, or none
                rows += 1
                half_units += 2
                continue
            count = len(answer.items)
            rows += count
            if count <= FEW:
                half_units += 1
            elif isinstance(node.join.down, EdgePath):
                half_units += 2 * count
            else:
                half_units += -(-count * item_size(answer.items[0]) // READ_BYTES)
        self.rows += rows
        self.half_units += half_units


def _apart(nodes: Sequence[TreeNode], answers: Sequence[Any]) -> Iterable[tuple[TreeNode, Any]]:
    """Each answer with a node that asked for it; one that several nodes share comes once."""
    pairs = zip(nodes, answers, strict=True)
    return pairs if len(nodes) == 1 else {id(answer): (node, answer) for node, answer in pairs}.values()


def assemble(plan: Plan, product: ProductPlan, root: str, tally: Counter[str] | None = None) -> Step[Match | None]:
    """The rows of one product's document, as `assemble_tree` and `shown_rows` find them."""
    tree = merge([product])
    top = yield from assemble_tree(plan, tree, root, tally)
    return None if top is None else shown_rows(top, tree.shape[product.product.name])


def assemble_tree(
    plan: Plan,
    tree: RootTree,
    root: str,
    tally: Counter[str] | None = None,
    reads: RootReads | None = None,
    *,
    shown: bool = False,
) -> Step[Match | None]:
    """The rows of the documents whose root has the encoded key `root`, each with the rows below it by the numbers of their nodes;
    None when there is no such row. Counts in `tally` the stored values that do not fit their columns,
    and in `reads` what it reads. `shown`: an index answer of the round has shown the root's row."""
    if tree.group is not None:
        return (yield from _assemble_group(plan, tree, tree.group, root, tally, reads))
    entity = plan.entities[tree.root]
    if reads is not None and not shown:
        reads.asked[ROOT_ROW] += 1
    key = entity.key(root)
    (item,) = yield (ShownRow(key) if shown else key,)
    columns = declared_columns(item, entity, tally) if item is not None else None
    if columns is None:
        return None
    top = _match(item, entity, columns)
    yield from _assemble_below(plan, tree, [(top, tree.top)], tally, reads)
    return top


def _assemble_group(
    plan: Plan,
    tree: RootTree,
    group: GroupEntity,
    root: str,
    tally: Counter[str] | None,
    reads: RootReads | None,
) -> Step[Match | None]:
    """The same for the group with this key, which is also that of all joins by the columns of the group. The first of them finds
    its rows; no row, no group. Its columns are those that its rows have."""
    by_key = [index for index in tree.top if tree.nodes[index].join.parent_columns == group.key]
    columns: dict[str, Value] = {}
    top = Match(columns, {}, {tree.nodes[index].number: [] for index in by_key})
    below = yield from _find_rows(plan, [(top, tree.nodes[index], root) for index in by_key], tally, reads)
    rows = top.found[tree.nodes[by_key[0]].number]
    if not rows:
        return None
    columns.update(group.of_row(rows[0].columns))
    others = tuple(index for index in tree.top if index not in by_key)
    yield from _assemble_below(plan, tree, [(top, others), *below], tally, reads)
    return top


def _assemble_below(
    plan: Plan, tree: RootTree, level: list[Above], tally: Counter[str] | None, reads: RootReads | None
) -> Step[None]:
    """Finds the rows below those of a level, down to the last ones."""
    while asks := list(_asks(tree, level)):
        level = yield from _find_rows(plan, asks, tally, reads)


def _find_rows(plan: Plan, asks: list[Ask], tally: Counter[str] | None, reads: RootReads | None) -> Step[list[Above]]:
    """Puts the rows that were asked for below the rows above them. Returns those that have joins below."""
    requests = [plan.request(node.join.join.entity, node.join.down, key) for _, node, key in asks]
    first = {n: _reading(plan, ask, tally) for n, ask in enumerate(asks) if ask[1].special}
    if first:
        answers = yield from _read_first(first, requests, reads)
    else:
        answers = yield tuple(requests)
    if reads is not None:
        reads.take([node for _, node, _ in asks], answers)
    level: list[Above] = []
    for n, ((row, node, key), answer) in enumerate(zip(asks, answers, strict=True)):
        join = node.join
        found = first[n].rows() if n in first else _rows(join, plan.entities[join.join.entity], key, answer, tally)
        row.found[node.number] += found
        if reads is not None and len(found) > reads.longest:
            reads.longest, reads.of = len(found), join.join.entity
        if join.below:
            level += [(one, join.below) for one in found]
    return level


def _reading(plan: Plan, ask: Ask, tally: Counter[str] | None) -> "_FirstRows | _TotalsOrRows":
    row, node, key = ask
    return _TotalsOrRows(plan, row, node, key, tally) if node.counted else _FirstRows(plan, node, key, tally)


def _read_first(
    first: "Mapping[int, _FirstRows | _TotalsOrRows]", requests: list[Any], reads: RootReads | None
) -> Step[Any]:
    """The answers to the requests. Those of ordered joins are asked page by page, and those of counted joins for totals, in place
    of all rows of their keys. Counts the pages after the first ones."""
    for n, reading in first.items():
        requests[n] = reading.request()
    answers = yield tuple(requests)
    for n, reading in first.items():
        reading.take(answers[n])
    while waiting := [reading for reading in first.values() if not reading.done]:
        pages = yield tuple([one.request() for one in waiting])
        if reads is not None:
            reads.take([one.node for one in waiting], pages)
        for reading, page in zip(waiting, pages, strict=True):
            reading.take(page)
    return answers


class _TotalsOrRows:
    """The totals of a key, in the place of the rows that a join finds below a row. The rows instead, where some of them are in no
    total yet, or where a total is not exact."""

    __slots__ = ("_key", "_page", "_plan", "_row", "_tally", "_totals", "done", "node")

    def __init__(self, plan: Plan, row: Match, node: TreeNode, key: str, tally: Counter[str] | None) -> None:
        self._plan, self._row, self.node, self._key, self._tally = plan, row, node, key, tally
        self._totals = plan.totals(node.join, key)
        self._page: Any = None
        self.done = False

    def request(self) -> Any:
        """The request for the totals, or for the rows."""
        return self._totals or self._plan.request(self.node.join.join.entity, self.node.join.down, self._key)

    def take(self, page: Any) -> None:
        """Takes the answer."""
        if self._totals is None:
            self._page, self.done = page, True
            return
        numbers = sum_up(page.items)
        if is_exact(numbers):
            self._row.found[self.node.number] = Totals(numbers)
            self.done = True
        self._totals = None

    def rows(self) -> list[Match]:
        """The rows, where totals are not in their place."""
        join = self.node.join
        entity = self._plan.entities[join.join.entity]
        return [] if self._page is None else _rows(join, entity, self._key, self._page, self._tally)


class _FirstRows:
    """The rows of a key that come first in the order of an index, page by page.

    A row that is open lies over each page, wherever the index shows it. All others are where the index shows them, so those
    behind the last row of a page do not come before it. The reading ends when enough rows that count come before that one. A row
    at the same place does not count yet: the key, or a later term, decides between them. One row more says that a limit cuts."""

    __slots__ = ("_entity", "_join", "_key", "_known", "_most", "_name", "_plan", "_start", "_tally", "done", "node")

    def __init__(self, plan: Plan, node: TreeNode, key: str, tally: Counter[str] | None) -> None:
        self._plan, self.node, self._key, self._tally = plan, node, key, tally
        self._join, self._name = node.join, node.join.join.entity
        self._entity = plan.entities[self._name]
        self._most = max(read.rows for read in node.ordered) + 1
        self._start, self.done = "", False
        self._known: dict[tuple[str, str], tuple[str, Match] | None] = {}

    def request(self) -> Lookup:
        """The next page."""
        return self._plan.first_rows(self._name, self.node.ordered[0], self._key, self._most, self._start)

    def rows(self) -> list[Match]:
        """The rows so far that have the key."""
        return [found[1] for found in self._known.values() if found is not None]

    def take(self, page: OrderedPage) -> None:
        """Takes a page, and sees whether it is the last that is needed."""
        for item in page.items:
            if (place := (item["PK"], item["SK"])) not in self._known:  # what lies over an earlier page is as new
                self._known[place] = self._read(item)
        self._start, self._most = page.end or self._start, 2 * self._most  # another request, also after an empty page
        self.done = page.after is None or all(self._has(read, page.end) for read in self.node.ordered)

    def _read(self, item: Item) -> tuple[str, Match] | None:
        if entity_of_item(item) != self._name:
            return None
        columns = declared_columns(item, self._entity, self._tally)
        if columns is None or self._key not in self._join.child_keys(columns):
            return None
        name = index_rows(self._name) + self._entity.place(self.node.ordered[0].slot, columns)
        return name, _match(item, self._entity, columns)

    def _has(self, read: OrderedRead, end: str) -> bool:
        counts = None if read.where is None else _condition(read.where)
        names = [
            name for name, row in filter(None, self._known.values()) if counts is None or counts((row, None)) is True
        ]
        before = sum(name < end and not end.startswith(name) for name in names)
        return before >= read.rows and len(names) > read.rows


@lru_cache(maxsize=1024)
def _condition(where: Expression) -> Evaluate:
    """A condition that reads columns of its own row alone."""
    level: Any = None
    return compile_expression(where, level)


def shown_rows(row: Match, shape: Shape) -> Match:
    """The row as one product sees it: with the rows of its own joins, by their names."""
    found = {
        name: rows if isinstance(rows := row.found[number], Totals) else [shown_rows(one, below) for one in rows]
        for name, number, below in shape
    }
    return Match(row.columns, row.more, found)


def _asks(tree: RootTree, level: Iterable[Above]) -> Iterable[Ask]:
    for row, nodes in level:
        columns = row.columns
        for index in nodes:
            node = tree.nodes[index]
            row.found[node.number] = []
            keys = node.join.parent_keys(columns)
            for key in keys if len(keys) == 1 else dict.fromkeys(keys):
                if key is not None:
                    yield row, node, key


def _rows(join: JoinPlan, entity: EntityPlan, key: str, answer: Any, tally: Counter[str] | None) -> list[Match]:
    """The rows of an answer that have the key. The answer to a key read is the row of this key."""
    by_key, name = isinstance(join.down, KeyPath), join.join.entity
    items: Iterable[Item] = answer.items if not by_key else [answer] if answer is not None else []
    rows = []
    for item in items:
        if by_key or entity_of_item(item) == name:
            columns = declared_columns(item, entity, tally)
            if columns is not None and (by_key or key in join.child_keys(columns)):
                rows.append(_match(item, entity, columns))
    return rows


def _match(item: Item, entity: EntityPlan, columns: Mapping[str, Any]) -> Match:
    """The row, with its undeclared columns where a product shows whole rows of the entity."""
    return Match(columns, undeclared_columns(item, entity) if entity.used is None else {})
