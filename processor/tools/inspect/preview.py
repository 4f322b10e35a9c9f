"""Previews an `apply`: its changes to the registry, the slots after it, warnings, and the cost of events. Changes nothing.

backfills     the rows that the job writes again before products over them go live, and their size
row effects   the values that stored rows lose, lack, or show in no index. The job changes a value of a stored row when it
              writes the row again. Only a backfill rewrites rows for this
sizes         warnings, by statistics of the state, of values that many rows hold, of too large documents, and of rows near
              an item's limit. A document counts as large as the stored rows that it shows, so a product that selects few
              columns gets its warning too early
prices        of events by product, in dollars, and what events would cost without a product. They are those of the estimates
              where there are statistics, else with one row for every join. A saving tries each kind of event without the product
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import NamedTuple

from processor.engine.plan.plan import JoinPlan, Plan, ProductPlan, check_time_zones, shared_tree_lines
from processor.engine.plan.planning import check_dropped, check_message_keys, plan_after, plan_of, requirements_of
from processor.environment.settings.settings import Settings
from processor.errors import PlanError
from processor.language.definitions.problems import DefinitionError
from processor.language.product.join_fields import type_of
from processor.language.product.product import Definitions
from processor.tools.inspect.board import PlannedEntry, board_json, joined_by, planned_entries, shown_value
from processor.tools.inspect.estimate import Estimate, StatisticsIndex, estimate_events, index_statistics
from processor.tools.inspect.price import UNREAD, Cost, GatePrice, columns_of, price_events, price_gates
from processor.tools.inspect.prices import Prices
from processor.values.record import MAX_MESSAGE_BYTES
from registry.edits.apply import apply
from registry.edits.edit import Edit, edited, plan_id
from registry.edits.operations import completed, remove
from registry.fields import columns_of as fields_read
from registry.fields import shown_fields, split_order
from registry.model import (
    FIRST_ORDERED,
    Assignment,
    EntityEntry,
    JoinStatistics,
    PlannedPath,
    Requirements,
    SlotPath,
    Snapshot,
    Statistics,
)
from statestore.items import slot_name
from statestore.memory import READ_BYTES, WRITE_BYTES
from statestore.store import MAX_ITEM_BYTES

BACKFILL_UNITS = 1_000
"""Write units a second of one partition, thus of one shard. This limits how fast a backfill rewrites rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Rows of an entity that the job writes again. `holds`: the new slots, edges and columns in indexes; `edges`: the
    fields of the edges alone. `rows`, `write_units`, `seconds`: None if unknown. Left out: the reads of the rows, and
    documents that the job publishes afterwards."""

    entity: str
    holds: str
    edges: tuple[str, ...]
    rows: int | None
    write_units: int | None
    seconds: int | None


def backfill_text(backfill: Backfill, prices: Prices) -> str:
    """The rows of a backfill, with its write units, dollars and time where they are known."""
    rows = f"rows of {backfill.entity} to fill"
    if backfill.rows is None or backfill.write_units is None or backfill.seconds is None:
        return f"{rows}: `statestore statistics` counts them"
    dollars = prices.dollars(backfill.write_units, Decimal(0)) / 1_000_000
    time = f"about {timedelta(seconds=backfill.seconds)} at {BACKFILL_UNITS:,} write units a second and shard"
    return f"{backfill.rows:,} {rows}: {backfill.write_units:,} write units, ${dollars:,.2f}, {time}"


def needed_backfills(
    stored: Snapshot,
    after: Snapshot,
    has_run: frozenset[str],
    index: StatisticsIndex | None,
    plans: tuple[Plan, Plan] | None,
) -> Iterator[Backfill]:
    """The backfills that an edit leads to, by entity. `has_run`: the entities that a job has run with; `index`: None without
    statistics. `plans`: before and after the edit, where the registry has a plan before."""
    edges = [edge for edge in after.edge_paths() if edge not in stored.edge_paths()]
    places = {(one.entity, one.slot) for one in stored.assignments}
    for entity in (one for one in after.entities if one.name in has_run):
        slots = [one for one in after.assignments_of(entity.name) if (one.entity, one.slot) not in places]
        fields = tuple(shown_fields(edge.fields) for edge in edges if edge.entity == entity.name)
        holds = [f"{slot_name(one.slot)} holds {shown_fields(one.columns)}" for one in slots]
        holds += [f"edges by {one}" for one in fields]
        held = frozenset(column for one in slots for field in one.columns for column in fields_read(field))
        holds += _shown_columns(entity.name, *plans, held) if plans else ()
        counted = index.entities.get(entity.name) if index else None
        rows, write_units, seconds = None, None, None
        if counted:
            rows = counted.rows
            row = rows * max(1, ceil(counted.mean_bytes / WRITE_BYTES))
            entry = max(1, ceil((counted.entry_bytes or 0) / WRITE_BYTES))
            write_units = row + rows * (len(after.assignments_of(entity.name)) * entry + len(fields))
            seconds = ceil(row / BACKFILL_UNITS / entity.shards)
        if holds:
            yield Backfill(
                entity=entity.name,
                holds=", ".join(holds),
                edges=fields,
                rows=rows,
                write_units=write_units,
                seconds=seconds,
            )


def _shown_columns(name: str, before: Plan, after: Plan, held: frozenset[str]) -> Iterator[str]:
    """The columns that indexes begin to show of an entity that they show already, without those that new slots hold."""
    old, new = (plan.entities[name].indexed if name in plan.entities else frozenset() for plan in (before, after))
    if old is None or not old:
        return
    if new is None:
        yield "the indexes show whole rows"
    elif columns := new - old - held:
        yield f"the indexes show {', '.join(sorted(columns))}"


class RowEffects(NamedTuple):
    """The effects of an apply on stored rows. `lines`: for people."""

    backfills: tuple[Backfill, ...]
    lines: tuple[str, ...]


def row_effects(
    before: Snapshot, after: Snapshot, plan: Plan, has_run: frozenset[str], index: StatisticsIndex | None
) -> RowEffects:
    """The effects on the rows of `has_run`, the entities that a job has run with. `plan`: after the apply, once no product waits;
    `index`: None without statistics."""
    try:
        plans = plan_of(before), plan
    except (DefinitionError, PlanError):  # there is no plan yet, or an edit by hand broke it, which the apply repairs
        plans = None
    old = {entity.name: entity for entity in before.entities}
    lines: list[str] = []
    for entity in (one for one in after.entities if one.name in has_run and one.name in old):
        lines += _kept(old[entity.name], entity)
        lines += _shown_no_more(entity.name, *plans) if plans else ()
    return RowEffects(tuple(needed_backfills(before, after, has_run, index, plans)), tuple(lines))


def _kept(old: EntityEntry, new: EntityEntry) -> Iterator[str]:
    was, now = (one.definition.get("keep") == "declared" for one in (old, new))
    cure = f"only a new snapshot of topic {new.topic} brings them back"
    if now and not was:
        yield f"entity {new.name}: a row loses its undeclared columns when the job writes it again; {cure}"
    elif was and not now:
        yield f"entity {new.name}: rows that `keep: declared` stored have no undeclared columns; {cure}"
    if was and (columns := [name for name in new.columns if name not in old.columns]):
        yield f"entity {new.name}: `keep: declared` did not store {', '.join(columns)} of the present rows; {cure}"


def _shown_no_more(name: str, before: Plan, after: Plan) -> Iterator[str]:
    old, new = before.entities[name].indexed, after.entities[name].indexed
    if new and (old is None or not old <= new):
        columns = "whole rows" if old is None else ", ".join(sorted(old - new))
        shrinks = "index entries shrink as the job writes their rows again"
        yield f"entity {name}: no product reads {columns} through an index any more; {shrinks}"


HOT_ROWS = 1_000
"""A warning is due for a value that finds at least this number of rows."""
KAFKA_BYTES = 1024 * 1024
"""The largest message of Kafka, unless a topic or its broker is set otherwise."""
NEAR_LIMIT = 0.75
"""A warning is due for a row above this share of an item's limit."""


