"""Looks documents and rows up in the table, by the definitions of the registry.

Promises: a look-up works by a version of the registry that is at most LOOK_SECONDS old, and has a store for itself. It reads the
table and the registry, and nothing of a job. Open changes are laid over index answers. No look-up reads more rows than its limit,
and none writes.

Of open changes a look reads only the segments of the last round that it knows, and of later rounds. Once in WHOLE_SECONDS a look
reads all segments. Then those go that the job has closed, and those come that a task of an earlier round wrote late. A closed
change in the view changes no answer.

Does not: read the rows of open changes, as a start of a job does. A row whose newest change has no durable segment yet is as the
index shows it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import ceil
from queue import SimpleQueue
from time import monotonic, time
from typing import Any, Final, NamedTuple, cast

from processor.engine.plan.plan import EntityPlan, Plan, ProductPlan
from processor.engine.plan.planning import plan_of
from processor.engine.protocol.gates import Wait, stored_roots, wait_of
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.ledger import (
    NO_DOCUMENT,
    Mark,
    group_key,
    group_partition,
    hash_of,
    read_entry,
    read_run,
    run_key,
)
from processor.engine.protocol.segments import PARTITIONS, OpenChange, Segment, SegmentGroup, make_segment, read_changes
from processor.engine.rounds.decoding import settled_forms
from processor.engine.rounds.publish_stage import encoded_document
from processor.engine.rounds.step_runner import StepRunner
from processor.language.definitions.describe import describe_key
from processor.language.product.document import read_root_key
from processor.language.product.document_type import document_schema
from processor.tools.inspect.explain import explain, lineage
from processor.tools.inspect.rows import (
    FormerTopics,
    absence_text,
    document_keys,
    former_topics,
    origin_at,
    page_of,
    row_object,
)
from processor.tools.web.answers import Cached, LookUpProblem, no_such
from processor.values import canonical_json
from processor.values.decimal_forms import Forms
from processor.values.entity import Entity
from processor.values.record import MAX_MESSAGE_BYTES
from registry.model import EpochBoundary, JobStatus, Snapshot
from statestore import keys
from statestore.items import slot_name
from statestore.keys import Key
from statestore.store import Item, Page, Read, Store
from statestore.table import TableUsage

LOOK_SECONDS: Final = 1.0
WHOLE_SECONDS: Final = 20.0
MOST_CHANGES: Final = 1_000_000
"""Open changes that a process holds: 100 MB."""
PAGE: Final = 100
ROUND_LENGTH: Final = len("0000000000.0000000000")
"""The begin of a segment's name: run and round, which rise."""


class SeenRegistry(NamedTuple):
    """The plan, and the jobs with their reports, as they were at `at` (`time.monotonic()`)."""

    at: float
    plan: Plan
    jobs: tuple[JobStatus, ...]


def no_jobs() -> tuple[JobStatus, ...]:
    """The jobs of a registry without jobs."""
    return ()


@dataclass(slots=True, kw_only=True)
class PlanView:
    """The definitions and the job's reports. `snapshot`, `jobs`: ask the registry."""

    snapshot: Callable[[], Snapshot]
    jobs: Callable[[], tuple[JobStatus, ...]] = no_jobs
    plan_of: Callable[[Snapshot], Plan] = plan_of
    _seen: Cached[SeenRegistry] = field(default_factory=Cached)
    _plan: Plan | None = None
    """Of the last version: a look makes a plan only of a new one."""

    def now(self) -> SeenRegistry:
        """What the registry has. Raises RegistryError."""
        return self._seen.get(LOOK_SECONDS, self._look)

    def _look(self) -> SeenRegistry:
        at, snapshot, plan = monotonic(), self.snapshot(), self._plan
        if plan is None or plan.version != snapshot.version:
            self._plan = plan = self.plan_of(snapshot)
        return SeenRegistry(at, plan, self.jobs())


