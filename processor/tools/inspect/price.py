"""Prices each kind of event: its requests and request units, by trying it on the compiled plan; and the price of holding.

The trial runs on a store that meters, in a small world where every join finds one row and every row counts. The counts are thus
those of the steps themselves; requests that settle the change later are counted apart. Each kind of event has two prices:

    alone       The event is a micro-batch of its own.
    in a batch  The event is one of `BATCH` events of its kind, each of another root. Each further event adds the same units. So
                the trial runs batches of one and of two events, and counts the second event for each further event. Left out:
                the item of open changes grows with the batch, and each further KB costs a unit at its write and at its
                deletion. That is at most 0.05 units an event of the example: a test compares real batches of 1,000.

The rows are small: a row of more than 1 KB (written) or 4 KB (read) costs more, and so does each further document that a change
touches.

In a world, columns that joins compare hold the same value, so that a row of one entity joins one row of each other entity. There
are two such worlds (`WORLD`, `OTHER`), so that a row can move from one document to another. Values of `FRESH` join nothing.
Further pairs of worlds have values of their own, so that the same event can happen to several roots. A bool has no further
values: a join on bools alone finds the rows of all pairs.

The price of holding is the write units of the items in which a product with a gate keeps its roots that wait. The items are those
of one batch, written and deleted, with the note of their release where the product has `every`. Each event is on another root,
whose key has 16 characters, and in a transaction of its own. Left out: changes of one root that wait together make one document,
so `every` and `quiet` save the writes and reads of the others; a fan-out writes an item for each of its pages.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import NamedTuple

from processor.counts import REQUEST, Count
from processor.engine.plan.plan import EntityPlan, JoinPlan, Plan, ProductPlan
from processor.engine.protocol.gate_items import Held, ReleaseNotes, SeenPlace, SeenRecords, make_portions, ranges_of
from processor.engine.protocol.gates import tables_of, topics_of
from processor.engine.protocol.ledger import Mark
from processor.engine.protocol.publish import invalidate
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.round_counts import RowReads, UpdateCounts
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import MemoryOutbox, Trial, batches
from processor.engine.rounds.write_stage import write_stage
from processor.environment.settings.settings import Settings
from processor.language.product.expressions.expression import Column, Expression, Path, node_of, references
from processor.language.product.join_fields import parse_compared, parse_element, type_of
from processor.language.product.product import OPEN, Columns, Join, Product, expressions
from processor.values import canonical_json
from processor.values.entity import ColumnType, Entity, parse_type
from processor.values.envelopes.kinds import row_value
from processor.values.record import Record, Value
from registry.fields import columns_of as fields_read
from registry.fields import computed_column
from registry.slots import equal_groups
from statestore import keys
from statestore.dynamodb.requests import import_file
from statestore.memory import LoadStore, MemoryStore, MeteredStore
from statestore.store import Delete, Store

UNREAD = "update of nothing that is used"
"""The name of an update of columns that no product reads."""
_UPDATE, _JOIN_KEY = "update of ", " (join key)"
WORLD, OTHER, FRESH = 1, 2, 3
VALUES = 3
"""This many values a column has in each pair of worlds."""
RowValues = Mapping[str, Value]
"""A row: column -> value."""
EntityColumn = tuple[str, str]
"""Entity and column, or entity and field of an array's elements."""
ProductNode = tuple[str, int | None]
"""Product and index of a node, None for the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event on the row of `WORLD`, or on a `new` row. `row`: after the event, None if it is deleted; `replay`: the same
    change arrives again; `decides`: the event changes a column that a `where` or an expression reads, and with it whether a row
    counts, or the value of the expression. The sample values need not change them: a date may stay in its year.
    `unread`: no product reads the columns that the event changes."""

    entity: str
    name: str
    row: RowValues | None
    new: bool = False
    replay: bool = False
    decides: bool = False
    unread: bool = False


