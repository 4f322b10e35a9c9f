"""Simulates a table that goes back to an earlier moment, as when a standby without the last writes takes over.

The job ends right when it notices the loss and stops: an operator goes on then. The registry has of the run what the monitor
wrote, now and then.
"""

import copy
from typing import Any

from processor.engine.protocol import ledger
from processor.engine.protocol.ledger import read_run, run_key
from processor.errors import LostWrites
from registry.model import RunMark
from tests.simulator.run import Simulation
from tests.simulator.worlds import CONSISTENT

STATE = ("_items", "_partitions", "_indexes", "_replicas", "_pending", "_shown_at", "_late")
"""The attributes of the table that hold its content."""
OVERRIDES = {**CONSISTENT, "zombie_chance": 0, "checkpoint_loss_chance": 0, "late_events": False}
"""Only a store in Postgres has a standby."""


class LostWritesSimulation(Simulation):
    """A run whose table loses its last writes once."""

    __slots__ = ("_before", "_mark")

    _before: dict[str, Any]
    _mark: RunMark

    def run(self) -> None:
        self._before, self._mark = self._content(), RunMark(0, 0, -1)
        try:
            super().run()
        except LostWrites:
            self.facts["noticed"] += 1

    def _act(self) -> bool:
        rng, job = self.world.rng, self.job
        if job is not None and job.driver.rounds.run.through >= 0 and rng.random() < 0.5:
            self._mark = RunMark(job.lease.generation, job.lease.generation, job.driver.rounds.run.through)
        if not self.facts["lost"]:
            if self.starts and rng.random() < 0.15:
                self.facts["lost"] += 1
                for name, value in self._before.items():
                    setattr(self.world.table, name, value)
            elif rng.random() < 0.3:
                self._before = self._content()
        return super()._act()

    def _start(self) -> None:
        run = self._mark.run
        if run and ledger.lost_round(self._mark, read_run(run, self.world.table.get([run_key(run)]).get(run_key(run)))):
            raise LostWrites(run, self._mark.round)
        super()._start()

    def _content(self) -> dict[str, Any]:
        return copy.deepcopy({name: getattr(self.world.table, name) for name in STATE})
