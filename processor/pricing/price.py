"""Prices each kind of event: its requests and request units, by trying it on the compiled plan.

The trial runs each event as a micro-batch of its own, on a store that meters, in a world where every join finds one row and every
row counts. The counts are thus those of the steps themselves; requests that settle the change later are counted apart. The rows
are small: a row of more than 1 KB (written) or 4 KB (read) costs more, and so does each further document that a change touches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from processor.plan.plan import EntityPlan, Plan
from processor.pricing.event_kinds import OTHER, WORLD, Event, RowValues, World, without_filters
from processor.progress.ledger import Mark
from processor.records import canonical_json
from processor.records.debezium import row_value
from processor.records.record import Record
from processor.rounds.clock import VirtualClock
from processor.rounds.step_runner import StepRunner
from processor.settings import Settings
from processor.steps.publish import invalidate
from processor.trial.trial import Trial
from statestore import keys
from statestore.metered import MeteredStore

REQUESTS = ("UpdateItem", "BatchGetItem", "Query", "DeleteItem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one kind of event. `documents`: published; `requests`: of its batch, by DynamoDB's names; `later`: of settling;
    `write_units`, `read_units`: of both."""

    entity: str
    event: str
    documents: int
    requests: dict[str, int]
    later: dict[str, int]
    write_units: int
    read_units: Decimal


def price_events(plan: Plan, settings: Settings) -> tuple[Cost, ...]:
    """The cost of each kind of event of each entity that some product reads."""
    world = World(plan)
    lenient = without_filters(plan)
    return tuple(_cost(lenient, settings, world, event) for event in world.events())


def _cost(plan: Plan, settings: Settings, world: World, event: Event) -> Cost:
    clock = VirtualClock()
    store = MeteredStore(settings.slots, clock=clock.now)
    trial = Trial(plan=plan, settings=settings, clock=clock, other_store=store)
    trial.driver.open_changes.sample = 0  # a price must not depend on the keys that the sample chooses
    trial.batch(_records(plan, world))
    trial.finish()
    if event.decides:
        _forget_published(plan, world, store)
    before, written, read = trial.tally.copy(), store.written, store.read
    entity = plan.entities[event.entity]
    key = world.row(event.entity, WORLD) if event.row is None else event.row
    batch = trial.batch([_record(entity, key, event.row, 1 if event.replay else 3)])
    trial.finish()
    return Cost(
        entity=event.entity,
        event=event.name,
        documents=batch["published"],
        requests={name: batch[f"request {name}"] for name in REQUESTS},
        later={n: (trial.tally - before)[f"request {n}"] - batch[f"request {n}"] for n in REQUESTS},
        write_units=store.written - written,
        read_units=store.read - read,
    )


def _forget_published(plan: Plan, world: World, store: MeteredStore) -> None:
    """Makes the ledger forget every document. A filter would change the document, but this plan has no filters."""
    roots = [
        (name, keys.encode([world.row(root.name, number)[c] for c in root.entity.key]) or "")
        for name, product in plan.products.items()
        for root in (plan.entities[product.product.root],)
        for number in (OTHER, WORLD)
    ]
    mark = Mark(run=1, round=0, lane=0, attempt=0)
    StepRunner(store=store).run([invalidate(name, root, root, mark) for name, root in roots])


def _records(plan: Plan, world: World) -> Iterator[Record]:
    for entity in plan.entities.values():
        for number in (OTHER, WORLD):
            row = world.row(entity.name, number)
            yield _record(entity, row, row, 0 if number == OTHER else 1)


def _record(entity: EntityPlan, key: RowValues, row: RowValues | None, offset: int) -> Record:
    """A change record of the row with this key; `row` None: the row is deleted."""
    return Record(
        topic=entity.entity.topic,
        partition=0,
        offset=offset,
        key=canonical_json.encode({column: key[column] for column in entity.entity.key}),
        value=None if row is None else canonical_json.encode(row_value(row, entity.entity)),
    )