def size_warnings(plan: Plan, index: StatisticsIndex) -> Iterator[str]:
    """A warning for each value, document and row that is too large by these statistics, or nearly so."""
    nodes = {node.spec: (product, node) for product in plan.products.values() for node in product.nodes}
    for product, node in nodes.values():
        yield from _hot_values(product, node, index)
    for product in plan.products.values():
        yield from _large_document(product, index)
    for name in plan.entities:
        sampled = index.entities.get(name)
        if sampled is not None and sampled.most_bytes > MAX_ITEM_BYTES * NEAR_LIMIT:
            size = f"a row of the sample has {sampled.most_bytes / 1024:,.0f} KiB"
            yield f"entity {name}: {size}, and an item of the table holds {MAX_ITEM_BYTES // 1024}; store less in a row"


def _hot_values(product: ProductPlan, node: JoinPlan, index: StatisticsIndex) -> Iterator[str]:
    join, child = node.spec, node.join.entity
    down, up = index.joins.get((join, "down")), index.joins.get((join, "up"))
    if down is not None and down.most >= HOT_ROWS:
        units = read_units(product, node, 1, down.most, index)
        reads = "" if node.ordered else f"a document reads them all, about {units:,.0f} read units an event, and "
        yield f"join {_found_rows(down, child)}: {reads}{_write_limit(node.down)}"
    if up is not None and up.most >= HOT_ROWS:
        rebuilt = f"a change of its {child} rebuilds the documents above each"
        yield f"join {_found_rows(up, node.above)}: {rebuilt}, and {_write_limit(node.up)}"