class OpenView:
    """The open changes: their segments by name, and the groups that index them."""

    def __init__(self) -> None:
        self._seen = Cached[tuple[SegmentGroup, ...]]()
        self._known: dict[str, int] = {}
        self._groups: list[SegmentGroup] = []
        self._read_whole = float("-inf")

    def overlays(self, store: Store) -> tuple[SegmentGroup, ...]:
        """The overlays of now. Raises LookUpProblem where more changes are open than a process holds."""
        return self._seen.get(LOOK_SECONDS, lambda: self._look(store))

    def _look(self, store: Store) -> tuple[SegmentGroup, ...]:
        now = monotonic()
        if now - self._read_whole >= WHOLE_SECONDS:
            self._known, self._groups = {}, []
            self._take(store, "")
            self._read_whole = now
        else:
            self._take(store, max(self._known, default="")[:ROUND_LENGTH])
        return tuple(self._groups)

    def _take(self, store: Store, since: str) -> None:
        """Takes the segments whose names are not below `since`."""
        items = (item for item in _items(store, since) if item["SK"] not in self._known)
        found = tuple(_segments(items))
        if found:
            self._groups.append(SegmentGroup(found))
            self._known |= {one.name: one.size for one in found}
        if (count := sum(self._known.values())) > MOST_CHANGES:
            raise LookUpProblem(
                503, f"{count:,} changes are open, more than {MOST_CHANGES:,}: wait until the job settles"
            )


def _items(store: Store, since: str) -> Iterable[Item]:
    waiting = [Read(pk, Key(pk, since) if since else None, PAGE) for pk in PARTITIONS]
    while waiting:
        pages = store.read(waiting)
        yield from (item for page in pages for item in page.items)
        rest = zip(waiting, pages, strict=True)
        waiting = [read._replace(after=page.after) for read, page in rest if page.after is not None]


def _segments(items: Iterable[Item]) -> Iterable[Segment]:
    return (make_segment(item["SK"], changes) for item in items if (changes := read_changes(item)))


def state_age(jobs: Iterable[JobStatus], topics: Collection[str]) -> float | None:
    """How old the state is at most, in seconds, for the rows of these topics. None where no job has reported how far it is in
    each of them. The table keeps no time of a row or of a message. A job reports what it has not read of its topics, and since
    when that waits. So a reader knows: the table has each change that Kafka had before this age."""
    reports = [(one.report_age, one.report) for one in jobs if one.report is not None and one.report_age is not None]
    if not reports:
        return None
    report_age, report = min(reports, key=lambda one: one[0])
    waits = [report["topics"].get(topic, {}).get("seconds") for topic in topics]
    if None in waits or "looked" not in report:
        return None
    return float(max(0.0, report_age) + (report["at"] - report["looked"]) + max(waits, default=0.0))


class StorePool:
    """Lends stores. The look-up beyond the last one waits until another look-up ends."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self._free: SimpleQueue[Store] = SimpleQueue()
        for store in stores:
            self._free.put(store)

    @contextmanager
    def borrow(self) -> Iterator[Store]:
        """A store for this block alone."""
        store = self._free.get()
        try:
            yield store
        finally:
            self._free.put(store)


class BoundedReads:
    """A store as the step runner uses it. Raises LookUpProblem beyond `most` items, before the store reads the rest."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most, self._left = store, most, most

    def read(self, reads: Sequence[Read]) -> list[Page]:
        """The pages of these reads, which go to the store together. Each stops at the limit."""
        found = [Page([], read.after) for read in reads]
        waiting = list(range(len(reads)))
        while waiting:
            limit = self._left + 1
            asked = [reads[n]._replace(after=found[n].after, limit=reads[n].limit or limit) for n in waiting]
            for n, page in zip(waiting, self._store.read(asked), strict=True):
                self._take(len(page.items))
                found[n] = Page(found[n].items + page.items, page.after)
            waiting = [n for n in waiting if found[n].after is not None and reads[n].limit is None]
        return found

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """The items with these keys."""
        self._take(len(keys))
        return self._store.get(keys)

    def write_all(self, requests: Sequence[Any]) -> list[Any]:
        """Writes nothing. Raises TypeError for a write."""
        if requests:
            raise TypeError("a look-up never writes")
        return []

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise LookUpProblem(
                413, f"the answer needs more than {self._most:,} rows: read the product's topic, or raise --most-rows"
            )


