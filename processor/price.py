"""What each kind of event costs: its requests, request units and dollars, by trying it on the compiled plan.

Each event is a micro-batch of its own in a world where every join finds one row, and every row counts, on a store that meters;
what comes later, when its change is settled, is counted apart. So the counts are those of the steps themselves. Rows are
small: a real one of more than 1 KB (written) or 4 KB (read) costs more, and so does each further document that a change touches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from processor.events import OTHER, WORLD, Event, Row, World, passing
from processor.lockstep import Lockstep
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.debezium import row_value
from processor.model.ledger import Mark
from processor.model.plan import EntityPlan, Plan
from processor.settings import Settings
from processor.steps.publish import doubt
from processor.trial import MemoryOutbox, Trial
from statestore import keys
from statestore.metered import MeteredStore

REQUESTS = ("UpdateItem", "BatchGetItem", "Query", "DeleteItem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one kind of event: its requests in its batch and later, by DynamoDB's names; documents published; units in all."""

    entity: str
    event: str
    documents: int
    requests: dict[str, int]
    later: dict[str, int]
    write_units: int
    read_units: Decimal


def costs(plan: Plan, settings: Settings) -> tuple[Cost, ...]:
    """The cost of each kind of event of each entity that some product reads."""
    world = World(plan)
    lenient = passing(plan)
    return tuple(_cost(lenient, settings, world, event) for event in world.events())


def _cost(plan: Plan, settings: Settings, world: World, event: Event) -> Cost:
    trial = Trial(plan=plan, settings=settings)
    store = MeteredStore(settings.slots, clock=lambda: trial.now)
    trial.store = store
    trial.batch(_records(plan, world))
    trial.finish()
    if event.decides:
        _doubt(plan, world, store)
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


def _doubt(plan: Plan, world: World, store: MeteredStore) -> None:
    """Lets every document count as another one than was published: here every row counts, whatever it holds."""
    roots = [
        (name, keys.spell([world.row(root.name, number)[c] for c in root.entity.key]) or "")
        for name, product in plan.products.items()
        for root in (plan.entities[product.product.root],)
        for number in (OTHER, WORLD)
    ]
    mark = Mark(run=1, round=0, slot=0, attempt=0)
    Lockstep(store=store, outbox=MemoryOutbox()).run([doubt(name, root, root, mark) for name, root in roots])


def _records(plan: Plan, world: World) -> Iterator[Record]:
    for entity in plan.entities.values():
        for number in (OTHER, WORLD):
            row = world.row(entity.name, number)
            yield _record(entity, row, row, 0 if number == OTHER else 1)


def _record(entity: EntityPlan, key: Row, row: Row | None, offset: int) -> Record:
    """A record of the row with this key; `row` None deletes."""
    return Record(
        topic=entity.entity.topic,
        partition=0,
        offset=offset,
        key=canonical_json.encode({column: key[column] for column in entity.entity.key}),
        value=None if row is None else canonical_json.encode(row_value(row, entity.entity)),
    )
