"""Simulates all at once: a source whose topics change, operators who erase rows, who repair and replay dead letters, and who edit
the registry, and products with gates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.protocol.erasures import Erasure
from processor.engine.rounds.round import PublishSetup
from processor.job.run import topics
from processor.values.dead_letters import DeadLetter
from processor.values.record import Message
from registry.edits.operations import move
from registry.errors import RegistryError
from statestore.items import encode_version
from tests.integration.product.products import ENTITIES
from tests.simulator import source_topics
from tests.simulator.actor import TableClient
from tests.simulator.edit_shapes import CONTENTS, drawn_contents, drawn_entities
from tests.simulator.erased_rows import CANARY, ErasedLettersSimulation
from tests.simulator.erased_rows import OVERRIDES as ERASING
from tests.simulator.gated_products import draw_gate
from tests.simulator.history import Event, Partition, Tables, tables_after
from tests.simulator.registry_edits import EditSimulation
from tests.simulator.replayed_dead_letters import with_odd_column
from tests.simulator.shapes import Row
from tests.simulator.source_topics import SourceSimulation
from tests.simulator.without.switch import replacing

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
        return row if row is None or CANARY not in row else {**row, CANARY: f"canary of {len(self.sent)} again."}

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

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        if events[0].entity in ENTITIES:  # some of these products show all columns, also those that no entity declares
            return events
        return ErasedLettersSimulation.change_events(seed, events)

    def run(self) -> None:
        if self._is_drawn:
            self.entities, self.catalogue = drawn_entities(self.shape.name), drawn_contents(self.shape.name)
        else:
            self.catalogue = {**CONTENTS, "second": CONTENTS["profile"]}
        with replacing((topics, "read_topic", lambda _: self._messages))():
            super().run()

    @property
    def _is_drawn(self) -> bool:
        return self.shape.name.startswith("drawn")

    def _may_be_erased(self, entity: str, key: tuple[Any, ...]) -> bool:
        """The certificate names products that are paused: the job publishes none of their tombstones."""
        paused = any(one.paused for one in self.world.registry.snapshot.products)
        return not paused and super()._may_be_erased(entity, key)

    def _edit(self) -> None:
        kind = self.rng.random()
        try:
            if kind < 0.15 and (assignments := self.world.registry.snapshot.assignments):
                slot, to = self.rng.choice(assignments), self.rng.randint(1, self.settings.slots)
                self.edits_left -= 1
                self._change(lambda stored: move(stored, slot.entity, slot.slot, to))
                self.facts["slots moved"] += 1
            elif kind < 0.3 and len(self.contents) > 1:
                self.edits_left -= 1
                self._take_topic(*self.rng.sample(sorted(self.contents), 2))
            else:
                super()._edit()
        except RegistryError as error:
            self.world.log(f"the registry refuses: {error}")

    def _take_topic(self, old: str, new: str) -> None:
        """A product goes, and another one gets its topic."""
        topic = self.topics.get(old, old)
        self._remove(old, tombstones=False)
        del self.contents[old]
        self.topics = {name: one for name, one in self.topics.items() if name != old}
        self._apply({new: self.contents[new]}, {new: topic})
        self.facts["topics taken"] += 1

    def prepare(self, plan: Plan) -> PublishSetup | None:
        store: Any = TableClient(self.world.actor)
        sequences = topics.earlier_sequences(self.settings, plan, store)
        return PublishSetup(earlier_sequences=sequences)

    def _messages(self, _servers: str, _kafka: object, topic: str) -> list[Message]:
        """The messages that a topic of a product has."""
        log = self.world.broker.log
        return self.world.actor.remember(lambda: [message for _, message in log if message.topic == topic])

    def fit(self, plan: Plan) -> Plan:
        world = self.world  # an actor remembers what it read, so a playback works by the same plan
        as_text = world.actor.remember(lambda: self.as_text) if world.actors else self.as_text
        return self.with_gates(plan if self._is_drawn else with_odd_column(plan, as_text=as_text))

    def _declare(self, *, as_text: bool) -> None:
        self.as_text = as_text

    def _is_complete(self) -> bool:
        return False

    def _start(self) -> None:
        super()._start()
        if self.alone and self.job is not None:
            self.job.follower = None

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
