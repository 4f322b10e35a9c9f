"""What `apply` would do to the registry, and what the result costs: changes, slots, warnings, prices. Changes nothing."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from processor.backfills import NeedsBackfills, backfills
from processor.estimate import Estimate, estimates, known
from processor.model.access import SlotRead
from processor.model.plan import Plan
from processor.model.product import Definitions
from processor.planning import plan_of, registry_plan
from processor.price import Cost, costs
from processor.settings import Settings
from processor.sizes import size_warnings
from registry.board import board_json
from registry.edit import Edit, edit, edited
from registry.errors import NeedsBackfill
from registry.model import Assignment, Need, Snapshot
from registry.model import Plan as Wanted
from registry.statistics import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot of an entity after the apply. `state`: `new`, `reused` by a join of these definitions, `kept` for joins of other
    products, or `unused`; `together`: the entities whose rows one query answers with it."""

    entity: str
    slot: int
    columns: tuple[str, ...]
    state: str
    serves: tuple[str, ...]
    together: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an apply would do. `version`: of the registry now; `changes`: as `apply` prints them, none: nothing would change;
    `kept`: what the registry holds and the definitions do not name, which stays; `free`: slots left, by entity; `costs`: none
    where no prices were asked for; `estimates`: the same events by the statistics of `taken_at`, none without."""

    version: int
    changes: tuple[str, ...]
    kept: tuple[str, ...]
    slots: tuple[Slot, ...]
    free: Mapping[str, int]
    warnings: tuple[str, ...]
    costs: tuple[Cost, ...]
    taken_at: datetime | None
    estimates: tuple[Estimate, ...]


def preview(
    definitions: Definitions,
    stored: Snapshot,
    has_run: frozenset[str],
    settings: Settings | None = None,
    statistics: Statistics | None = None,
) -> Preview:
    """Compares definitions with the registry. `has_run`: the entities that some job has run with; `settings`: of a job
    whose events are priced, None for no prices; `statistics`: of the state, if they were taken.

    Raises RegistryError where the registry would refuse, NeedsBackfills with what is known of them, DefinitionError where the
    products do not go together with those that it holds.
    """
    wanted = registry_plan(definitions)
    found = known(statistics) if statistics else None
    try:
        change = edit(stored, wanted, has_run)
    except NeedsBackfill as refusal:
        raise NeedsBackfills(refusal, tuple(backfills(stored, wanted, has_run, found))) from None
    after = edited(stored, change)
    plan = plan_of(after)
    slots = tuple(_slots(after, change, wanted, _together(plan)))
    priced = costs(plan, settings) if settings else ()
    return Preview(
        version=stored.version,
        changes=change.says,
        kept=tuple(_kept(stored, definitions)),
        slots=slots,
        free={entity.name: after.slots - len(after.of(entity.name)) for entity in after.entities},
        warnings=(*_warnings(plan, slots), *(size_warnings(plan, found) if found else ())),
        costs=priced,
        taken_at=statistics.taken_at if statistics else None,
        estimates=estimates(plan, priced, found) if found and priced else (),
    )


def _kept(stored: Snapshot, definitions: Definitions) -> Iterator[str]:
    yield from (f"entity {one.name}" for one in stored.entities if one.name not in definitions.entities)
    yield from (f"product {one.name}" for one in stored.products if one.name not in definitions.products)


def _slots(
    after: Snapshot, change: Edit, wanted: Wanted, together: Mapping[tuple[str, int], frozenset[str]]
) -> Iterator[Slot]:
    asked = {path for paths in wanted.paths for path in (paths.down, paths.up)}
    board = board_json(after)["entities"]
    served = {(e["entity"], one["slot"]): tuple(one["serves"]) for e in board for one in e["assignments"]}
    for one in after.assignments:
        serves = served[one.entity, one.slot]
        yield Slot(
            entity=one.entity,
            slot=one.slot,
            columns=one.columns,
            state=_state(one, change, asked, bool(serves)),
            serves=serves,
            together=tuple(sorted(together.get((one.entity, one.slot), frozenset()) - {one.entity})),
        )


def _state(one: Assignment, change: Edit, asked: Collection[object], served: bool) -> str:
    if one in change.assignments:
        return "new"
    if Need(entity=one.entity, columns=one.columns) in asked:
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


def _warnings(plan: Plan, slots: tuple[Slot, ...]) -> Iterator[str]:
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
        if all(columns[column].name == "bool" for column in slot.columns):
            what = f"GSI_{slot.slot} of {slot.entity} holds {'#'.join(slot.columns)}, which has two values"
            yield f"{what}: each is one key of the index, and a key takes about 1,000 writes a second; join on more columns"
        if slot.state == "unused":
            yield f"GSI_{slot.slot} of {slot.entity} is unused: no join asks for it, and each write of a row pays for it"
    for name in plan.entities:
        if name not in plan.places:
            yield f"entity {name}: no product reads it, and every change of it is stored; remove it, or use it"