class FoundDocument(NamedTuple):
    """A document by the present state."""

    value: bytes
    """The document as JSON."""
    digest: str
    """Its hash, as the ledger counts it."""
    sequence: int
    """Of the last message that the ledger knows for this root, 0 for none."""
    published: bool
    """Whether that message shows this document."""
    wait: Wait | None
    """Why the root waits at the gate of the product; None where it does not."""
    age: int | None
    """Of the state at most, in seconds (`state_age`); None where no job says it."""
    key: str | bytes = ""
    """Of its messages."""

    @property
    def waits(self) -> bool:
        """Whether the root waits at the gate of the product."""
        return self.wait is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReader:
    """Answers look-ups."""

    stores: StorePool
    view: PlanView
    boundaries: Callable[[Iterable[str]], tuple[EpochBoundary, ...]]
    """Of the registry, for these entities."""
    most_rows: int = 10_000
    """Rows that a look-up may read."""
    most_rows_of: Mapping[str, int] = field(default_factory=dict)
    """The same of a look-up of this product."""
    most_bytes: int = MAX_MESSAGE_BYTES
    """Of a document."""
    _open: OpenView = field(default_factory=OpenView)
    _held: Cached[HeldRoots] = field(default_factory=Cached)
    """The roots that wait at gates: the backlog partition, whole, without the ends of transactions, which no table has."""

    def products(self) -> list[dict[str, Any]]:
        """The products, by name."""
        plan = self.plan()
        return [_product_object(plan, one) for _, one in sorted(plan.products.items())]

    def schema(self, product: str) -> dict[str, Any]:
        """The JSON Schema of the documents of a product."""
        plan = self.plan()
        return document_schema(_product(plan, product).product, plan.declared_entities)

    def plan(self) -> Plan:
        """The plan of the registry as it is now."""
        return self.view.now().plan

    def entity(self, name: str) -> Entity:
        """An entity. Raises LookUpProblem for another name."""
        return _entity(self.plan(), name).entity

    def root(self, product: str) -> Entity:
        """The entity of a product's roots. Raises LookUpProblem for another name."""
        plan = self.plan()
        return plan.root_entity(_product(plan, product))

    def document(self, product: str, key: str) -> FoundDocument:
        """The document of a root. Raises LookUpProblem where there is none."""
        looked, plan, jobs = self.view.now()
        chosen = _product(plan, product)
        root = _encoded(plan.root_entity(chosen), key)
        seconds = state_age(jobs, {plan.entities[name].entity.topic for name in _entities(chosen)})
        age = None if seconds is None else ceil(seconds + monotonic() - looked)
        at = group_key(chosen.ledger, root)
        with self.stores.borrow() as store:
            before = read_entry(store.get([at]).get(at), chosen.number)
            (body,) = self._runner(store, product).run([encoded_document(plan, chosen, root, Counter())])
            if body.value is None:
                raise LookUpProblem(404, f"{product} has no document for {key}", sequence=before.seq)
            if len(body.value) > self.most_bytes:
                raise LookUpProblem(
                    413, f"the document has {len(body.value):,} bytes, and the limit is {self.most_bytes:,}"
                )
            digest = hash_of(body.value, body.headers)
            shown = digest != NO_DOCUMENT and before.shows(digest, chosen.version, chosen.product.topic)
            published = shown and _acknowledged(store, before.mark)
            wait = None
            if not published:
                held = self._held.get(LOOK_SECONDS, lambda: stored_roots(plan, store, time()))
                wait = wait_of(held, (product, root))
        return FoundDocument(body.value, digest, before.seq, published, wait, age, body.key)

    def row(self, entity: str, key: str) -> dict[str, Any]:
        """A stored row, as `statestore row --json` shows it. Raises LookUpProblem where the table has none."""
        plan = self.plan()
        chosen = _entity(plan, entity)
        return self._row(plan, chosen, _encoded(chosen.entity, key))

    def row_at(self, entity: str, sk: str) -> dict[str, Any]:
        """The same by the row's encoded key, as a lineage shows it."""
        plan = self.plan()
        return self._row(plan, _entity(plan, entity), sk)

    def open_changes(self, entity: str, sk: str) -> list[dict[str, Any]]:
        """The open changes of a row, by its encoded key: those that the job has not settled, or settled some seconds ago."""
        plan = self.plan()
        chosen, topics = _entity(plan, entity), former_topics(self.boundaries(plan.entities))
        with self.stores.borrow() as store:
            found = open_changes_of(chosen.key(sk), self._open.overlays(store))
        return [open_change_object(one, chosen, topics) for one in found]

    def keys(self, product: str, after: str, most: int) -> list[str]:
        """The keys of some documents: those that follow the text `after` in the ledger. Reads at most `most` items of it."""
        chosen = _product(self.plan(), product)
        begin = group_key(chosen.ledger, after) if after else None
        with self.stores.borrow() as store:
            page = page_of(store, [group_partition(chosen.ledger)], begin, most)
        return list(document_keys(page.items, chosen.number))

    def items(self, keys: Collection[Key]) -> list[Item]:
        """The items with these keys, as far as the table has them."""
        with self.stores.borrow() as store:
            return list(store.get(keys).values())

    def usage(self) -> TableUsage | None:
        """What the server counts of the table; None where AWS bills requests in place of a server."""
        with self.stores.borrow() as store:
            usage: Callable[[], TableUsage | None] | None = getattr(store, "usage", None)
            return usage() if usage is not None else None

    def forms(self) -> Forms:
        """The forms of decimals that the job has settled, by entity."""
        with self.stores.borrow() as store:
            return settled_forms(store)

    def access_paths(self, product: str) -> dict[str, Any]:
        """The access paths of a product."""
        plan = self.plan()
        return asdict(explain(plan, _product(plan, product)))

    def lineage(self, product: str, key: str) -> dict[str, Any]:
        """Why a document is as it is."""
        plan = self.plan()
        chosen = _product(plan, product)
        root = _encoded(plan.root_entity(chosen), key)
        topics = former_topics(self.boundaries(plan.entities))
        with self.stores.borrow() as store:
            (found,) = self._runner(store, product).run([lineage(plan, chosen, root, topics)])
        return asdict(found)

    def _row(self, plan: Plan, entity: EntityPlan, sk: str) -> dict[str, Any]:
        at = entity.key(sk)
        with self.stores.borrow() as store:
            item = store.get([at]).get(at)
        if item is None:
            raise LookUpProblem(404, absence_text(entity, sk))
        return row_object(item, entity, former_topics(self.boundaries(plan.entities)))

    def _runner(self, store: Store, product: str) -> StepRunner:
        bounded = cast(Store, BoundedReads(store, self.most_rows_of.get(product, self.most_rows)))
        return StepRunner(store=bounded, overlays=self._open.overlays(store))


