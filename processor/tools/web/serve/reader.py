"""Looks documents and rows up in the table, by the definitions of the registry.

Promises: a look-up works by a version of the registry that is at most a second old (`views.py`), and has a store for
itself. It reads the table and the registry, and nothing of a job. Open changes are laid over index answers. No look-up reads more
rows than its limit, and none writes.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import ceil
from queue import SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, cast

from processor.engine.plan.plan import EntityPlan, Plan, ProductPlan
from processor.engine.protocol.gates import Wait
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
from processor.engine.protocol.segments import OpenChange, SegmentGroup
from processor.engine.rounds.publish_stage import encoded_document
from processor.engine.rounds.step_runner import StepRunner
from processor.language.product.document import read_root_key
from processor.language.product.document_type import document_schema
from processor.tools.inspect.explain import explain
from processor.tools.inspect.lineage import lineage
from processor.tools.inspect.rows import (
    FormerTopics,
    absence_text,
    document_keys,
    former_topics,
    origin_at,
    page_of,
    row_object,
)
from processor.tools.web.problem import LookUpProblem
from processor.tools.web.serve.views import GateView, OpenView, PlanView, state_age
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.message import MAX_MESSAGE_BYTES
from registry.model import EpochBoundary
from statestore import keys
from statestore.items import slot_name
from statestore.keys import Key
from statestore.store import Item, Page, Read, Store


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
    """A document as the state has it now."""

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
    """Of the state at most, in seconds (`views.state_age`); None where no job says it."""
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
    _gates: GateView = field(default_factory=GateView)

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
        """The root entity of a product. Raises LookUpProblem for another name."""
        plan = self.plan()
        return plan.entities[_product(plan, product).product.root].entity

    def document(self, product: str, key: str) -> FoundDocument:
        """The document of a root. Raises LookUpProblem where there is none."""
        looked, plan, jobs = self.view.now()
        chosen = _product(plan, product)
        root = _encoded(plan.entities[chosen.product.root], key)
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
            digest = hash_of(body.value)
            shown = digest != NO_DOCUMENT and before.shows(digest, chosen.version, chosen.product.topic)
            published = shown and _acknowledged(store, before.mark)
            wait = None if published else self._gates.wait(plan, store, (product, root))
        return FoundDocument(body.value, digest, before.seq, published, wait, age, body.key)

    def row(self, entity: str, key: str) -> dict[str, Any]:
        """A stored row, as `statestore row --json` shows it. Raises LookUpProblem where the table has none."""
        plan = self.plan()
        chosen = _entity(plan, entity)
        return self._row(plan, chosen, _encoded(chosen, key))

    def row_at(self, entity: str, sk: str) -> dict[str, Any]:
        """The same by the row's encoded key, as a lineage has it."""
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

    def access_paths(self, product: str) -> dict[str, Any]:
        """The access paths of a product."""
        plan = self.plan()
        return asdict(explain(plan, _product(plan, product)))

    def lineage(self, product: str, key: str) -> dict[str, Any]:
        """Why a document is as it is."""
        plan = self.plan()
        chosen = _product(plan, product)
        root = _encoded(plan.entities[chosen.product.root], key)
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
        raise LookUpProblem(404, f"there is no product `{name}`; there are {', '.join(sorted(plan.products))}")
    return plan.products[name]


def _entity(plan: Plan, name: str) -> EntityPlan:
    if name not in plan.entities:
        raise LookUpProblem(404, f"there is no entity `{name}`; there are {', '.join(sorted(plan.entities))}")
    return plan.entities[name]


def _encoded(entity: EntityPlan, text: str) -> str:
    try:
        return keys.encode(read_root_key(entity.entity, text)) or ""
    except ValueError as error:
        raise LookUpProblem(400, str(error)) from None


def _product_object(plan: Plan, one: ProductPlan) -> dict[str, Any]:
    return {
        "product": one.product.name,
        "version": one.version,
        "topic": one.product.topic,
        "format": one.product.format,
        "root": one.product.root,
        "key": list(plan.entities[one.product.root].entity.key),
        "paused": one.paused,
    }


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
