"""Simulates an operator who repairs rows from the source while the job reads records that are older than the source.

Some records never arrive. At any moment the operator compares some stored rows with the source, which is ahead of the job, and
asks for repairs. At the end all rows that differ are repaired, until none does. A row whose last record arrived never differs
then: no repair may keep a record away, or come over a newer one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from processor.engine.plan.row_image import declared_row
from processor.engine.protocol.replays import letter_position
from processor.values.canonical_json import equal
from processor.values.dead_letters import REPAIR, DeadLetter, repair_record
from processor.values.record import Record, Rejected
from registry.model import LetterOutcome
from statestore import keys
from statestore.items import decode_version, version_of_item
from tests.simulator.history import Event, Partition, partition_of, tables_after
from tests.simulator.live_replays import LiveReplaySimulation
from tests.simulator.run import Simulation

LOST = b'{"op": "m", "source": {}}'
"""In place of a record that never arrives: a message that changes no row."""

MOST = 300
"""More repairs than any history needs."""


class SourceRepairSimulation(LiveReplaySimulation):
    """A run with lost records, and repairs by the running job. `letters`: of all repairs so far; `wrong`: what a repair broke."""

    __slots__ = ("letters", "wrong")

    letters: list[DeadLetter]
    wrong: str

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        return events

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        rng = Random(f"{seed} lost")
        return {p: [replace(r, value=LOST) if rng.random() < 0.3 else r for r in log] for p, log in logs.items()}

    def run(self) -> None:
        self.letters, self.wrong = [], ""
        super().run()
        self.problem = self.wrong or self.problem

    def _act(self) -> bool:
        job, rng = self.job, self.world.rng
        if job is None:
            return Simulation._act(self)
        waits = self.world.registry.next_letters(1)
        is_idle = not (self.has_input or job.pending or waits)
        if (is_idle or rng.random() < 0.15) and (wrong := list(self._wrong_rows())):
            everything = is_idle and self.available == {p: len(log) for p, log in self.logs.items()}
            if everything and (kept := next((sk for entity, sk, *_ in wrong if self._arrived(entity, sk)), None)):
                self.wrong = f"the last record of {kept} arrived, and its row differs from the source"
                return False
            if len(self.letters) > MOST:
                self.wrong = "repairs never end"
                return False
            self._ask(wrong if is_idle else rng.sample(wrong, rng.randint(1, len(wrong))))
            return True
        if waits and not (self.has_input or job.pending):
            self._run_background_work(job)
            return True
        return Simulation._act(self)

    def _wrong_rows(self) -> Iterator[tuple[str, str, Any, Any, str]]:
        """(entity, encoded key, key, row of the source, version of the stored row) of the rows that differ."""
        tables = tables_after(self.shape, self.events[: self._source_now()])
        shown = {(e.entity, keys.encode(list(e.key.values())) or ""): e.key for e in self.events}
        for (entity, sk), key in sorted(shown.items(), key=lambda one: one[0]):
            plan = self.shape.plan.entities[entity]
            item = self.world.table.get([plan.key(sk)]).get(plan.key(sk))
            stored = declared_row(item, plan) if item is not None else None
            row = tables[entity].get(tuple(key.values()))
            columns = stored.columns if stored is not None else None
            same = columns is None if row is None else columns is not None and _is_equal(columns, row)
            if not same:
                yield entity, sk, key, row, stored.version if stored is not None else ""

    def _source_now(self) -> int:
        """How many events the source has had: those that a batch has read at least, also one whose checkpoint is lost."""
        ends = self.checkpoint.offsets | (self.checkpoint.planned_ends or {})
        for event in self.events:
            plan = self.shape.plan.entities[event.entity]
            key = plan.key(keys.encode(list(event.key.values())) or "")
            for item in self.world.table.get([key]).values():
                partition = partition_of(event, self.world.conditions.partitions)
                epoch, _, offset = decode_version(version_of_item(item))
                ends[partition] = max(ends[partition], offset + 1 if epoch == 1 else 0)
        counts, read, sent = Counter[Partition](), 0, 0
        for number, event in enumerate(self.events, start=1):
            partition = partition_of(event, self.world.conditions.partitions)
            counts[partition] += 1
            read = number if counts[partition] <= ends[partition] else read
            sent = number if counts[partition] <= self.available[partition] else sent
        return self.world.rng.randint(read, sent)

    def _arrived(self, entity: str, sk: str) -> bool:
        """Whether the last record of a row arrived. A broken record changes nothing."""
        lost = True
        places = {p: iter(log) for p, log in self.logs.items()}
        for event in self.events:
            record = next(places[partition_of(event, self.world.conditions.partitions)])
            if event.entity == entity and not event.broken and keys.encode(list(event.key.values())) == sk:
                lost = record.value == LOST
        return not lost

    def _ask(self, wrong: Sequence[tuple[str, str, Any, Any, str]]) -> None:
        made: list[DeadLetter] = []
        for entity, _, key, row, seen in wrong:
            number = len(self.letters) + len(made) + 1
            record = repair_record(self.shape.plan.entities[entity].entity, key, row, seen, number)
            made.append(DeadLetter(rejected=Rejected(record=record, reason="", code=REPAIR), kept_since=self.world.now))
        if not self.letters:  # settling corrects the documents of a repair, which an undisturbed run never does
            self.end_job()
        self.letters += made
        self.facts["replays"] += len(made)
        self.world.registry.request_replay([letter_position(one.rejected.record) for one in made])

    def _repairable_letters(self) -> list[DeadLetter]:
        return self.letters

    def _older_rows(self, _: LetterOutcome) -> Iterator[str]:
        return iter(())


def _is_equal(columns: Any, row: Any) -> bool:
    return all(equal(columns.get(name), value) for name, value in row.items() if name in columns)
