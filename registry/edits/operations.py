"""The edits of an operator other than an apply, with the errors that refuse them, and the next steps of the running job. Pure.

An operator pauses, publishes again, removes, retires and moves a slot, adds slots. `Registry.operate` makes the edit.

`advance` is the next step of assignments, waiting products and retracted products. Each step is one registry version, which the
job applies before the next step (`registry.model.NEXT`).

1. A new slot becomes written, and the job fills it in stored rows. A slot that is full serves.
2. A waiting product goes live once all its slots serve, and each row of its entities has them.
3. A retracted product goes once all its documents are tombstones, and a retiring slot once nothing refers to it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from registry.edits.edit import Edit, edited, find_product, finish, next_version, served_joins
from registry.errors import NoAssignment, NoProduct, RegistryError, slot_list
from registry.fields import shown_fields
from registry.model import (
    FIRST_ORDERED,
    MAX_SLOTS,
    AssignedPath,
    Assignment,
    AssignmentState,
    Index,
    JoinAccess,
    ProductEntry,
    Snapshot,
    may_follow,
    reads,
)


class ProductPaused(RegistryError):
    """The product is paused, so it cannot publish tombstones. `pause`: who paused it, when and why, if the history knows."""

    def __init__(self, name: str, pause: str = "") -> None:
        super().__init__(
            f"product {name} is paused{pause and f' ({pause})'}, so the job publishes none of its tombstones: end the pause by "
            f"`statestore resume {name} --why REASON`, or remove it without --tombstones, and its documents stay"
        )
        self.name = name


class NoTopic(RegistryError):
    """No entity of the registry reads this topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"no entity of the registry reads topic {topic}")
        self.topic = topic


class SlotUsed(RegistryError):
    """Joins of products use the slot, so it cannot retire."""

    def __init__(self, assignment: Assignment, products: Sequence[str]) -> None:
        super().__init__(
            f"entity {assignment.entity}: {slot_list([assignment])} cannot retire: joins of product {' and '.join(products)} use "
            "it; change or remove these first"
        )
        self.products = tuple(products)


class NoMove(RegistryError):
    """The registry cannot move what a slot holds to the other slot."""

    def __init__(self, assignment: Assignment, target: int, reason: str) -> None:
        super().__init__(f"entity {assignment.entity}: {slot_list([assignment])} cannot move to GSI_{target}: {reason}")


class NoMoreSlots(RegistryError):
    """The registry cannot get this number of slots."""

    def __init__(self, stored: int, slots: int) -> None:
        cure = f"give a number from {stored + 1} to {MAX_SLOTS}" if stored < MAX_SLOTS else "a table has no more"
        super().__init__(f"the registry has {stored} slots, and cannot have {slots}: slots never go; {cure}")


def pause(stored: Snapshot, name: str | None, *, paused: bool) -> Edit:
    """Pauses or resumes a product, or all work for None. Raises NoProduct."""
    if name is None:
        return finish(stored, Edit(paused=paused if stored.paused != paused else None))
    live, waiting = _product(stored, name)
    return finish(stored, Edit(products=_switched(live, paused), waiting=_switched(waiting, paused)))


def pause_topic(stored: Snapshot, topic: str, *, paused: bool) -> Edit:
    """Pauses or resumes the reading of a topic. Raises NoTopic when no entity reads it; one that is paused can always resume."""
    if topic not in stored.paused_topics and all(one.topic != topic for one in stored.entities):
        raise NoTopic(topic)
    topics = {*stored.paused_topics, topic} if paused else {*stored.paused_topics} - {topic}
    same = topics == {*stored.paused_topics}
    return finish(stored, Edit(paused_topics=None if same else tuple(sorted(topics))))


def republish(stored: Snapshot, name: str) -> Edit:
    """The product waits as its next version, which publishes every document again. Changes nothing if a version waits already.
    Raises NoProduct."""
    live, waiting = _product(stored, name)
    if live is None or waiting:
        return Edit()
    return finish(stored, Edit(waiting=(replace(live, version=next_version(stored, name), retracted=False),)))


def remove(stored: Snapshot, name: str, *, tombstones: bool) -> Edit:
    """Removes a product: at once, or with `tombstones` once the job has replaced each of its documents. A product that only
    waits goes at once.

    Raises:
        NoProduct: there is none of this name.
        ProductPaused: a paused product publishes nothing, and no tombstones either.
    """
    live, waiting = _product(stored, name)
    if live and live.paused and tombstones:
        raise ProductPaused(name)
    change = Edit(withdrawn=(name,) if waiting else ())
    if live and not tombstones:
        change = replace(change, removed=(name,))
    elif live and not live.retracted:
        retracted = replace(live, version=next_version(stored, name), retracted=True)
        change = replace(change, products=(retracted,))
    return finish(stored, change)


def retire(stored: Snapshot, entity: str, slot: int) -> Edit:
    """Gives an assignment up. The job then frees the slot; a planned assignment goes at once. Changes nothing if it retires
    already.

    Raises:
        NoAssignment: the slot is free.
        SlotUsed: joins of products use it.
    """
    found = _held(stored, entity, slot)
    used = {access.join for access in stored.joins if found in access.paths()}
    users = sorted({one.name for one in (*stored.products, *stored.waiting) if used.intersection(one.joins)})
    if users:
        raise SlotUsed(found, users)
    if may_follow(found.state, AssignmentState.RETIRING):
        return finish(stored, Edit(assignments=(replace(found, state=AssignmentState.RETIRING),)))
    return finish(stored, Edit(freed=(found,) if found.state is AssignmentState.PLANNED else ()))


