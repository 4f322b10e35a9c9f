"""Prices each kind of event: its requests and request units, by trying it on the compiled plan; and the price of holding.

The trial runs on a store that meters, in a world where every join finds one row and every row counts. The counts are thus those
of the steps themselves; requests that settle the change later are counted apart. Each kind of event has two prices:

    alone       The event is a micro-batch of its own.
    in a batch  The event is one of `BATCH` events of its kind, each of another root. Each further event adds the same units. So
                the trial runs batches of one and of two events, and counts the second event for each further event. Left out:
                the item of open changes grows with the batch, and each further KB costs a unit at its write and at its
                deletion. That is at most 0.05 units an event of the example: a test compares real batches of 1,000.

The rows are small: a row of more than 1 KB (written) or 4 KB (read) costs more, and so does each further document that a change
touches.

The price of holding is the write units of the items in which a product with a gate keeps its roots that wait. The items are those
of one batch, written and deleted, with the note of their release where the product has `every`. Each event is on another root,
whose key has 16 characters, and in a transaction of its own. Left out: changes of one root that wait together make one document,
so `every` and `quiet` save the writes and reads of the others; a fan-out writes an item for each of its pages.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from typing import NamedTuple

from processor.counts import REQUEST, Count
from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.plan.product_plan import ProductPlan
from processor.engine.protocol.held_portion import Held, SeenPlace, SeenRecords, make_portions
from processor.engine.protocol.ledger import Mark
from processor.engine.protocol.publish import invalidate
from processor.engine.protocol.ranges import ranges_of
from processor.engine.protocol.release_notes import ReleaseNotes
from processor.engine.protocol.seen_transactions import tables_of, topics_of
from processor.engine.rounds.clock import VirtualClock
from processor.engine.rounds.row_reads import RowReads
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import MemoryOutbox, Trial
from processor.engine.rounds.update_counts import UpdateCounts
from processor.environment.settings.settings import Settings
from processor.language.product.product import OPEN
from processor.tools.inspect.event_kinds import OTHER, WORLD, Event, RowValues, World, without_filters
from processor.values import canonical_json
from processor.values.change_formats import row_value
from processor.values.record import Record
from statestore import keys
from statestore.memory import MeteredStore
from statestore.store import Delete, Store

REQUESTS = ("UpdateItem", "BatchGetItem", "Query", "DeleteItem")
BATCH = 1_000
"""Events of the batch whose price `plan` shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one kind of event. `documents`: published; `requests`: of its batch, by DynamoDB's names; `later`: of settling,
    and of the release of what waited;
    `write_units`, `read_units`: of both. All these are of the event alone; `batch_write_units`, `batch_read_units`: its share in
    a batch of `BATCH` events."""

    entity: str
    event: str
    documents: int
    requests: dict[str, int]
    later: dict[str, int]
    write_units: int
    read_units: Decimal
    batch_write_units: Decimal
    batch_read_units: Decimal


class BatchCost(NamedTuple):
    """The cost of a whole batch, with the fields of `Cost`."""

    documents: int
    requests: dict[str, int]
    later: dict[str, int]
    write_units: int
    read_units: Decimal


def price_events(plan: Plan, settings: Settings) -> tuple[Cost, ...]:
    """The cost of each kind of event of each entity that some product reads."""
    one, two = EventTrials(plan, settings, 1), EventTrials(plan, settings, 2)
    return tuple(
        _cost(alone[0], one.run(alone), two.run(pair)) for alone, pair in zip(one.kinds(), two.kinds(), strict=True)
    )


def _cost(event: Event, one: BatchCost, two: BatchCost) -> Cost:
    return Cost(
        entity=event.entity,
        event=event.name,
        **one._asdict(),
        batch_write_units=_share(one.write_units, two.write_units),
        batch_read_units=_share(one.read_units, two.read_units),
    )


def _share(one: int | Decimal, two: int | Decimal) -> Decimal:
    """The units of an event in a batch of `BATCH`, by those of batches of one and of two events."""
    return Decimal(one + (BATCH - 1) * (two - one)) / BATCH


class EventTrials:
    """Tries batches of `size` events of one kind. Each batch runs on a copy of one settled state, in which every event has a pair
    of worlds of its own."""

    def __init__(self, plan: Plan, settings: Settings, size: int) -> None:
        self._plan = without_filters(plan)
        self._worlds = [World(plan, pair) for pair in range(size)]
        self._store = MeteredStore()
        self._settled = _without_sample(Trial(plan=self._plan, settings=settings, other_store=self._store))
        self._settled.batch(self._records())
        self._settled.finish()

    def kinds(self) -> Iterator[tuple[Event, ...]]:
        """Every kind of event: the same event in each pair of worlds."""
        return zip(*(world.events() for world in self._worlds), strict=True)

    def run(self, events: Sequence[Event]) -> BatchCost:
        """The cost of a batch of one kind of event."""
        store = self._store.copy()
        trial = self._continued(store)
        if events[0].decides:
            _forget_published(self._plan, self._worlds, store)
        if events[0].unread:  # the price of an entity that has many of them
            trial.driver.rounds.row_reads = RowReads(counts={events[0].entity: UpdateCounts(BATCH, BATCH)})
        written, read = store.written, store.read_units
        batch = trial.batch(self._changes(events))
        trial.finish()
        return BatchCost(
            documents=trial.tally[Count.PUBLISHED],  # also those that waited at a gate
            requests={name: batch[f"{REQUEST}{name}"] for name in REQUESTS},
            later={name: trial.tally[f"{REQUEST}{name}"] - batch[f"{REQUEST}{name}"] for name in REQUESTS},
            write_units=store.written - written,
            read_units=store.read_units - read,
        )

    def _continued(self, store: MeteredStore) -> Trial:
        """A trial that continues the settled one over a copy of its store."""
        settled = self._settled
        clock = VirtualClock(settled.clock.seconds)
        trial = replace(settled, other_store=store, clock=clock, published=MemoryOutbox())
        trial.driver.rounds.run, trial.driver.rounds.number = settled.driver.rounds.run, settled.driver.rounds.number
        return _without_sample(trial)

    def _records(self) -> Iterator[Record]:
        """The rows of all worlds."""
        for entity in self._plan.entities.values():
            for pair, world in enumerate(self._worlds):
                for place, number in enumerate((OTHER, WORLD)):
                    row = world.row(entity.name, number)
                    yield _record(entity, row, row, 2 * pair + place)

    def _changes(self, events: Sequence[Event]) -> Iterator[Record]:
        """The records of events, in the order of the worlds. A replay has the offset of its row."""
        for pair, (world, event) in enumerate(zip(self._worlds, events, strict=True)):
            key = world.row(event.entity, WORLD) if event.row is None else event.row
            offset = 2 * pair + 1 if event.replay else 2 * len(events) + pair
            yield _record(self._plan.entities[event.entity], key, event.row, offset)


def _without_sample(trial: Trial) -> Trial:
    """The trial, settling no change in full: a price must not depend on the keys that the sample chooses."""
    trial.driver.progress.open_changes.samples = False
    return trial


def _forget_published(plan: Plan, worlds: Iterable[World], store: Store) -> None:
    """Makes the ledger forget every document. A filter would change the document, but this plan has no filters."""
    roots = [
        (name, keys.encode([world.row(root.name, number)[c] for c in root.entity.key]) or "")
        for name, product in plan.products.items()
        for root in (plan.entities[product.product.root],)
        for world in worlds
        for number in (OTHER, WORLD)
    ]
    mark = Mark(run=1, round=0, lane=0, attempt=0)
    StepRunner(store=store).run([invalidate(plan.products[name].ledger, root, root, mark) for name, root in roots])


def _record(entity: EntityPlan, key: RowValues, row: RowValues | None, offset: int) -> Record:
    """A change record of the row with this key; `row` None: the row is deleted."""
    return Record(
        topic=entity.entity.topic,
        partition=0,
        offset=offset,
        key=canonical_json.encode({column: key[column] for column in entity.entity.key}),
        value=None if row is None else canonical_json.encode(row_value(row, entity.entity)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePrice:
    """The write units of holding. `alone`: of an event that is alone in its batch; `in_batch`: of one of `BATCH` events."""

    product: str
    alone: float
    in_batch: float


def price_gates(plan: Plan) -> Iterator[GatePrice]:
    """The price of holding of each product with a gate."""
    for name, planned in plan.products.items():
        if planned.gate != OPEN:
            yield GatePrice(product=name, alone=_units(planned, plan, 1), in_batch=_units(planned, plan, BATCH))


def _units(planned: ProductPlan, plan: Plan, events: int) -> float:
    """The write units of an event in a batch of so many."""
    name = planned.product.name
    roots = [(name, sha256(b"%d" % n).hexdigest()[:16]) for n in range(events)]
    seen = {
        (topic, f"{10**6 + n}"): SeenRecords(n, n, {(table, 0): SeenPlace(n, n, ranges_of([1]))})
        for topic in sorted(topics_of(planned, plan))[:1]
        for table in sorted(tables_of(plan)[topic])[:1]
        for n in range(events)
    }
    held = Held(roots={root: float(n) for n, root in enumerate(roots)}, seen=seen)
    writes = [portion.write() for portion in make_portions(held, 1, 1, 0.0)]
    if planned.gate.every:
        writes.append(ReleaseNotes(run=1).begin(roots, 1, 0.0, 0.0))
    store = MeteredStore()
    for write in writes:
        store.write(write)
        store.delete(Delete(key=write.key))
    return round(store.written / events, 4)
