"""The way of look-up tables in a key-value store without indexes: for each side of a join, a table from join key to row keys.

Each pair of join key and row key is an item of its own. With a list of row keys in one item, each new entry would rewrite the
list, and a popular key would reach the 400 KB of an item. A side whose columns are the primary key needs no look-up table.

A batch continues in this order, so that a crash leaves too many entries, and never too few:

1. Read the old rows.
2. Add the new entries, 25 a request.
3. Write the rows, on condition that they are as they were read.
4. Remove the old entries.
5. Find the roots: up each product's tree, by look-up and read by key.
6. Assemble: down each product's tree, by look-up and read by key.
7. Read the fingerprints of the last documents, write those that differ, and send.

Promises: a batch reads no item and no look-up twice after its writes, and keys go out 100 a request. Does not: repeat a refused
write, order two publishers of one document, or send documents after a crash between 3 and 7: then the rows are new already,
so a replay finds no change.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable

from benchmarks.peers.old_ways.way import DocumentTopics, ReadCountingStore, WayCounts, digest, last_changes, places
from processor.engine.plan.plan import JoinPlan, Plan, ProductPlan
from processor.language.product.document import GONE, Renderer
from processor.language.product.expressions.expression import Match
from processor.language.product.product import Columns
from processor.values import canonical_json
from processor.values.record import Record, Value
from registry.model import KeyPath
from statestore import keys
from statestore.keys import Key
from statestore.store import Absent, Delete, Equals, Item, Write

TableName = Callable[[str, JoinPlan, Columns], str]
"""The name of the look-up table of a product's join for the side with these columns."""


def shared_table(product: str, node: JoinPlan, columns: Columns) -> str:
    """One table serves all joins by the same columns, whatever their product."""
    return keys.field_names(columns)


def own_table(product: str, node: JoinPlan, columns: Columns) -> str:
    """Each join of each product has tables of its own."""
    return f"{product}.{node.join.name}.{keys.field_names(columns)}"