class World:
    """The rows of a pair of worlds, for a plan's entities. `pair`: its number."""

    def __init__(self, plan: Plan, pair: int = 0) -> None:
        self._plan = plan
        self._pair = pair
        self._nodes = [node for product in plan.products.values() for node in product.nodes]
        self._class = _classes(plan, self._nodes)
        self._deciding = set(_deciding(plan))
        self._computed = set(_computed(plan))

    def row(self, entity: str, number: int) -> dict[str, Value]:
        """The row of an entity in the world `number`."""
        return {name: self._value((entity, name), number) for name in self._plan.entities[entity].entity.columns}

    def events(self) -> Iterator[Event]:
        """Every kind of event of every entity that some product reads."""
        for entity in self._plan.entities.values():
            if entity.name in self._plan.occurrences:
                row = self.row(entity.name, WORLD)
                yield Event(entity=entity.name, name="first seen", row=self._new(entity, row), new=True)
                yield from self._updates(entity, row)
                yield Event(entity=entity.name, name=UNREAD, row=row, unread=True)
                yield Event(entity=entity.name, name="delete", row=None)
                yield Event(entity=entity.name, name="replay", row=row, replay=True)

    def _new(self, entity: EntityPlan, row: RowValues) -> RowValues:
        """A row with a new key that joins the same rows above, and none below."""
        mine = [node for node in self._nodes if node.own_slot is not None and node.join.entity == entity.name]
        child_columns = {c for node in mine for field in node.child_columns for c in fields_read(field)}
        below = {
            c
            for node in self._nodes
            if node.above == entity.name
            for field in node.spec.parent_columns
            for c in fields_read(field)
        }
        fresh = {*entity.entity.key, *below} - child_columns
        if fresh.isdisjoint(entity.entity.key):
            fresh.add(entity.entity.key[-1])
        return {**row, **self._values(entity.name, fresh, FRESH)}

    def _updates(self, entity: EntityPlan, row: RowValues) -> Iterator[Event]:
        """One event for each group of columns that the same products read at the same nodes and the same slots hold."""
        indexed: dict[int | str, Columns] = dict(entity.slots.items())
        indexed.update(entity.edges.items())
        groups: dict[tuple[frozenset[ProductNode], frozenset[int | str], bool], list[str]] = {}
        for column in entity.entity.columns:
            places = self._places(entity.name, column)
            if places and column not in entity.entity.key:
                joined = frozenset(
                    name for name, fields in indexed.items() if any(column in fields_read(f) for f in fields)
                )
                groups.setdefault((places, joined, (entity.name, column) in self._deciding), []).append(column)
        own = {
            c
            for n in self._nodes
            if n.join.entity == entity.name
            for field in n.child_columns
            for c in fields_read(field)
        }
        for (_, joined, decides), columns in groups.items():
            moves = bool(joined) and own.intersection(columns)
            new = {**row, **self._values(entity.name, columns, OTHER if moves else FRESH)}
            kind = _JOIN_KEY if joined else ""
            decides |= any((entity.name, column) in self._computed for column in columns)
            yield Event(entity=entity.name, name=f"{_UPDATE}{', '.join(columns)}{kind}", row=new, decides=decides)

    def _places(self, entity: str, column: str) -> frozenset[ProductNode]:
        """The nodes of products that read the column."""

        def used(place: ProductNode) -> bool:
            product = self._plan.products[place[0]]
            names = product.used if place[1] is None else product.nodes[place[1]].used
            return names is None or column in names

        return frozenset(filter(used, self._plan.occurrences[entity]))

    def _values(self, entity: str, columns: Collection[str], number: int) -> dict[str, Value]:
        return {column: self._value((entity, column), number) for column in columns}

    def _value(self, column: EntityColumn, number: int) -> Value:
        """The value of a column: that of its class, or an array of one element with the values of its fields."""
        entity = self._plan.entities[column[0]].entity
        number += VALUES * self._pair
        read = {
            f: e for name, f in self._class if name == column[0] and (e := parse_element(f)) and e.column == column[1]
        }
        if not read:
            return _value(entity.columns[column[1]], self._class.get(column, column), number)
        values = {e.member: _value(_kind(f, entity), self._class[column[0], f], number) for f, e in read.items()}
        return [values.get(None, values)]


def columns_of(event: str) -> frozenset[str]:
    """The columns that an update of this name changes; none of another event."""
    if not event.startswith(_UPDATE) or event == UNREAD:
        return frozenset()
    return frozenset(event.removeprefix(_UPDATE).removesuffix(_JOIN_KEY).split(", "))


def _kind(field: str, entity: Entity) -> ColumnType:
    """The type of a field of an array's elements; for json, the type of its kind, which joins need."""
    declared, read = type_of(field, entity), parse_element(field)
    if declared.name != "json" or read is None or read.kind is None:
        return declared
    return parse_type("int" if read.kind == "number" else read.kind)


def _classes(plan: Plan, nodes: Collection[JoinPlan]) -> dict[EntityColumn, EntityColumn]:
    """Column -> the representative of all columns that joins compare with it."""
    return equal_groups(
        ((node.above, _valued(parent)), (node.join.entity, _valued(child)))
        for node in nodes
        for child, parent in zip(node.spec.child_columns, node.spec.parent_columns, strict=True)
    )


def _valued(field: str) -> str:
    """The field whose values the world makes. Values of one class are the same text, however their text compares. Of an
    expression, its one column: the values of two such columns meet where both sides have the same expression."""
    compared, read = parse_compared(field), fields_read(field)
    if computed_column(field):
        return read[0] if len(read) == 1 else field
    return compared[0] if compared else field