def read_units(product: ProductPlan, node: JoinPlan, asked: float, rows: float, index: StatisticsIndex) -> float:
    """The read units of `asked` requests of a join that find these rows, and of the joins below these rows."""
    name = node.join.entity
    if isinstance(node.down, SlotPath):
        units = max(asked, rows * index.entry_bytes(name) / READ_BYTES) / 2
    else:
        units = min(max(asked, rows), index.rows(name)) * max(1.0, index.bytes(name) / READ_BYTES)
    below = (product.nodes[number] for number in node.below)
    return units + sum(read_units(product, one, rows, rows * index.mean(one, "down"), index) for one in below)


def _found_rows(found: JoinStatistics, entity: str) -> str:
    return f"{found.join}: {shown_value(found)} finds {found.most:,} rows of {entity}"


def _write_limit(access: PlannedPath) -> str:
    """The write limit of rows that hold one value."""
    where = f"one key of {slot_name(access.slot)}" if isinstance(access, SlotPath) else "one partition of edges"
    return f"all are in {where}, which takes about 1,000 writes a second"


def _large_document(product: ProductPlan, index: StatisticsIndex) -> Iterator[str]:
    """A warning if the largest document is too large for a message. One of its joins finds its most rows, the others the mean."""
    means = [index.mean(node, "down") for node in product.nodes]
    rows = [0.0] * len(product.nodes)  # bytes of a row of each node, with what is embedded below it

    def embedded(level: tuple[int, ...], found: float = 1, depth: int = 0) -> float:
        """The bytes of the rows that a level shows, also those of joins that hang below other joins of it."""
        size = 0.0
        for i in level:
            node = product.nodes[i]
            if node.join.lift == depth:
                size += _shown_rows(node, found * means[i]) * rows[i]
            size += embedded(node.below, found * means[i], depth + 1)
        return size

    for number in reversed(range(len(rows))):
        node = product.nodes[number]
        rows[number] = index.bytes(node.join.entity) + embedded(node.below)
    document = (0 if product.group else index.bytes(product.product.root)) + embedded(product.top)
    largest, cause = document, ""
    for number, path in enumerate(product.paths()):
        node = product.nodes[number]
        found = index.joins.get((node.spec, "down"))
        if found is not None and _visible(product, number):
            size = document + (_shown_rows(node, found.most) - _shown_rows(node, means[number])) * rows[number]
            if size > largest:
                largest, cause = size, f" ({path} of {shown_value(found)}: {found.most:,} rows)"
    if largest > KAFKA_BYTES:
        size_text = f"{product.product.name}: a document may have about {largest / 2**20:,.1f} MiB{cause}"
        limits = f"Kafka takes 1 MiB by default, the topics that the job makes {MAX_MESSAGE_BYTES >> 20} MiB"
        yield f"{size_text}; {limits}: add a `limit`"


def _shown_rows(node: JoinPlan, rows: float) -> float:
    """How many rows a document shows if the join finds `rows` rows."""
    join = node.join
    if not join.shown or join.aggregated:
        return 0
    limit = join.limit if join.many else 1
    return rows if limit is None else min(rows, limit)