class LookUpTables:
    """A loop over an empty store. `name`: of the look-up tables."""

    def __init__(self, plan: Plan, name: TableName) -> None:
        self._plan, self._name, self._store = plan, name, ReadCountingStore(1)
        self._topics = DocumentTopics()
        self._rows: dict[Key, Item | None] = {}
        self._entries: dict[str, list[str]] = {}
        entities = plan.declared_entities
        self._renderers = {
            product: Renderer(product=of.product, entities=entities, tally=Counter())
            for product, of in plan.products.items()
        }
        self._sides: dict[str, dict[str, Columns]] = defaultdict(dict)
        for product, of in plan.products.items():
            for node in of.nodes:
                for entity, access, columns in node.sides():
                    if not isinstance(access, KeyPath):
                        self._sides[entity][name(product, node, columns)] = columns

    def process(self, records: list[Record]) -> None:
        wanted: dict[tuple[str, int], set[str]] = defaultdict(set)
        roots: dict[str, set[str]] = defaultdict(set)
        for entity, sk, old, new in self._write(records):
            for product, index in places(self._plan, entity, old, new):
                if index is None:
                    roots[product].add(sk)
                else:
                    node = self._plan.products[product].nodes[index]
                    found = {key for row in (old, new) if row is not None for key in node.child_keys(row)}
                    wanted[product, index] |= found - {None}  # type: ignore[arg-type]
        self._rows, self._entries = {}, {}
        for name, planned in self._plan.products.items():
            for place in reversed(range(len(planned.nodes))):
                self._ascend(planned, place, wanted, roots[name])
            if roots[name]:
                self._publish(planned, sorted(roots[name]))

    def finish(self) -> None:
        """Does nothing: no batch leaves work."""

    def counts(self) -> WayCounts:
        return self._store.counts(self._topics.sent)

    def documents(self) -> dict[str, dict[str, Value]]:
        return self._topics.documents()

    def _write(self, records: list[Record]) -> list[tuple[str, str, Item | None, Item | None]]:
        """Writes rows and entries. Returns the old and the new columns of each changed row."""
        changes = {
            self._plan.entities[entity].key(sk): change
            for (entity, sk), change in last_changes(records, self._plan).items()
        }
        stored = self._store.get(changes)
        found, rows, added, removed = [], list[Write | Delete](), list[Key](), list[Key]()
        for key, change in changes.items():
            item, new = stored.get(key), change.row
            old = self._columns(change.entity, item)
            if old == new:
                continue
            when = Absent() if item is None else Equals("_v", item["_v"])
            version = change.record.offset
            rows.append(Delete(key=key, when=when) if new is None else Write(key, {**new, "_v": version}, when=when))
            before, after = (self._entries_of(change.entity, key.sk, row) for row in (old, new))
            added += after - before
            removed += before - after
            found.append((change.entity, key.sk, old, new))
        if added:
            self._store.write_batch([Write(key, {}, when=Absent()) for key in added])
        for row in rows:
            self._store.delete(row) if isinstance(row, Delete) else self._store.write(row)
        for key in removed:
            self._store.delete(Delete(key=key))
        return found

    def _entries_of(self, entity: str, sk: str, row: Item | None) -> set[Key]:
        """The entries of a row in all look-up tables of its entity."""
        sides = self._sides[entity] if row is not None else {}
        found = ((name, keys.encode([(row or {})[column] for column in columns])) for name, columns in sides.items())
        return {Key(keys.edge_partition(entity, name, key), sk) for name, key in found if key is not None}

    def _ascend(
        self, product: ProductPlan, index: int, wanted: dict[tuple[str, int], set[str]], roots: set[str]
    ) -> None:
        """Goes from the wanted keys of a join to the rows above: to roots, or to the wanted keys of the join above."""
        name, node = product.product.name, product.nodes[index]
        above = [sk for key in sorted(wanted.pop((name, index), ())) for sk in self._side(product, node, key, up=True)]
        if node.parent is None:
            roots.update(above)
        elif above:
            parent = product.nodes[node.parent]
            read = self._read(node.above, above)
            wanted[name, node.parent] |= {key for row in read.values() for key in parent.child_keys(row) if key}

    def _side(self, product: ProductPlan, node: JoinPlan, key: str, *, up: bool) -> list[str]:
        """The keys of the rows on one side of a join that have this join key."""
        child, parent = node.sides()
        entity, access, columns = parent if up else child
        if isinstance(access, KeyPath):
            return [key]
        pk = keys.edge_partition(entity, self._name(product.product.name, node, columns), key)
        if pk not in self._entries:
            self._entries[pk] = [item["SK"] for item in self._store.partition(pk)]
        return self._entries[pk]

    def _below(self, product: ProductPlan, node: JoinPlan, above: Match) -> list[str]:
        """The keys of the rows that a join finds for a row above."""
        wanted = filter(None, node.parent_keys(above.columns))
        return [sk for key in wanted for sk in self._side(product, node, key, up=False)]

    def _read(self, entity: str, sks: Iterable[str]) -> dict[str, Item]:
        """The columns of the rows with these keys. Leaves out keys without a row."""
        wanted = {sk: self._plan.entities[entity].key(sk) for sk in sks}
        if unread := [key for key in wanted.values() if key not in self._rows]:
            self._rows |= dict.fromkeys(unread) | self._store.get(unread)
        read = {sk: self._columns(entity, self._rows[key]) for sk, key in wanted.items()}
        return {sk: row for sk, row in read.items() if row is not None}

    def _columns(self, entity: str, item: Item | None) -> Item | None:
        return None if item is None else {name: item[name] for name in self._plan.entities[entity].entity.columns}

    def _assemble(self, product: ProductPlan, roots: Collection[str]) -> dict[str, Match]:
        """The rows of the documents of these roots. Leaves out roots without a row."""
        tops = {sk: Match(row, {}) for sk, row in self._read(product.product.root, roots).items()}
        levels: dict[int | None, list[Match]] = {None: list(tops.values())}
        for index, node in enumerate(product.nodes):
            found = [(match, self._below(product, node, match)) for match in levels[node.parent]]
            read = self._read(node.join.entity, [sk for _, sks in found for sk in sks])
            for match, sks in found:
                match.found[node.join.name] = [Match(read[sk], {}) for sk in sks if sk in read]
            levels[index] = [below for match, _ in found for below in match.found[node.join.name]]
        return tops

    def _publish(self, product: ProductPlan, roots: Collection[str]) -> None:
        name = product.product.name
        tops, places_ = self._assemble(product, roots), {root: Key(f"SENT#{name}", root) for root in roots}
        last = self._store.get(places_.values())
        writes = []
        for root, place in places_.items():
            document = self._renderers[name].document(tops[root]) if root in tops else GONE
            before = last[place]["hash"] if place in last else None
            if document is GONE:
                if before is not None:
                    self._store.delete(Delete(key=place, when=Equals("hash", before)))
                    self._topics.send(name, root, None)
                continue
            text = canonical_json.encode(document)
            if digest(text) != before:
                when = Absent() if before is None else Equals("hash", before)
                writes.append(Write(place, {"hash": digest(text)}, when=when))
                self._topics.send(name, root, text)
        if writes:
            self._store.write_batch(writes)