def without_filters(plan: Plan) -> Plan:
    """The plan without `where`, `required` and `table`, so that every row counts. The columns that it reads stay the same."""

    def lenient(joins: Iterable[Join]) -> tuple[Join, ...]:
        return tuple(replace(join, where=None, required=False, joins=lenient(join.joins)) for join in joins)

    def lenient_product(product: ProductPlan) -> ProductPlan:
        tree = replace(product.product, where=None, joins=lenient(product.product.joins))
        nodes = tuple(replace(node, join=lenient((node.join,))[0]) for node in product.nodes)
        return replace(product, product=tree, nodes=nodes)

    entities = {name: replace(one, entity=replace(one.entity, table="")) for name, one in plan.entities.items()}
    products = {name: lenient_product(product) for name, product in plan.products.items()}
    return replace(plan, entities=entities, products=products)


def _deciding(plan: Plan) -> Iterator[EntityColumn]:
    """The columns that some `where` reads."""
    return _read_by(plan, lambda level: () if level.where is None else (level.where,))


def _computed(plan: Plan) -> Iterator[EntityColumn]:
    """The columns that some expression of a document reads, other than a column alone."""
    return _read_by(
        plan, lambda level: [one for one in expressions(level.selection) if not isinstance(node_of(one), Column)]
    )


def _read_by(plan: Plan, read_at: Callable[[Product | Join], Iterable[Expression]]) -> Iterator[EntityColumn]:
    """The columns that the expressions of each level read. `read_at`: the expressions of a level."""
    for product in plan.products.values():
        places: dict[Path, str] = {(): product.product.root}
        levels: list[tuple[Path, Product | Join]] = [((), product.product)]
        for node, path in zip(product.nodes, _paths(product), strict=True):
            places[path] = node.join.entity
            levels.append((path, node.join))
        for at, level in levels:
            for read in (read for expression in read_at(level) for read in references(node_of(expression))):
                if isinstance(read, Column):
                    place = at[: len(at) - read.up] + read.path
                    group = None if place else product.group
                    columns = (read.name,) if group is None else fields_read(group.fields[read.name])
                    yield from ((places[place], column) for column in columns)


def _paths(product: ProductPlan) -> list[Path]:
    """The path of each node, as the names of the joins from the root to it."""
    paths: list[Path] = []
    for node in product.nodes:
        paths.append((*(() if node.parent is None else paths[node.parent]), node.join.name))
    return paths


def _value(kind: ColumnType, column: EntityColumn, number: int) -> Value:
    match kind.name:
        case "string":
            value: Value = f"{column[1]}{number}"
        case "int" | "float" | "decimal":
            value = number
        case "bool":
            value = number % VALUES == WORLD
        case "date":
            value = _day(number)
        case "timestamp":
            value = f"{_day(number)}T00:00:00Z"
        case "json":
            value = {"value": number}
    return [value] if kind.array else value


def _day(number: int) -> str:
    return str(date(2019, 12, 31) + timedelta(days=number))


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
        (name, _root_key(plan, product, world.row(product.product.root, number)))
        for name, product in plan.products.items()
        for world in worlds
        for number in (OTHER, WORLD)
    ]
    mark = Mark(run=1, round=0, lane=0, attempt=0)
    StepRunner(store=store).run([invalidate(plan.products[name].ledger, root, root, mark) for name, root in roots])


def _root_key(plan: Plan, product: ProductPlan, row: RowValues) -> str:
    """The encoded key of the root that a row of the root entity is, or whose group it is in."""
    values = row if product.group is None else product.group.of_row(row)
    return keys.encode([values[column] for column in plan.root_entity(product).key]) or ""


def _record(entity: EntityPlan, key: RowValues, row: RowValues | None, offset: int) -> Record:
    """A change record of the row with this key; `row` None: the row is deleted."""
    return Record(
        topic=entity.entity.topic,
        partition=0,
        offset=offset,
        key=canonical_json.encode({column: key[column] for column in entity.entity.key}),
        value=None if row is None else canonical_json.encode(row_value(row, entity.entity)),
    )


class LoadPrice(NamedTuple):
    """The first load of some records: how many they are, the write units of their rows by `run`, and the bytes of the files that
    DynamoDB imports by `load`. Left out: the documents, which cost the same both ways."""

    records: int
    write_units: int
    bytes: int


def price_load(plan: Plan, settings: Settings, records: Sequence[Record]) -> LoadPrice:
    """Tries the load of the records both ways."""
    store = MeteredStore(settings.slots)
    trial = _without_sample(Trial(plan=plan, settings=settings, other_store=store))
    driver, rows = trial.driver, LoadStore(MemoryStore())
    driver.start()
    driver.adopt(plan)
    driver.begin_catch_up()
    write_stage(records, driver.rounds.next_round(), StepRunner(store=rows, outbox=MemoryOutbox()))
    written = store.written
    for chunk in batches(records, BATCH):
        trial.batch(chunk)
    trial.finish()
    return LoadPrice(len(records), store.written - written, len(import_file(rows.loaded())))


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
    """The write units of an event in a batch of this size."""
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
