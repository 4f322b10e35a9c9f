"""Simulates all at once: a source whose topics change, operators who erase rows, who repair and replay dead letters, and who edit
the registry, and products with gates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from processor.plan.plan import Plan
from processor.progress.erasures import Erasure
from processor.records.dead_letters import DeadLetter
from statestore.versions import encode_version
from tests.simulator import source_topics
from tests.simulator.erased_rows import CANARY, ErasedLettersSimulation
from tests.simulator.erased_rows import OVERRIDES as ERASING
from tests.simulator.gated_products import draw_gate
from tests.simulator.history import Event, Partition, Tables, tables_after
from tests.simulator.registry_edits import EditSimulation
from tests.simulator.replayed_dead_letters import with_odd_column
from tests.simulator.shapes import Row
from tests.simulator.source_topics import SourceSimulation

OVERRIDES = {**source_topics.OVERRIDES, **ERASING}
"""The conditions of such a run."""


class MixedSimulation(SourceSimulation, ErasedLettersSimulation):
    """A run over fixed products. `covered`: the numbers of the sent events from before an erasure of their row. `gated`: whether
    products have gates."""

    covered: set[int]
    gated: bool

    def run(self) -> None:
        rng = Random(f"{self.seed} mixed")
        self.gated, self.covered = rng.random() < 0.3, set()
        if rng.random() < 0.5:
            self.facts["erased"] = 3  # none follows
        super().run()

    def start_plan(self) -> Plan:
        return self.with_gates(super().start_plan())

    def with_gates(self, plan: Plan) -> Plan:
        if not self.gated:
            return plan
        products = {
            name: replace(one, product=replace(one.product, gate=draw_gate(Random(f"{self.seed} {name} gate"))))
            for name, one in plan.products.items()
        }
        return replace(plan, products=products)

    def source_tables(self) -> Tables:
        return tables_after(self.shape, [event for n, event in enumerate(self.sent) if n not in self.covered])

    def _again(self, row: Row | None) -> Row | None:
        return None if row is None else {**row, CANARY: f"canary of {len(self.sent)} again."}

    def _kept(self, partition: Partition) -> int:
        """An erasure knows its records by their offsets, so the broker loses none of those."""
        kept = max([super()._kept(partition), *(ends.get(partition, 0) for ends in self.erased.values())])
        return min(kept, len(self.logs[partition]))

    def _is_complete(self) -> bool:
        return not self._letters_to_replay() and self.broken_off is None

    def _start(self) -> None:
        super()._start()
        if self.job is not None:
            self.job.driver.rounds.incarnations = self.epochs.incarnations

    def _erasure(self, entity: str, key: tuple[Any, ...]) -> tuple[Erasure, dict[Partition, int]]:
        self.covered |= {n for n, e in enumerate(self.sent) if e.entity == entity and tuple(e.key.values()) == key}
        ends = {p: self.available[p] for p in self._partitions(entity)}
        new = {p: encode_version(self.epochs.of(topic, p, end), p, end) for (topic, p), end in ends.items()}
        return Erasure(new, ends={self._id_of(entity): {p: end for (_, p), end in ends.items()}}), ends

    def _positions(self) -> Iterator[tuple[Event, tuple[Partition, int]]]:
        return ((event, (("", 0), n)) for n, event in enumerate(self.sent))

    def _is_covered(self, event: Event, position: tuple[Partition, int]) -> bool:
        return position[1] in self.covered


@dataclass(kw_only=True)
class MixedEditSimulation(EditSimulation, MixedSimulation):
    """A run whose products operators edit. `as_text`: the operator has repaired the odd column. `alone`: the job
    runs for one command."""

    as_text: bool = False
    alone: bool = False

    def fit(self, plan: Plan) -> Plan:
        return self.with_gates(with_odd_column(plan, as_text=self.as_text))

    def _declare(self, *, as_text: bool) -> None:
        self.as_text = as_text

    def _is_complete(self) -> bool:
        return False

    def _start(self) -> None:
        super()._start()
        if self.alone and self.job is not None:
            self.job.steward = None

    @contextmanager
    def _command(self) -> Iterator[None]:
        self.alone = True
        try:
            yield
        finally:
            self.alone = False

    def _erase(self, entity: str, key: tuple[Any, ...]) -> None:
        with self._command():
            super()._erase(entity, key)

    def _replay(self, letters: Sequence[DeadLetter]) -> None:
        with self._command():
            super()._replay(letters)
