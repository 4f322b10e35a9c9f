"""Compares the documents of a product by its live definition with those by a new one, over the rows of a state.

    1. draw the roots: all of them, or a uniform sample
    2. assemble each root's document by both definitions, from the same answers of the store where both read one store
    3. group the differences, and count the messages that an `apply` of the new definition sends

Promises: writes nothing. Each counted difference is one of value, between two documents that the steps assembled: values that are
equal as JSON are no difference. A list of another length is one difference, and its elements are not compared, because nobody
knows which element is which. A group of differences keeps one example, and no documents.
Does not: wait for a job that writes meanwhile.

`UnfilledRows` answers for slots and edges that stored rows do not hold yet: one pass over the rows of an entity finds the keys by
which its rows join. A step that asks such a slot or such edges then gets these rows by key, but no row that comes after the pass.

Join findings are joins that find nothing, and `one` joins that find several rows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain, islice
from math import ceil
from random import Random
from typing import Any, Literal, NamedTuple, TypeVar

from processor.engine.plan.plan import JoinPlan, Plan, ProductPlan, merge, root_message_key
from processor.engine.plan.row_image import declared_columns
from processor.engine.plan.step import Lookup, Request, Step
from processor.engine.protocol.assemble import assemble_tree, shown_rows
from processor.engine.protocol.ledger import NO_DOCUMENT, group_key, group_partition, read_entry
from processor.engine.protocol.ticks import job_clock
from processor.engine.rounds.round import CHUNK
from processor.engine.rounds.step_runner import StepRunner, apply_overlay
from processor.language.product.avro import json_of_avro
from processor.language.product.document import GONE, CompiledLevel, Match, Renderer, message_key
from processor.language.product.expressions.expression import Scope
from processor.language.product.product import Join, Product, WholeRow
from processor.tools.inspect.prices import Prices
from processor.tools.inspect.rows import roots_in
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import Value
from registry.model import EdgePath, KeyPath, PlannedPath, SlotPath, Snapshot, reads
from statestore.items import key_of_item, slot_name
from statestore.keys import Key
from statestore.memory import READ_BYTES
from statestore.store import Query, Store
from statestore.values import item_size

DifferenceKind = Literal[
    "new document",
    "document gone",
    "cannot be published",
    "field added",
    "field removed",
    "another type",
    "null now",
    "null no more",
    "list longer",
    "list shorter",
    "another value",
]


_TYPES = {bool: "bool", str: "text", list: "list", dict: "object"}


class DocumentChange(NamedTuple):
    """One difference. `place`: the way to the value, `stars[].city`; empty for the whole document. `before`, `after`: the values;
    None also where there is none."""

    kind: DifferenceKind
    place: str
    before: Value = None
    after: Value = None


@dataclass(slots=True, kw_only=True)
class ChangeGroup:
    """The documents with one kind of difference at one place. `documents`: how many; `key`: of the message of the first of them,
    whose values `before` and `after` are."""

    kind: DifferenceKind
    place: str
    documents: int = 0
    key: str
    before: Value
    after: Value


@dataclass(slots=True)
class ChangeGroups:
    """The groups of differences, by kind and place. `differ`: how many documents differ at all."""

    differ: int = 0
    _groups: dict[tuple[DifferenceKind, str], ChangeGroup] = field(default_factory=dict)

    def add(self, key: str, changes: Iterator[DocumentChange]) -> None:
        """Counts a document with its differences: once in each group, however many places of a list differ."""
        first: dict[tuple[DifferenceKind, str], DocumentChange] = {}
        for change in changes:
            first.setdefault((change.kind, change.place), change)
        self.differ += bool(first)
        for where, change in first.items():
            group = self._groups.get(where)
            if group is None:
                group = ChangeGroup(**change._asdict(), key=key)
                self._groups[where] = group
            group.documents += 1

    def found(self) -> tuple[ChangeGroup, ...]:
        """The groups, the largest first."""
        return tuple(sorted(self._groups.values(), key=lambda group: -group.documents))


def document_changes(before: Value, after: Value) -> Iterator[DocumentChange]:
    """The differences between two documents, as values of JSON; None where there is no document."""
    if before is None or after is None:
        if before is not after:
            yield DocumentChange("new document" if before is None else "document gone", "", before, after)
        return
    yield from _changes("", before, after)


def _changes(place: str, one: Value, other: Value) -> Iterator[DocumentChange]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            at = f"{place}.{name}" if place else name
            if name not in one:
                yield DocumentChange("field added", at, None, other[name])
            elif name not in other:
                yield DocumentChange("field removed", at, one[name], None)
            else:
                yield from _changes(at, one[name], other[name])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for pair in zip(one, other, strict=True):
            yield from _changes(f"{place}[]", *pair)
    elif not canonical_json.equal(one, other):
        yield DocumentChange(_kind(one, other), place, one, other)


def _kind(one: Value, other: Value) -> DifferenceKind:
    if other is None:
        return "null now"
    if one is None:
        return "null no more"
    if _type(one) != _type(other):
        return "another type"
    if isinstance(one, list) and isinstance(other, list):
        return "list longer" if len(other) > len(one) else "list shorter"
    return "another value"


def _type(value: Value) -> str:
    """The type of a value in JSON. A decimal and an int are numbers."""
    return _TYPES.get(type(value), "number")


@dataclass(slots=True, kw_only=True)
class JoinFinding:
    """The rows that a join finds. `asked`: the rows above it; `nothing`: those of them without a row; `several`: those for which
    a `one` finds more than one row, so that `order_by` or the key decides. A row counts only if its `where` is true."""

    path: str
    entity: str
    many: bool
    asked: int = 0
    nothing: int = 0
    several: int = 0


@dataclass(slots=True, kw_only=True)
class JoinCounter:
    """Counts the rows of the joins of one product."""

    product: ProductPlan
    entities: dict[str, Entity]
    findings: dict[str, JoinFinding] = field(init=False)
    _renderer: Renderer = field(init=False)

    def __post_init__(self) -> None:
        nodes = zip(self.product.paths(), self.product.nodes, strict=True)
        self.findings = {
            path: JoinFinding(path=path, entity=node.join.entity, many=node.join.many or node.join.listed)
            for path, node in nodes
        }
        self._renderer = Renderer(product=_with_all_rows(self.product.product), entities=self.entities, tally=Counter())

    def count(self, top: Match, clock: int) -> None:
        """Counts the rows below the root of one document. `clock`: of the product."""
        self._renderer.clock.now = clock
        self._count((top, None), self._renderer.level, "")

    def _count(self, scope: Scope, level: CompiledLevel, prefix: str) -> None:
        for name, joined in level.joins.items():
            found, finding = joined.rows.of(scope), self.findings[f"{prefix}{name}"]
            finding.asked += 1
            finding.nothing += not found
            finding.several += len(found) > 1 and not finding.many
            for row in found:
                self._count((row, scope), joined.level, f"{prefix}{name}.")


def _with_all_rows(product: Product) -> Product:
    """The product with joins that keep each row that counts, and that show none."""
    return replace(product, selection=WholeRow(), joins=tuple(map(_keeping, product.joins)))


def _keeping(join: Join) -> Join:
    return replace(join, many=True, limit=None, shown=False, joins=tuple(map(_keeping, join.joins)))


T = TypeVar("T")
EntityAccess = tuple[str, PlannedPath]
"""An entity, and a slot (pinned) or edges of its rows."""


@dataclass(slots=True)
class UnfilledRows:
    """The rows by the request that should find them. `entities`: slot -> the entities whose rows lack it."""

    rows: dict[Query | str, list[Key]] = field(default_factory=dict)
    entities: dict[str, set[str]] = field(default_factory=dict)

    def keys_for(self, request: Request) -> list[Key]:
        """The rows that the answer of a request may lack."""
        if not isinstance(request, Lookup):
            return []
        source = request.source
        if isinstance(source, str) or source.entity is not None:
            return self.rows.get(source, [])
        pinned = (source._replace(entity=entity) for entity in sorted(self.entities.get(source.slot, ())))
        return [key for one in pinned for key in self.rows.get(one, ())]


def filled_accesses(stored: Snapshot, live: Plan) -> frozenset[EntityAccess]:
    """The slots that serve, and the edges that live products read."""
    slots = {(one.entity, SlotPath(slot=one.slot)) for one in stored.assignments if reads(one.state)}
    sides = chain.from_iterable(node.sides() for product in live.products.values() for node in product.nodes)
    return frozenset(slots | {(entity, access) for entity, access, _ in sides if isinstance(access, EdgePath)})


def scan_unfilled(
    plan: Plan, products: Collection[ProductPlan], filled: Collection[EntityAccess], store: Store
) -> UnfilledRows:
    """The rows of the entities whose slots or edges these products need and `filled` lacks. Reads all rows of these entities."""
    found = UnfilledRows()
    wanted: dict[str, dict[SlotPath | EdgePath, JoinPlan]] = {}
    for node in chain.from_iterable(product.nodes for product in products):
        access, entity = _pinned(node.down), node.join.entity
        if not isinstance(access, KeyPath) and (entity, access) not in filled:
            wanted.setdefault(entity, {})[access] = node
            if isinstance(access, SlotPath):
                found.entities.setdefault(slot_name(access.slot), set()).add(entity)
    for entity, nodes in wanted.items():
        for key, columns in _rows(plan, entity, store):
            for access, node in nodes.items():
                for value in dict.fromkeys(node.child_keys(columns)):
                    if value is not None:
                        found.rows.setdefault(plan.source(entity, access, value), []).append(key)
    return found


def with_unfilled(step: Step[T], unfilled: UnfilledRows) -> Step[T]:
    """The step, with the rows that its answers lack."""
    try:
        asked = next(step)
        while True:
            lacking = [unfilled.keys_for(request) for request in asked]
            keys = list(dict.fromkeys(chain.from_iterable(lacking)))
            answers = yield (*asked, *keys)
            items = dict(zip(keys, answers[len(asked) :], strict=True))
            asked = step.send(tuple(_completed(a, rows, items) for a, rows in zip(answers, lacking, strict=False)))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # the result of the step


def _completed(answer: Any, rows: Collection[Key], items: Mapping[Key, Any]) -> Any:
    return apply_overlay(answer, {key: items[key] for key in rows}) if rows else answer


def _pinned(access: PlannedPath) -> PlannedPath:
    return replace(access, pinned=True) if isinstance(access, SlotPath) else access


def _rows(plan: Plan, entity: str, store: Store) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """The stored rows of an entity with their declared columns."""
    planned = plan.entities[entity]
    for partition in planned.partitions():
        for item in store.items(partition):
            columns = declared_columns(item, planned)
            if columns is not None:
                yield key_of_item(item), columns


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """A plan, and the state that it reads. `unfilled`: rows that slots and edges of the state lack for this plan."""

    plan: Plan
    runner: StepRunner
    unfilled: UnfilledRows = field(default_factory=UnfilledRows)


class MadeDocument(NamedTuple):
    """A document. `value`: None where there is none; `error`: why it cannot be published; `units`: of its reads."""

    key: str
    value: bytes | None
    error: str = ""
    units: float = 0.0


class DocumentMaker:
    """Makes the documents of a product of one side."""

    def __init__(self, side: DiffSide, product: ProductPlan, *, counts: bool) -> None:
        entities = side.plan.declared_entities
        self.side, self.product = side, product
        self._tree = merge([product])
        is_avro = product.product.format == "avro"
        self._encode = json_of_avro(product.product, entities) if is_avro else canonical_json.encode
        shape = self._tree.shape[product.product.name]
        self._renderer = Renderer(product=product.product, entities=entities, tally=Counter(), shape=shape)
        self.joins = JoinCounter(product=product, entities=entities) if counts else None

    def document(self, root: str) -> Step[MadeDocument]:
        """The document of a root."""
        plan, name, units = self.side.plan, self.product.product.name, list[float]()
        step = _metered(assemble_tree(plan, self._tree, root), units.append)
        found = yield from with_unfilled(step, self.side.unfilled)
        if found is None:
            return MadeDocument("", None, units=sum(units))
        key = message_key(self.product.product, root_message_key(plan.root_entity(self.product), found.columns))
        clock = yield from job_clock(self.product.product.clock)
        self._renderer.clock.now = clock
        try:
            document = self._renderer.document(found)
            value = None if document is GONE else self._encode(document)
        except Exception as error:  # such a document stops the product of a job, or is a dead letter there
            return MadeDocument(key, None, f"{type(error).__name__}: {error}", sum(units))
        if value is not None and self.joins is not None:
            self.joins.count(shown_rows(found, self._tree.shape[name]), clock)
        return MadeDocument(key, value, units=sum(units))


def _metered(step: Step[Any], spend: Callable[[float], object]) -> Step[Any]:
    """The step. `spend` gets the read units of each request, as `statestore.memory` counts them."""
    try:
        asked = next(step)
        while True:
            answers = yield asked
            for request, answer in zip(asked, answers, strict=True):
                spend(_units(request, answer))
            asked = step.send(answers)
    except StopIteration as end:
        return end.value


def _units(request: object, answer: Any) -> float:
    if not isinstance(request, Lookup):
        return _whole_units(0 if answer is None else item_size(answer))
    if isinstance(request.source, str):
        return 1 + sum(_whole_units(item_size(item)) for item in answer.items)
    return _whole_units(sum(map(item_size, answer.items))) / 2


def _whole_units(bytes: int) -> int:
    return max(1, ceil(bytes / READ_BYTES))


@dataclass(slots=True, kw_only=True)
class DocumentSizes:
    """The documents of one definition. `total`: their bytes together; `largest`: the bytes of the largest one, whose message has
    the key `key`."""

    documents: int = 0
    total: int = 0
    largest: int = 0
    key: str = ""

    def add(self, key: str, value: bytes) -> None:
        self.documents += 1
        self.total += len(value)
        if len(value) > self.largest:
            self.largest, self.key = len(value), key


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductDiff:
    """The documents of a product by two definitions.

    new: there is no live definition; paused: the job sends its messages once it is resumed; publishes: False where only
    an entity changes. roots: the stored root rows; compared: those of them that were compared. differ: documents that differ.
    tombstones: roots whose document an `apply` deletes in the topic; left: keys without a root row that get one more tombstone,
    because the topic is another one. read_units: of the compared documents by the new definition. joins: the findings of its
    joins.
    """

    product: str
    new: bool
    paused: bool
    publishes: bool
    roots: int
    compared: int
    differ: int
    groups: tuple[ChangeGroup, ...]
    before: DocumentSizes
    after: DocumentSizes
    tombstones: int
    left: int
    read_units: float
    joins: tuple[JoinFinding, ...]

    @property
    def share(self) -> float:
        """The part of all roots that was compared."""
        return self.compared / self.roots if self.roots else 1.0

    @property
    def messages(self) -> int:
        """The messages that an `apply` sends; of a sample, as many as its share lets one expect."""
        return round((self.after.documents + self.tombstones) / self.share) + self.left if self.publishes else 0

    def dollars(self, prices: Prices) -> Decimal:
        """The price of the publication: the reads of its documents; for each root the row and the ledger read, for each message
        the ledger written."""
        if not self.publishes:
            return Decimal(0)
        reads = Decimal(self.read_units / self.share) + 2 * self.roots
        return prices.dollars(self.messages, reads) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffReport:
    """The diffs of an apply. `notes`: on the state that they compare; `seed`: of the sample, None without one."""

    products: tuple[ProductDiff, ...]
    notes: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionDiff:
    """Compares products of two sides. `live`: by the definitions of now; `planned`: by the new ones. Both may have one runner.
    `sample`: the most roots of a product to compare, None for all; `progress`: gets a line for each product."""

    live: DiffSide
    planned: DiffSide
    random: Random
    sample: int | None = None
    progress: Callable[[str], None] = lambda _: None

    def product(self, name: str, *, publishes: bool) -> ProductDiff:
        """The diff of a product of the new definitions. `publishes`: whether an `apply` publishes it."""
        new, old = self.planned.plan.products[name], self.live.plan.products.get(name)
        if old is not None and old.retracted:
            old = None
        roots = self._roots(new)
        drawn = roots if self.sample is None or self.sample >= len(roots) else self.random.sample(roots, self.sample)
        self.progress(f"comparing {len(drawn):,} of {len(roots):,} documents of {name}")
        after = DocumentMaker(self.planned, new, counts=True)
        before = None if old is None else DocumentMaker(self.live, old, counts=False)
        groups, sizes, tombstones, units = ChangeGroups(), (DocumentSizes(), DocumentSizes()), 0, 0.0
        for chunk, ones, others in self._documents(sorted(drawn), before, after):
            for one, other in zip(ones, others, strict=True):
                groups.add(other.key or one.key, _differences(one, other))
                for size, made in zip(sizes, (one, other), strict=True):
                    if made.value is not None:
                        size.add(made.key, made.value)
            units += sum(made.units for made in others)
            without = [root for root, made in zip(chunk, others, strict=True) if made.value is None and not made.error]
            tombstones += self._tombstones(old, new, without)
        assert after.joins is not None
        return ProductDiff(
            product=name,
            new=old is None,
            paused=new.paused,
            publishes=publishes,
            roots=len(roots),
            compared=len(drawn),
            differ=groups.differ,
            groups=groups.found(),
            before=sizes[0],
            after=sizes[1],
            tombstones=tombstones,
            left=self._left(old, new, roots),
            read_units=units,
            joins=tuple(after.joins.findings.values()),
        )

    def _documents(
        self, roots: Sequence[str], before: DocumentMaker | None, after: DocumentMaker
    ) -> Iterator[tuple[list[str], list[MadeDocument], list[MadeDocument]]]:
        """Roots with their documents by both definitions, in chunks. One run of one runner asks the store for both at once."""
        rest = iter(roots)
        while chunk := list(islice(rest, CHUNK)):
            steps = [after.document(root) for root in chunk]
            if before is None:
                yield chunk, [MadeDocument("", None)] * len(chunk), self.planned.runner.run(steps)
            elif self.live.runner is self.planned.runner:
                made = self.live.runner.run([*map(before.document, chunk), *steps])
                yield chunk, made[: len(chunk)], made[len(chunk) :]
            else:
                yield chunk, self.live.runner.run(map(before.document, chunk)), self.planned.runner.run(steps)

    def _roots(self, product: ProductPlan) -> list[str]:
        """The encoded keys of the root rows, or of the groups, of both sides."""
        entity = product.product.root
        found: dict[str, None] = {}
        sides = (self.planned,) if self.live.runner is self.planned.runner else (self.live, self.planned)
        for side in (one for one in sides if entity in one.plan.entities):
            found |= dict.fromkeys(roots_in(side.runner.store, side.plan, product))
        return list(found)

    def _tombstones(self, old: ProductPlan | None, new: ProductPlan, roots: Sequence[str]) -> int:
        """How many of these roots, which have no document, get a tombstone: those whose last message is another one."""
        if old is None or not roots:
            return 0
        keys = [group_key(old.ledger, root) for root in roots]
        items = self.live.runner.store.get(keys)
        entries = (read_entry(items.get(key), old.number) for key in keys)
        return sum(not entry.shows(NO_DOCUMENT, new.version, new.product.topic) for entry in entries)

    def _left(self, old: ProductPlan | None, new: ProductPlan, roots: Iterable[str]) -> int:
        """How many keys of the ledger without a root row get a tombstone in another topic."""
        if old is None or old.product.topic == new.product.topic:
            return 0
        known, entries = {*roots}, self.live.runner.store.items(group_partition(old.ledger))
        return sum(item["SK"] not in known and read_entry(item, old.number).mark is not None for item in entries)


def _differences(one: MadeDocument, other: MadeDocument) -> Iterator[DocumentChange]:
    before, after = (None if made.value is None else canonical_json.loads(made.value) for made in (one, other))
    if other.error:
        yield DocumentChange("cannot be published", "", before, other.error)
    else:
        yield from document_changes(before, after)