def _acknowledged(store: Store, mark: Mark | None) -> bool:
    if mark is None:
        return True
    at = run_key(mark.run)
    return read_run(mark.run, store.get([at]).get(at)).acknowledges(mark)


def _entities(chosen: ProductPlan) -> set[str]:
    return {chosen.product.root, *(join.entity for _, join in chosen.product.walk())}


def document_object(found: FoundDocument) -> dict[str, Any]:
    """A found document as JSON values, for an assistant."""
    return {
        "document": canonical_json.loads(found.value),
        "sequence": found.sequence,
        "published": found.published,
        "waits": found.waits,
        "age": found.age,
    }


def _product(plan: Plan, name: str) -> ProductPlan:
    if name not in plan.products:
        raise no_such("product", name, plan.products)
    return plan.products[name]


def _entity(plan: Plan, name: str) -> EntityPlan:
    if name not in plan.entities:
        raise no_such("entity", name, plan.entities)
    return plan.entities[name]


def _encoded(entity: Entity, text: str) -> str:
    try:
        return keys.encode(read_root_key(entity, text)) or ""
    except ValueError as error:
        raise LookUpProblem(400, str(error)) from None


def _product_object(plan: Plan, one: ProductPlan) -> dict[str, Any]:
    return {
        "product": one.product.name,
        "version": one.version,
        "topic": one.product.topic,
        "format": one.product.format,
        "root": one.product.roots,
        "key": list(plan.root_entity(one).key),
        "paused": one.paused,
    } | ({"message_key": describe_key(one.product)} if one.product.key else {})


def open_changes_of(row: Key, groups: Sequence[SegmentGroup]) -> list[OpenChange]:
    """The open changes of the row with this key, the newest first."""
    found = {one for group in groups for one in group.changes(row) if one.key == row}
    return sorted(found, key=lambda one: one.version, reverse=True)


def open_change_object(change: OpenChange, entity: EntityPlan, topics: FormerTopics) -> dict[str, Any]:
    """An open change as JSON values, with the record that made it."""
    return {
        "origin": asdict(origin_at(change.version, entity, topics)),
        "slots": {slot_name(slot): key for slot, key in change.slots},
        "former": sorted((slot_name(slot), key) for slot, key in change.former if isinstance(slot, int)),
    }
