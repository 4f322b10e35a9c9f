"""Dead letters that an operator mends, in the simulator: some changes carry text in a column that is declared as a number.

Each is a dead letter, until the definitions are widened and it is replayed: at any moment, with whatever else goes wrong.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

from processor.model.change import Record
from processor.model.entity import ColumnType
from processor.model.replays import PARTITION, Letter, Replayed, ended_replays, replay_key
from processor.rejects import rejected_record
from tests.simulator.history import Event
from tests.simulator.run import Simulation
from tests.simulator.shapes import SHAPES, Shape

ODD = "odd"
"""The column, which no product reads."""


class Mending(Simulation):
    """A run with dead letters that can be mended; in the end all of them are."""

    __slots__ = ()

    @staticmethod
    def history(seed: int, events: list[Event]) -> list[Event]:
        rng = Random(f"{seed} mending")
        return [e if e.row is None or rng.random() < 0.7 else replace(e, row={**e.row, ODD: "text"}) for e in events]

    @staticmethod
    def mendable(record: Record) -> bool:
        return f'"{ODD}"'.encode() in (record.value or b"")

    def _act(self) -> bool:
        if not self.facts["mended"]:
            self.shape = odd_shape(self.shape.name, mended=False)
        job, rng = self.job, self.world.rng
        if job is not None and (letters := self._waiting()):
            more = self.checkpoint.plan or any(o < self.limit[p] for p, o in self.checkpoint.pos.items())
            if rng.random() < 0.2 or not (more or job.rounds.pending):
                self._replay(rng.sample(letters, rng.randint(1, len(letters))))
                return True
        return super()._act()

    def _replay(self, letters: Sequence[Letter]) -> None:
        """`rejects replay`: a run of its own, by wider definitions."""
        self.end_job()
        self.facts["mended"] += 1
        self.shape = odd_shape(self.shape.name, mended=True)
        self._start()
        job = self.job
        assert job is not None
        replayed: list[list[Replayed]] = []
        self._turn(job, lambda job: replayed.append(job.rounds.replay(letters)))
        while job.rounds.pending:
            self._idle(job)
        self._turn(job, lambda job: job.rounds.end_replays(replayed[0]))
        self.end_job()

    def _waiting(self) -> list[Letter]:
        """The dead letters that can be mended, and are not yet replayed."""
        ended = ended_replays(self.world.table.partition(PARTITION))
        found = {replay_key(r.record): r for r in map(rejected_record, self.world.rejects) if self.mendable(r.record)}
        return [Letter(rejected=r, kept=self.world.now) for key, r in sorted(found.items()) if key not in ended]


@cache
def odd_shape(name: str, *, mended: bool) -> Shape:
    """The shape with the column in every entity of its plan."""
    shape = copy.copy(SHAPES[name])
    column = ColumnType(name="string" if mended else "int")
    entities = {}
    for entity, plan in shape.plan.entities.items():
        wider = replace(plan.entity, columns={**plan.entity.columns, ODD: column})
        entities[entity] = replace(plan, entity=wider, declared=(*plan.declared, ODD))
    object.__setattr__(shape, "plan", replace(shape.plan, entities=entities))
    return shape
