"""Simulates dead letters that an operator repairs and replays: some changes have text in a column that is declared as a number.

Each is a dead letter. Then the operator declares the column as text, and replays some dead letters, at any moment of the run.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

from processor.engine.plan.plan import Plan
from processor.engine.protocol.replays import PARTITION, ReplayReport, ended_replays, replay_key
from processor.values.dead_letters import DeadLetter, rejected_record
from processor.values.entity import ColumnType
from processor.values.record import Record
from tests.simulator.history import Event
from tests.simulator.run import Simulation
from tests.simulator.shapes import SHAPES, Shape

ODD = "odd"
"""The name of the column. No product reads it."""


class ReplaySimulation(Simulation):
    """A run with repairable dead letters. At the end all of them are replayed."""

    __slots__ = ()

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        rng = Random(f"{seed} mending")  # another text would change every recorded history
        return [e if e.row is None or rng.random() < 0.7 else replace(e, row={**e.row, ODD: "text"}) for e in events]

    @staticmethod
    def is_repairable(record: Record) -> bool:
        return f'"{ODD}"'.encode() in (record.value or b"")

    def _act(self) -> bool:
        if not self.facts["replays"]:
            self._declare(as_text=False)
        job, rng = self.job, self.world.rng
        if job is not None and (letters := self._letters_to_replay()):
            is_idle = not (self.has_input or job.driver.pending)
            if rng.random() < 0.2 or is_idle:
                self._replay(rng.sample(letters, rng.randint(1, len(letters))))
                return True
        return super()._act()

    def _replay(self, letters: Sequence[DeadLetter]) -> None:
        """Does the work of `statestore dead-letters replay`: a separate run, with the column declared as text."""
        self.end_job()
        self.facts["replays"] += 1
        self._declare(as_text=True)
        self._start()
        job = self.job
        assert job is not None
        reports: list[list[ReplayReport]] = []
        self._run_driver(job, lambda job: reports.append(job.driver.replay(letters)))
        while job.driver.pending:
            self._run_background_work(job)
        if not self._breaks_off():
            self._run_driver(job, lambda job: job.driver.end_replays(reports[0]))
        self.end_job()

    def _declare(self, *, as_text: bool) -> None:
        self.shape = shape_with_odd_column(self.shape.name, as_text=as_text)

    def _breaks_off(self) -> bool:
        """Whether the operator stops the replay before it records its end."""
        return False

    def _letters_to_replay(self) -> list[DeadLetter]:
        """The repairable dead letters that are not yet replayed."""
        ended = ended_replays(self.world.table.partition(PARTITION))
        return [one for one in self._repairable_letters() if replay_key(one.rejected.record) not in ended]

    def _repairable_letters(self) -> list[DeadLetter]:
        """The repairable dead letters, in the order of their positions."""
        rejected = map(rejected_record, self.world.dead_letters)
        found = {replay_key(r.record): r for r in rejected if self.is_repairable(r.record)}
        return [DeadLetter(rejected=r, kept_since=self.world.now) for _, r in sorted(found.items())]


@cache
def shape_with_odd_column(name: str, *, as_text: bool) -> Shape:
    """The shape with the odd column in every entity of its plan, declared as text or as a number."""
    shape = copy.copy(SHAPES[name])
    object.__setattr__(shape, "plan", with_odd_column(shape.plan, as_text=as_text))
    return shape


def with_odd_column(plan: Plan, *, as_text: bool) -> Plan:
    """The plan with the odd column in every entity."""
    column = ColumnType(name="string" if as_text else "int")
    entities = {}
    for entity, planned in plan.entities.items():
        wider = replace(planned.entity, columns={**planned.entity.columns, ODD: column})
        entities[entity] = replace(planned, entity=wider, declared=(*planned.declared, ODD))
    return replace(plan, entities=entities)