def _visible(product: ProductPlan, number: int | None) -> bool:
    """Whether a document shows rows of a node: every join on the way to the node must show its rows."""
    while number is not None:
        node = product.nodes[number]
        if _shown_rows(node, 1) == 0:
            return False
        number = node.parent
        for _ in range(node.join.lift):
            number = None if number is None else product.nodes[number].parent
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPreview:
    """A slot of an entity after the apply. `state`: `new`, `reused` by a join of these definitions, `kept` for joins of other
    products, or `unused`; `together`: the entities whose rows the same query answers; `strangers`: those whose rows in the slot
    such a query would read for nothing, so that each entity gets a query of its own."""

    entity: str
    slot: int
    columns: tuple[str, ...]
    state: str
    serves: tuple[str, ...]
    together: tuple[str, ...]
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The effect of an apply. `plan`: its `plan_id`; `version`: of the registry now; `changes`: as `apply` prints them, empty if
    nothing would change; `entries`: the entities and products among them; `joins`, `dropped`: joins with their new access paths,
    and joins that no product uses any more; `kept`: entities and products of the registry that the definitions do not name, and
    that stay; `free`: free slots by entity; `backfills`: of stored rows, for which products wait; `costs`: empty without prices;
    `estimates`: of the same events, by the statistics of `taken_at`, empty without statistics; `reads`: the entities that each
    product of the definitions reads; `trees`: the joins that products of one root share; `gates`: what holding costs those of the
    definitions that have a gate; `clocks`: those that have a clock; `routed`: those with `partition_by`."""

    plan: str
    version: int
    changes: tuple[str, ...]
    entries: tuple[PlannedEntry, ...]
    joins: tuple[str, ...]
    dropped: tuple[str, ...]
    kept: tuple[str, ...]
    slots: tuple[SlotPreview, ...]
    free: Mapping[str, int]
    backfills: tuple[Backfill, ...]
    warnings: tuple[str, ...]
    costs: tuple[Cost, ...]
    taken_at: datetime | None
    estimates: tuple[Estimate, ...]
    reads: Mapping[str, tuple[str, ...]]
    trees: tuple[str, ...]
    gates: tuple[GatePrice, ...]
    clocks: tuple[str, ...] = ()
    routed: tuple[str, ...] = ()


def preview(
    definitions: Definitions,
    stored: Snapshot,
    has_run: frozenset[str],
    settings: Settings | None = None,
    statistics: Statistics | None = None,
) -> Preview:
    """Compares definitions with the registry. `has_run`: the entities that some job has run with; `settings`: of the job
    whose events are priced, None for no prices; `statistics`: of the state, None if none were taken.

    The prices are those after all backfills, when no product waits. Raises RegistryError if the registry would refuse the apply,
    and DefinitionError if the products conflict with those of the registry.
    """
    wanted, change, after, plan = planned_state(definitions, stored, has_run)
    index = index_statistics(statistics, plan) if statistics else None
    slots = tuple(_slots(after, change, wanted, plan))
    costs = price_events(plan, settings) if settings else ()
    backfills, effects = row_effects(stored, after, plan, has_run, index)
    return Preview(
        plan=plan_id(after),
        version=stored.version,
        changes=change.changes,
        entries=tuple(planned_entries(stored, change)),
        joins=tuple(map(joined_by, change.joins)),
        dropped=tuple(map(str, change.dropped)),
        kept=tuple(_unnamed(stored, definitions)),
        slots=slots,
        free={entity.name: after.slots - len(after.assignments_of(entity.name)) for entity in after.entities},
        backfills=backfills,
        warnings=(*effects, *_warnings(plan, slots), *(size_warnings(plan, index) if index else ())),
        costs=costs,
        taken_at=statistics.taken_at if statistics else None,
        estimates=estimate_events(plan, costs, index) if index and costs else (),
        reads={product.name: tuple(sorted(product.entities())) for product in wanted.products},
        trees=tuple(shared_tree_lines(plan.trees.values())),
        gates=tuple(one for one in price_gates(plan) if one.product in definitions.products) if settings else (),
        clocks=tuple(name for name, product in definitions.products.items() if product.clock),
        routed=tuple(name for name, product in definitions.products.items() if product.partition_by),
    )


class PlannedState(NamedTuple):
    """The registry after an apply. `wanted`: what the definitions require; `change`: the edit; `plan`: once no product waits."""

    wanted: Requirements
    change: Edit
    after: Snapshot
    plan: Plan


def planned_state(definitions: Definitions, stored: Snapshot, has_run: frozenset[str]) -> PlannedState:
    """The registry after an apply of these definitions. `has_run`, errors: as of `preview`."""
    wanted = requirements_of(definitions)
    change = apply(stored, wanted, has_run)
    after = edited(stored, change)
    check_dropped(stored, after)
    check_message_keys(stored, after)
    if after.waiting:
        check_time_zones(plan_after(after, definitions))  # raises, if the live versions do not fit meanwhile
    plan = plan_after(completed(after), definitions)
    check_time_zones(plan)
    return PlannedState(wanted, change, after, plan)


def _unnamed(stored: Snapshot, definitions: Definitions) -> Iterator[str]:
    yield from (f"entity {entry.name}" for entry in stored.entities if entry.name not in definitions.entities)
    yield from (f"product {entry.name}" for entry in stored.products if entry.name not in definitions.products)


def _slots(after: Snapshot, change: Edit, wanted: Requirements, plan: Plan) -> Iterator[SlotPreview]:
    together, strangers = _together(plan), _strangers(plan)
    requested = {path for access in wanted.paths for path in access.paths()}
    requested.update(index for group in wanted.groups for index in group)
    orders = _orders(plan)
    board = board_json(after)["entities"]
    served = {(e["entity"], a["slot"]): tuple(a["serves"]) for e in board for a in e["assignments"]}
    for assignment in after.assignments:
        entity, slot = assignment.entity, assignment.slot
        serves = served[entity, slot] or orders.get((entity, slot), ())
        yield SlotPreview(
            entity=entity,
            slot=slot,
            columns=assignment.columns,
            state=_state(assignment, change, requested, bool(serves)),
            serves=serves,
            together=tuple(sorted(together.get((entity, slot), frozenset()) - {entity})),
            strangers=tuple(sorted(strangers.get((entity, slot), ()))),
        )


def _orders(plan: Plan) -> dict[tuple[str, int], tuple[str, ...]]:
    """(entity, slot) -> the joins that read their first rows there."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for name, product in plan.products.items():
        for path, node in zip(product.paths(), product.nodes, strict=True):
            if node.ordered is not None:
                place = node.join.entity, node.ordered.slot
                found[place] = (*found.get(place, ()), f"the first {node.ordered.rows:,} of {name}.{path}")
    return found