def move(stored: Snapshot, entity: str, slot: int, target: int) -> Edit:
    """Plans a second assignment of the same columns in a free slot. When it is full, the job moves the joins to it, and the
    former one retires (`registry.edits.operations`).

    Raises:
        NoAssignment: the slot is free.
        NoMove: it does not serve, its columns move already, or the other slot is not free.
    """
    found = _held(stored, entity, slot)
    others = {one.slot: one for one in stored.assignments_of(entity) if one.slot != slot}
    if not reads(found.state):
        raise NoMove(found, target, f"it is {found.state}, and only a slot that serves moves")
    if target in others or target == slot:
        raise NoMove(
            found, target, f"that slot holds {shown_fields(others.get(target, found).columns)}; choose a free one"
        )
    if not 1 <= target <= stored.slots:
        raise NoMove(found, target, f"the table has GSI_1 to GSI_{stored.slots}")
    if found.index.ordered and target < FIRST_ORDERED:
        raise NoMove(found, target, f"it has an order, which only GSI_{FIRST_ORDERED} and above can have")
    for one in others.values():
        if one.columns == found.columns and one.state is not AssignmentState.RETIRING:
            raise NoMove(found, target, f"it moves to GSI_{one.slot} already; `statestore retire` ends that move")
    return finish(stored, Edit(assignments=(replace(found, slot=target, state=AssignmentState.PLANNED),)))


def add_slots(stored: Snapshot, slots: int) -> Edit:
    """Raises the number of slots, once the table has their indexes. Changes nothing if the registry has that number. Raises
    NoMoreSlots."""
    if not stored.slots <= slots <= MAX_SLOTS:
        raise NoMoreSlots(stored.slots, slots)
    return finish(stored, Edit(slots=tuple(range(stored.slots + 1, slots + 1))))


def _held(stored: Snapshot, entity: str, slot: int) -> Assignment:
    """The assignment of a slot. Raises NoAssignment."""
    for one in stored.assignments_of(entity):
        if one.slot == slot:
            return one
    raise NoAssignment(entity, slot)


def _product(stored: Snapshot, name: str) -> tuple[ProductEntry | None, ProductEntry | None]:
    """The live and the waiting entry of a product."""
    found = find_product(stored.products, name), find_product(stored.waiting, name)
    if found == (None, None):
        raise NoProduct(name)
    return found


def _switched(product: ProductEntry | None, paused: bool) -> tuple[ProductEntry, ...]:
    return (replace(product, paused=paused),) if product and product.paused != paused else ()


WHY = "the job's next step"
"""The reason of the edits of `advance` in the history."""


def advance(stored: Snapshot, *, proven: Collection[str], published: Collection[str]) -> Edit:
    """The next step of each assignment and product that may take one.

    Args:
        stored: the registry, which the job has applied.
        proven: the entities of which each row has the layout of `stored`, and is open or shown by the indexes.
        published: the live products of which the job has published every root since their version began.
    """
    used = {path for access in stored.joins for path in access.paths()}
    stepped = tuple(_next_states(stored, proven))
    change = Edit(
        assignments=stepped,
        freed=tuple(one for one in stored.assignments if one.state is AssignmentState.RETIRING and one not in used),
        joins=tuple(_moved(stored, stepped)),
    )
    served = served_joins(edited(stored, finish(stored, change)).joins)
    live = tuple(one for one in stored.waiting if one.entities() <= {*proven} and served.issuperset(one.joins))
    names = [one.name for one in live]
    gone = [one.name for one in stored.products if one.retracted and one.name in published and one.name not in names]
    return finish(stored, replace(change, products=live, withdrawn=tuple(names), removed=tuple(gone)))


def completed(stored: Snapshot) -> Snapshot:
    """The registry after all next steps that walks make possible: nothing waits."""
    entities = [one.name for one in stored.entities]
    while (change := advance(stored, proven=entities, published=())).changes:
        stored = edited(stored, change)
    return stored


def _next_states(stored: Snapshot, proven: Collection[str]) -> Iterator[Assignment]:
    """The assignments that change their state. Of several with the same columns one serves: the next one takes its place."""
    serving = {one.index: one for one in stored.assignments if reads(one.state)}
    replaced: set[Index] = set()
    for one in stored.assignments:
        match one.state:
            case AssignmentState.PLANNED:
                yield replace(one, state=AssignmentState.WRITING)
            case AssignmentState.WRITING:
                yield replace(one, state=AssignmentState.BACKFILLING)
            case AssignmentState.BACKFILLING if one.entity in proven and one.index not in replaced:
                replaced.add(one.index)
                if former := serving.get(one.index):
                    yield replace(former, state=AssignmentState.RETIRING)
                yield replace(one, state=AssignmentState.SERVING)


def _moved(stored: Snapshot, stepped: Collection[Assignment]) -> Iterator[JoinAccess[AssignedPath]]:
    """The joins with the slots that begin to serve in place of slots that retire."""
    serving = {one.index: one for one in stepped if reads(one.state)}
    retiring = {(one.entity, one.slot) for one in stepped if one.state is AssignmentState.RETIRING}

    def now(path: AssignedPath) -> AssignedPath:
        if isinstance(path, Assignment) and (path.entity, path.slot) in retiring:
            return serving[path.index]
        return path

    for access in stored.joins:
        yield access.map(now)
