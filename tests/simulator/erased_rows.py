"""Simulates an operator who erases rows at any moment of the run.

Each change has a canary: a value of its own, in a column that no entity declares. After an erasure the row's item is a bare
marker, and the ledger's entries of its root expire. At the end no item of the table has the canary of a change before an erasure,
and the documents are those of a source without these changes.

With dead letters, the broker keeps those of an erased row, and the operator replays them too.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from processor.engine.protocol.erasures import Erasure
from processor.engine.protocol.ledger import group_key, read_entries
from processor.engine.protocol.replays import PARTITION as REPLAYS
from processor.engine.protocol.replays import notes_of_row
from processor.engine.rounds.operators import Eraser
from processor.job.run.job import Job
from processor.values.record import Record
from statestore import keys
from statestore.items import encode_version, readable_attributes
from tests.simulator.history import Event, Partition, Tables, partition_of, tables_after
from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.run import Simulation

CANARY = "canary"
ErasedKey = tuple[str, tuple[Any, ...]]
OVERRIDES = {"unavailable_chance": 0.0}
"""The conditions of such a run. A value that the source does not send again after the erasure stays null."""
BARE = {"PK", "SK", "_v", "_indexed_v", "_deleted", "ttl", "_edges"}
"""The attributes of a bare marker, and the slots."""


class ErasingSimulation(Simulation):
    """A run in which an operator erases rows, and repeats an erasure that broke off. `erased`: the rows, each with the offset
    from which the records of its topic are new, by partition. `broken_off`: the row whose erasure has not ended. `remained`: what
    the first erasure left that left something."""

    erased: dict[ErasedKey, dict[Partition, int]]
    broken_off: ErasedKey | None
    remained: str | None

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        return [
            event if event.row is None else replace(event, row={**event.row, CANARY: f"canary {n}."})
            for n, event in enumerate(events)
        ]

    def run(self) -> None:
        self.erased, self.broken_off, self.remained = {}, None, None
        super().run()
        if self.problem is None:
            self.problem = self.remained or next(self._canaries(), None)

    def source_tables(self) -> Tables:
        counted = [event for event, position in self._positions() if not self._is_covered(event, position)]
        return tables_after(self.shape, counted)

    def is_left_out(self, record: Record) -> bool:
        key = tuple(json.loads(record.key or b"{}").values())
        ends = self.erased.get((self.entity_of(record.topic), key), {})
        return record.offset < ends.get((record.topic, record.partition), 0)

    def entity_of(self, topic: str) -> str:
        """The entity that reads a topic."""
        return topic

    def _act(self) -> bool:
        rng = self.world.rng
        if self.broken_off is None and self.job is not None and self.facts["erased"] < 3 and rng.random() < 0.1:
            event = rng.choice(self.events)
            self.broken_off = event.entity, tuple(event.key.values())
        if self.broken_off is not None and rng.random() < 0.5 and self._may_be_erased(*self.broken_off):
            self._erase(*self.broken_off)
            return True
        return super()._act() or (self.broken_off is not None and self._may_be_erased(*self.broken_off))

    def _may_be_erased(self, entity: str, key: tuple[Any, ...]) -> bool:
        """Where the table has no row, it has no marker either: then no task of an earlier run may still sleep, unless the store
        refuses its writes."""
        row = self.plan_now().entities[entity].key(keys.encode(key) or "")
        return self.world.conditions.consistent or not self.world.zombies or bool(self.world.table.get([row]))

    def _erase(self, entity: str, key: tuple[Any, ...]) -> None:
        """Does the work of `statestore erase`: a separate run."""
        self.end_job()
        self._start()
        job, sk = self.job, keys.encode(key)
        assert job is not None
        assert sk is not None
        self.facts["erased"] += 1
        erasure, ends = self._erasure(entity, key)
        self.world.log(f"erase {entity} {sk} before {ends}")

        def erase(job: Job) -> None:
            Eraser(job.driver).erase(entity, sk, erasure)

        self.erased[entity, key] = ends
        self._run_driver(job, erase)
        while job.driver.pending:
            self._run_background_work(job)

        def retire(job: Job) -> None:
            eraser = Eraser(job.driver)
            back = eraser.is_back(entity, sk)
            eraser.retire_entries(entity, sk)
            if not back and self.broken_off == (entity, key):  # a zombie may do this while another row is erased
                self.broken_off = None

        self._run_driver(job, retire)
        if self.broken_off is not None:  # the certificate asks the operator for the same command again
            self.end_job()
            return
        self.facts["erasures ended"] += 1
        self.remained = self.remained or next(self._remains(entity, sk), None)
        self.end_job()

    def _erasure(self, entity: str, key: tuple[Any, ...]) -> tuple[Erasure, dict[Partition, int]]:
        """The erasure of a row now: of all records that its topics have; and where these end."""
        ends = {partition: end for partition, end in self.available.items() if partition[0] == entity}
        return Erasure({p: encode_version(1, p, end) for (_, p), end in ends.items()}), ends

    def _remains(self, entity: str, sk: str) -> Iterator[str]:
        """What an erasure that has ended left of the row."""
        table, plan = self.world.table, self.plan_now()
        key = plan.entities[entity].key(sk)
        item = table.get([key]).get(key)
        if item is not None:
            slots = {f"GSI_{k}" for k in plan.entities[entity].slots}
            if more := readable_attributes(item).keys() - BARE - slots:
                yield f"{key}: the marker has {sorted(more)}"
        for name, product in plan.products.items():
            at = group_key(product.ledger, sk)
            entries = table.get([at]).get(at)
            shown = {number for number, entry in read_entries(entries) if entry.hash}
            kept = (
                entries is not None and "ttl" not in entries and not shown
            )  # an entry of a product that went keeps its item
            if product.product.roots == entity and (product.number in shown or kept):
                yield f"the ledger of {name} keeps {entries}"

        for note in notes_of_row(table.partition(REPLAYS), key):
            yield f"{note['SK']} keeps join keys of {key}"

    def _canaries(self) -> Iterator[str]:
        """The items that hold the canary of a change before an erasure."""
        items = {key: json.dumps(item, default=str) for key, item in self.world.table._items.items()}
        for event, position in self._positions():
            if event.row is not None and CANARY in event.row and self._is_covered(event, position):
                yield from (
                    f"{key} holds the {event.row[CANARY]}" for key, text in items.items() if event.row[CANARY] in text
                )

    def _positions(self) -> Iterator[tuple[Event, tuple[Partition, int]]]:
        """Each event with its partition and offset."""
        seen = Counter[Partition]()
        for event in self.events:
            partition = partition_of(event, self.world.conditions.partitions)
            yield event, (partition, seen[partition])
            seen[partition] += 1

    def _is_covered(self, event: Event, position: tuple[Partition, int]) -> bool:
        partition, offset = position
        return offset < self.erased.get((event.entity, tuple(event.key.values())), {}).get(partition, 0)


class ErasedLettersSimulation(ErasingSimulation, ReplaySimulation):
    """A run in which an operator erases rows, and replays dead letters after a repair, also those of erased rows. The operator
    stops some replays before their end."""

    __slots__ = ()

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        return ErasingSimulation.change_events(seed, ReplaySimulation.change_events(seed, events))

    def _breaks_off(self) -> bool:
        return self.world.rng.random() < 0.5
