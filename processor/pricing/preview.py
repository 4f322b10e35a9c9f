"""Previews an `apply`: its changes to the registry, the slots after it, warnings, and the cost of events. Changes nothing."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from processor.plan.access import SlotRead
from processor.plan.plan import Plan
from processor.plan.planning import check_dropped, plan_after, requirements_of
from processor.plan.tree_text import shared_tree_lines
from processor.pricing.backfill_estimate import Backfill
from processor.pricing.estimate import Estimate, estimate_events, index_statistics
from processor.pricing.gate_price import GatePrice, price_gates
from processor.pricing.planned_entries import PlannedEntry, planned_entries
from processor.pricing.price import Cost, price_events
from processor.pricing.sizes import size_warnings
from processor.pricing.stored_columns import row_effects
from processor.product.product import Definitions
from processor.settings.settings import Settings
from registry.board import board_json
from registry.edits.advance import completed
from registry.edits.apply import apply
from registry.edits.edit import Edit, edited, joined_by, plan_id
from registry.model import Assignment, Need, Requirements, Snapshot, Statistics
from registry.text import column_of
from statestore.items import slot_name


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
    definitions that have a gate."""

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
    if after.waiting:
        plan_after(after, definitions)  # raises, if the live versions do not fit meanwhile
    return PlannedState(wanted, change, after, plan_after(completed(after), definitions))


def _unnamed(stored: Snapshot, definitions: Definitions) -> Iterator[str]:
    yield from (f"entity {entry.name}" for entry in stored.entities if entry.name not in definitions.entities)
    yield from (f"product {entry.name}" for entry in stored.products if entry.name not in definitions.products)


def _slots(after: Snapshot, change: Edit, wanted: Requirements, plan: Plan) -> Iterator[SlotPreview]:
    together, strangers = _together(plan), _strangers(plan)
    requested = {path for paths in wanted.paths for path in (paths.down, paths.up)}
    board = board_json(after)["entities"]
    served = {(e["entity"], a["slot"]): tuple(a["serves"]) for e in board for a in e["assignments"]}
    for assignment in after.assignments:
        entity, slot = assignment.entity, assignment.slot
        serves = served[entity, slot]
        yield SlotPreview(
            entity=entity,
            slot=slot,
            columns=assignment.columns,
            state=_state(assignment, change, requested, bool(serves)),
            serves=serves,
            together=tuple(sorted(together.get((entity, slot), frozenset()) - {entity})),
            strangers=tuple(sorted(strangers.get((entity, slot), ()))),
        )


def _state(assignment: Assignment, change: Edit, requested: Collection[object], served: bool) -> str:
    if assignment in change.assignments:
        return "new"
    if Need(entity=assignment.entity, columns=assignment.columns) in requested:
        return "reused"
    return "kept" if served else "unused"


def _together(plan: Plan) -> dict[tuple[str, int], frozenset[str]]:
    """(entity, slot) -> the entities that one unpinned query of that slot answers."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    for product in plan.products.values():
        for level in (product.top, *(node.below for node in product.nodes)):
            groups: dict[tuple[int, tuple[str, ...]], set[str]] = {}
            for node in (product.nodes[index] for index in level):
                if isinstance(node.down, SlotRead) and not node.down.pinned:
                    groups.setdefault((node.down.slot, node.parent_columns), set()).add(node.join.entity)
            for (slot, _), entities in groups.items():
                for entity in entities:
                    found[entity, slot] = found.get((entity, slot), frozenset()) | entities
    return found


def _strangers(plan: Plan) -> dict[tuple[str, int], set[str]]:
    """(entity, slot) -> the entities because of which its queries of that slot are pinned, though siblings ask for the same."""
    found: dict[tuple[str, int], set[str]] = {}
    for node in (node for product in plan.products.values() for node in product.nodes):
        if isinstance(node.down, SlotRead) and node.down.strangers:
            found.setdefault((node.join.entity, node.down.slot), set()).update(node.down.strangers)
    return found


def _warnings(plan: Plan, slots: tuple[SlotPreview, ...]) -> Iterator[str]:
    for name, product in plan.products.items():
        for path, node in zip(product.paths(), product.nodes, strict=True):
            if (
                node.join.shown
                and node.join.many
                and node.join.limit is None
                and not (node.join.aggregated or node.join.listed)
            ):
                yield f"{name}.{path}: a `many` without `limit` grows with its rows, and a message has a largest size; add one"
    for slot in slots:
        columns = plan.entities[slot.entity].entity.columns
        if all(columns[column_of(field)].name == "bool" for field in slot.columns):
            what = f"{slot_name(slot.slot)} of {slot.entity} holds {'#'.join(slot.columns)}, which has two values"
            yield f"{what}: each is one key of the index, and a key takes about 1,000 writes a second; join on more columns"
        if slot.state == "unused":
            yield f"{slot_name(slot.slot)} of {slot.entity} is unused: no join asks for it, and each write of a row pays for it"
    for name in plan.entities:
        if name not in plan.occurrences:
            yield f"entity {name}: no product reads it, and every change of it is stored; remove it, or use it"
