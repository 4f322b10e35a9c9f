"""Simulates a connector that is killed: it sends again what came after its last stored position, and then continues.

The source sends its records while the job runs. The end of a transaction follows its last record, also where that is a copy.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from random import Random

from processor.job.run.job import Job
from processor.values.record import Record, TransactionEnd
from tests.simulator.history import Partition
from tests.simulator.partial_transactions import place_of
from tests.simulator.source_transactions import LateEnds, SentEnd, TransactionSimulation

RESTART_MS = 10_000
"""Between a kill and the next record, on Kafka's clock."""


def in_order(logs: Mapping[Partition, list[Record]]) -> list[Record]:
    """The records in the order of the source."""
    return list(merge(*logs.values(), key=lambda record: record.timestamp))


def sent_again(seed: int, records: Sequence[Record]) -> list[Record]:
    """What the connector sends, which is killed once or twice."""
    rng = Random(f"{seed} kills")
    sent: list[Record] = []
    restart, kills = 0, rng.randint(1, 2)
    for kill in range(kills + 1):
        end = rng.randint(restart, len(records)) if kill < kills else len(records)
        for record in records[restart:end]:
            sent.append(replace(record, timestamp=len(sent) + kill * RESTART_MS))
        restart = max(0, end - rng.randint(0, 8))
    return sent


class RepeatedSimulation(TransactionSimulation):
    """A run in which the connector sends records again. `sequence`: all that it sends."""

    __slots__ = ("sequence",)

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        found: dict[Partition, list[Record]] = {partition: [] for partition in logs}
        for record in sent_again(seed, in_order(TransactionSimulation.change_logs(seed, logs))):
            log = found[record.topic, record.partition]
            log.append(replace(record, offset=len(log)))
        return found

    def source_order(self) -> Iterable[Partition]:
        return ((record.topic, record.partition) for record in self.sequence)

    def run(self) -> None:
        self.sequence = in_order(self.logs)
        self.available = dict.fromkeys(self.logs, 0)
        self.facts["sent again"] = 1  # a row goes back, so a document may, at `at_most`
        TransactionSimulation.run(self)

    def copies_with(self, record: Record) -> Collection[int]:
        at = self.sequence.index(record)
        before = set(map(_source_place, self.sequence[:at]))
        if _source_place(record) not in before:
            return ()
        open_ones = {place_of(one)[0] for one in self.sequence if _source_place(one) not in before}
        return {place_of(one)[0] for one in self.sequence[at:]} - open_ones

    def feed(self) -> LateEnds:
        rng, feed = Random(f"{self.seed} ends"), LateEnds(self)
        first = {_source_place(record): record for record in reversed(self.sequence)}
        counts: dict[int, Counter[str]] = {}
        last: dict[int, Record] = {}
        for record in sorted(first.values(), key=lambda record: record.timestamp):
            number = place_of(record)[0]
            counts.setdefault(number, Counter())[f"s.{record.topic}"] += 1
            last[number] = record
        lost = {number for number in last if rng.random() < 1 / 30}
        delays = {number: rng.choice((0.0, 2.0, 10.0, 30.0)) for number in last}
        for sent, record in enumerate(self.sequence, start=1):
            number = place_of(record)[0]
            if _source_place(record) == _source_place(last[number]) and number not in lost:
                end = TransactionEnd(str(number), counts[number], record.timestamp / 1000)
                feed.sent.append(SentEnd(sent, delays[number], end))
        return feed

    def next_work(self, job: Job) -> float | None:
        due = TransactionSimulation.next_work(self, job)
        ends = [one.at for one in self.feed().sent if one.at > self.world.now]
        return None if due is None else min([due, *ends])

    def _act(self) -> bool:
        rng, job = self.world.rng, self.job
        rests = not (self.has_input or job is None or job.pending)
        if self.sent < len(self.sequence) and (rests or rng.random() < 0.5):
            for record in self.sequence[self.sent : self.sent + rng.randint(1, 4)]:
                self.available[record.topic, record.partition] += 1
        return TransactionSimulation._act(self)


def _source_place(record: Record) -> tuple[str, int, int]:
    return record.topic, record.partition, place_of(record)[1]
