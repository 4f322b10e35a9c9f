"""The edits of an operator other than an apply: pause, publish again, remove a product, retire a slot. Pure."""

from dataclasses import replace

from registry.edited import Edit, find_product, next_version
from registry.errors import NoAssignment, NoProduct, SlotUsed
from registry.finish import finish
from registry.lifecycle import may_follow
from registry.model import AssignmentState, ProductEntry, Snapshot


def pause(stored: Snapshot, name: str | None, *, paused: bool) -> Edit:
    """Pauses or resumes a product, or all work for None. Raises NoProduct."""
    if name is None:
        return finish(stored, Edit(paused=paused if stored.paused != paused else None))
    live, waiting = _product(stored, name)
    return finish(stored, Edit(products=_switched(live, paused), waiting=_switched(waiting, paused)))


def republish(stored: Snapshot, name: str) -> Edit:
    """The product waits as its next version, which publishes every document again. Changes nothing if a version waits already.
    Raises NoProduct."""
    live, waiting = _product(stored, name)
    if live is None or waiting:
        return Edit()
    return finish(stored, Edit(waiting=(replace(live, version=next_version(stored, name), retracted=False),)))


def remove(stored: Snapshot, name: str, *, tombstones: bool) -> Edit:
    """Removes a product: at once, or with `tombstones` once the job has replaced each of its documents. A product that only
    waits goes at once. Raises NoProduct."""
    live, waiting = _product(stored, name)
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
    found = next((one for one in stored.assignments_of(entity) if one.slot == slot), None)
    if found is None:
        raise NoAssignment(entity, slot)
    used = {access.join for access in stored.joins if found in (access.down, access.up)}
    users = sorted({one.name for one in (*stored.products, *stored.waiting) if used.intersection(one.joins)})
    if users:
        raise SlotUsed(found, users)
    if may_follow(found.state, AssignmentState.RETIRING):
        return finish(stored, Edit(assignments=(replace(found, state=AssignmentState.RETIRING),)))
    return finish(stored, Edit(freed=(found,) if found.state is AssignmentState.PLANNED else ()))


def _product(stored: Snapshot, name: str) -> tuple[ProductEntry | None, ProductEntry | None]:
    """The live and the waiting entry of a product."""
    found = find_product(stored.products, name), find_product(stored.waiting, name)
    if found == (None, None):
        raise NoProduct(name)
    return found


def _switched(product: ProductEntry | None, paused: bool) -> tuple[ProductEntry, ...]:
    return (replace(product, paused=paused),) if product and product.paused != paused else ()