def _state(assignment: Assignment, change: Edit, requested: Collection[object], served: bool) -> str:
    if assignment in change.assignments:
        return "new"
    if assignment.index in requested:
        return "reused"
    return "kept" if served else "unused"


def _together(plan: Plan) -> dict[tuple[str, int], frozenset[str]]:
    """(entity, slot) -> the entities that one unpinned query of that slot answers."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    for product in plan.products.values():
        for level in (product.top, *(node.below for node in product.nodes)):
            groups: dict[tuple[int, tuple[str, ...]], set[str]] = {}
            for node in (product.nodes[index] for index in level):
                if isinstance(node.down, SlotPath) and not node.down.pinned:
                    groups.setdefault((node.down.slot, node.parent_columns), set()).add(node.join.entity)
            for (slot, _), entities in groups.items():
                for entity in entities:
                    found[entity, slot] = found.get((entity, slot), frozenset()) | entities
    return found


def _strangers(plan: Plan) -> dict[tuple[str, int], set[str]]:
    """(entity, slot) -> the entities because of which its queries of that slot are pinned, though siblings ask for the same."""
    found: dict[tuple[str, int], set[str]] = {}
    for node in (node for product in plan.products.values() for node in product.nodes):
        if isinstance(node.down, SlotPath) and node.down.strangers:
            found.setdefault((node.join.entity, node.down.slot), set()).update(node.down.strangers)
    return found


def _warnings(plan: Plan, slots: tuple[SlotPreview, ...]) -> Iterator[str]:
    for name, product in plan.products.items():
        for path, node in zip(product.paths(), product.nodes, strict=True):
            if (
                node.join.shown
                and node.join.many
                and node.join.limit is None
                and node.join.level < 2
                and not (node.join.aggregated or node.join.listed)
            ):
                yield f"{name}.{path}: a `many` without `limit` grows with its rows, and a message has a largest size; add one"
            if node.join.ordered and node.ordered is None and isinstance(node.down, SlotPath):
                yield (
                    f"{name}.{path}: `ordered`, but it reads all rows: no slot from GSI_{FIRST_ORDERED} on is free for its "
                    f"order in {node.join.entity}; give the table more by `statestore add-slots`, or retire one"
                )
    for slot in slots:
        entity = plan.entities[slot.entity].entity
        if all(type_of(field, entity).name == "bool" for field in split_order(slot.columns)[0]):
            held = shown_fields(slot.columns)
            what = f"{slot_name(slot.slot)} of {slot.entity} holds {held}, which has two values"
            yield f"{what}: each is one key of the index, and a key takes about 1,000 writes a second; join on more columns"
        if slot.state == "unused":
            yield f"{slot_name(slot.slot)} of {slot.entity} is unused: no join asks for it, and each write of a row pays for it"
    for name in plan.entities:
        if name not in plan.occurrences:
            yield f"entity {name}: no product reads it, and every change of it is stored; remove it, or use it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPrice:
    """The cheapest and the dearest kind of event of the entities that a product reads, in dollars a million events."""

    product: str
    low: Decimal
    high: Decimal


def product_prices(found: Preview, prices: Prices) -> list[ProductPrice]:
    """The prices by product: of the estimates where there are statistics, else with one row for every join; in a batch."""
    by_entity = _by_entity(event_prices(found.costs, found.estimates, prices))
    priced = {
        p: [one for name in reads for one in by_entity.get(name, {}).values()] for p, reads in found.reads.items()
    }
    return [ProductPrice(product=name, low=min(all), high=max(all)) for name, all in priced.items() if all]


class EventPrice(NamedTuple):
    """The price of a kind of event in a batch: of its estimate where there are statistics, else with one row for every join."""

    entity: str
    event: str
    documents: float
    write_units: float
    read_units: float
    dollars: Decimal
    """A million events."""


def event_prices(costs: Iterable[Cost], estimates: Iterable[Estimate], prices: Prices) -> Iterator[EventPrice]:
    """The price of each kind of event."""
    known = {(one.entity, one.event): one for one in estimates}
    for cost in costs:
        if one := known.get((cost.entity, cost.event)):
            units, documents, dollars = (one.write_units, one.read_units), one.documents, estimated_dollars(one, prices)
        else:
            write, read = cost.batch_write_units, cost.batch_read_units
            units, documents, dollars = (float(write), float(read)), cost.documents, prices.dollars(write, read)
        yield EventPrice(cost.entity, cost.event, round(documents, 2), *units, dollars)


def _by_entity(events: Iterable[EventPrice]) -> dict[str, dict[str, Decimal]]:
    """The dollars by entity and kind of event."""
    found: dict[str, dict[str, Decimal]] = {}
    for one in events:
        found.setdefault(one.entity, {})[one.event] = one.dollars
    return found


def estimated_dollars(estimate: Estimate, prices: Prices) -> Decimal:
    """Dollars a million events of an estimate."""
    return prices.dollars(Decimal(estimate.write_units), Decimal(estimate.read_units))


class EntitySaving(NamedTuple):
    """The dollars of a million events of an entity, now and without the product: the mean of its kinds of event, as if each came
    as often as the others."""

    entity: str
    now: Decimal
    without: Decimal


def savings_without(
    name: str, found: Preview, stored: Snapshot, settings: Settings, statistics: Statistics | None, prices: Prices
) -> list[EntitySaving]:
    """The savings of the entities that the product reads. `found`: the prices of now."""
    plan = plan_of(completed(edited(stored, remove(stored, name, tombstones=False))))
    costs = price_events(plan, settings)
    index = index_statistics(statistics, plan) if statistics else None
    before = _by_entity(event_prices(found.costs, found.estimates, prices))
    estimates = estimate_events(plan, costs, index) if index and costs else ()
    after = _by_entity(event_prices(costs, estimates, prices))
    return [_saving(entity, before[entity], after.get(entity, {}), prices) for entity in found.reads[name]]


def _saving(entity: str, before: Mapping[str, Decimal], after: Mapping[str, Decimal], prices: Prices) -> EntitySaving:
    without = sum((_without(kind, after, prices) for kind in before), Decimal(0))
    return EntitySaving(entity, sum(before.values(), Decimal(0)) / len(before), without / len(before))


def _without(kind: str, after: Mapping[str, Decimal], prices: Prices) -> Decimal:
    """The price of a kind of event: of the dearest kind of the same columns, else of an update that no product reads. Where no
    product reads the entity any more, the row alone is written."""
    if kind in after:
        return after[kind]
    same = [price for name, price in after.items() if columns_of(kind) & columns_of(name)]
    return max(same, default=after.get(UNREAD, prices.write))
