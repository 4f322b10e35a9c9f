"""Histories of edits written by hand: each step of the operators, of the job and of its zombies, in order.

A script is a text of steps, separated by semicolons:

    apply PRODUCT N          an operator gives the product its content N (`tests.simulator.edit_shapes`)
    topic PRODUCT TOPIC      an operator gives the product another topic
    republish PRODUCT        an operator publishes it again
    remove PRODUCT           an operator removes it, with tombstones
    leave PRODUCT            an operator removes it, and its documents stay
    move ENTITY COLUMN       an operator moves the slot of this column to the next free slot
    retire ENTITY COLUMN     an operator retires the slot of this column
    records N                the source has produced the first N changes of the history
    fault                    the next request that fits the conditions has a fault
    work                     one turn of background work
    batch                    one batch
    quiet                    batches and background work until none remains
    zombies                  all zombies continue to their ends
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.edits.operations import move, republish, retire
from tests.simulator.edit_shapes import CONTENTS, definitions_of
from tests.simulator.history import partition_of
from tests.simulator.registry_edits import EditSimulation, shape_with
from tests.simulator.run import Simulation

STEPS = {
    "a fill wakes after a newer change": (
        "apply profile 0; records 3; quiet; apply fans 0; fault; quiet; records 4; quiet; zombies; records 5; quiet"
    ),
    "a publication wakes after a newer document": (
        "apply profile 0; records 2; quiet; republish profile; fault; quiet; records 3; quiet; zombies; records 4; quiet"
    ),
    "a product goes during its first batch": "apply profile 0; remove profile; records 2; batch; quiet",
    "a step wakes during a move": (
        "apply profile 0; records 3; quiet; move star username; fault; work; zombies; records 4; batch; quiet"
    ),
    "a star is deleted while its slot moves": (
        "apply profile 0; records 2; quiet; move star username; work; work; work; records 3; batch; quiet; records 4; batch; "
        "work; records 5; batch; work; records 6; batch; work; records 7; batch; work; records 8; quiet"
    ),
    "a slot goes while a change is open": (
        "apply profile 0; records 1; batch; leave profile; retire user username; work; work; records 2; batch; quiet"
    ),
    "a user goes while the product has another topic": (
        "apply profile 0; records 1; quiet; topic profile other; quiet; records 2; quiet; topic profile profile; quiet"
    ),
    "a publication reads by a freed slot": (
        "apply profile 0; records 2; quiet; fault; records 3; quiet; move star username; quiet; records 4; quiet; zombies; quiet"
    ),
    "a product comes after another one that went": (
        "apply profile 0; records 2; quiet; leave profile; apply second 0; quiet"
    ),
    "a product gets the topic of one that went": (
        "apply profile 0; records 4; quiet; apply second 0; quiet; leave profile; topic second profile; quiet; records 5; quiet"
    ),
    "a message of a second product is lost": "apply profile 0; records 2; quiet; apply second 0; fault; quiet",
    "two products change, and then one of them": (
        "apply profile 0; apply second 6; records 1; quiet; fault; records 2; batch; records 4; quiet; zombies; records 5; quiet"
    ),
    "two products of two users": "apply profile 0; apply second 0; records 4; quiet",
    "a star changes that two products show": "apply profile 0; apply second 2; records 2; quiet; records 3; quiet",
}
"""The steps of the scripts of `tests.simulator.scripted_histories` that have edits."""


@dataclass(kw_only=True)
class ScriptedEditSimulation(EditSimulation):
    """A run of a script. `steps`: those that follow."""

    steps: list[str] = field(default_factory=list)
    catalogue: Mapping[str, Sequence[Mapping[str, Any]]] = field(
        default_factory=lambda: {**CONTENTS, "second": CONTENTS["profile"]}
    )

    def run(self) -> None:
        self.steps = [step.strip() for step in STEPS[self.world.conditions.script or ""].split(";")]
        self._produce(0)
        self._do(*self.steps.pop(0).split())
        Simulation.run(self)
        self.problem = self.problem or self._old_version()

    def _act(self) -> bool:
        if self.job is None:
            self._start()
        elif self.steps[0] == "quiet" and self._work_remains():
            self._run_batch(self.job) if self.has_input else self._run_background_work(self.job)
        else:
            self._do(*self.steps.pop(0).split())
        self.shape = shape_with(definitions_of(self.world.registry.snapshot.products))
        self.steps = self.steps or ["quiet"]
        return self._work_remains() or self.steps != ["quiet"]

    def _work_remains(self) -> bool:
        job = self.job
        if job is None or job.follower is None:
            return True
        return self.has_input or job.pending or job.follower.snapshot != self.world.registry.snapshot

    def _do(self, verb: str, name: str = "", value: str = "") -> None:
        world, job = self.world, self.job
        if verb == "apply":
            self._apply({name: int(value)})
        elif verb == "topic":
            self._apply({name: self.contents[name]}, {name: value})
        elif verb == "republish":
            self._change(lambda stored: republish(stored, name))
        elif verb in ("remove", "leave"):
            self._remove(name, tombstones=verb == "remove")
        elif verb in ("move", "retire"):
            slots = {one.columns: one.slot for one in world.registry.snapshot.assignments_of(name)}
            slot, free = slots[value,], max(slots.values()) + 1
            self._change(
                lambda stored: move(stored, name, slot, free) if verb == "move" else retire(stored, name, slot)
            )
        elif verb == "records":
            self._produce(int(name))
        elif verb == "fault":
            world.faults_left = 1
        elif verb == "zombies":
            assert world.zombies, "no actor was given up"
            world.finish_zombies()
        elif job is not None and verb == "work":
            self._run_background_work(job)
        elif job is not None and verb == "batch" and self.has_input:
            self._run_batch(job)

    def _produce(self, n: int) -> None:
        seen = Counter(partition_of(event, self.world.conditions.partitions) for event in self.events[:n])
        self.available = {partition: seen[partition] for partition in self.logs}
