"""The edits of an operator that the console offers: those of the verbs `move`, `retire`, `add-slots`, `pause`, `resume`,
`republish` and `remove --tombstones`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from processor.console.planned_edit import Operation
from processor.console.visit import Visit
from registry.edits import operations
from registry.model import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorEdit:
    """An edit. `title`: with the fields of the visit; `needs`: these fields; `operation`: the function of the registry with them;
    `to`: the page that shows its effect; `types`: the field whose value a person types, since the edit destroys it; `destroys`:
    the warning; `publishes`: whether the job sends a message for each root of the product."""

    title: str
    needs: tuple[str, ...]
    operation: Callable[[Visit], Operation]
    to: str
    types: str = ""
    destroys: str = ""
    publishes: bool = False

    def titled(self, visit: Visit) -> str:
        """The title of the page."""
        return self.title.format(**{name: visit.asked(name) for name in self.needs})


def _move(visit: Visit) -> Operation:
    return partial(
        operations.move, entity=visit.asked("entity"), slot=visit.number("slot"), target=visit.number("target")
    )


def _retire(visit: Visit) -> Operation:
    return partial(operations.retire, entity=visit.asked("entity"), slot=visit.number("slot"))


def _paused(*, paused: bool) -> Callable[[Visit], Operation]:
    return lambda visit: partial(operations.pause, name=visit.asked("product"), paused=paused)


EDITS: Final[Mapping[str, OperatorEdit]] = {
    "move": OperatorEdit(
        title="Move GSI_{slot} of {entity}", needs=("entity", "slot", "target"), operation=_move, to="/slots"
    ),
    "retire": OperatorEdit(
        title="Retire GSI_{slot} of {entity}", needs=("entity", "slot"), operation=_retire, to="/slots"
    ),
    "add-slots": OperatorEdit(
        title="Add slots up to GSI_{number}",
        needs=("number",),
        operation=lambda visit: partial(operations.add_slots, slots=visit.number("number")),
        to="/slots",
    ),
    "pause": OperatorEdit(title="Pause {product}", needs=("product",), operation=_paused(paused=True), to="/products"),
    "resume": OperatorEdit(
        title="Resume {product}", needs=("product",), operation=_paused(paused=False), to="/products"
    ),
    "republish": OperatorEdit(
        title="Publish all documents of {product} again",
        needs=("product",),
        operation=lambda visit: partial(operations.republish, name=visit.asked("product")),
        to="/products",
        publishes=True,
    ),
    "remove": OperatorEdit(
        title="Retire {product}",
        needs=("product",),
        operation=lambda visit: partial(operations.remove, name=visit.asked("product"), tombstones=True),
        to="/products",
        types="product",
        destroys="The job replaces every document of this product by a tombstone, then removes the product.",
        publishes=True,
    ),
}


def free_slots(stored: Snapshot, entity: str) -> list[int]:
    """The slots that hold nothing of an entity."""
    held = {one.slot for one in stored.assignments_of(entity)}
    return [slot for slot in range(1, stored.slots + 1) if slot not in held]
