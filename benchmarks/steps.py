"""The steps alone, as `statestore try` runs them: how fast, and what they hold; in this process, without Spark.

Promises: decoding is measured, reading the file is not; every repetition starts with an empty store; the benchmark's own
records are out of the sight of the garbage collector. Does not: measure DynamoDB or Kafka; the store is a map in memory.
"""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.history import generate
from processor.definitions.load import load, read_directory
from processor.lockstep import calm_collector
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.plan import Plan
from processor.model.step import Message
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import MemoryOutbox, Trial, batches

EXAMPLE = Path(__file__).parents[1] / "examples" / "github"
BATCH = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One repetition over `events` events: seconds of the clock and of the CPU for the batches, CPU seconds for the settle work
    after them, and documents sent."""

    events: int
    wall: float
    cpu: float
    settling: float
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the process holds after `events` events: living blocks of Python's allocator, and MB of resident memory."""

    events: int
    blocks: int
    resident: float


@dataclass(slots=True)
class Discard(MemoryOutbox):
    """An outbox that forgets: what was published is no memory of the job."""

    sent: int = field(default=0)

    def send(self, message: Message) -> None:
        self.sent += 1


def plan() -> Plan:
    """The demo's plan: UserProfile over five tables."""
    return plan_alone(load(read_directory(EXAMPLE)), Settings().slots)


def history(events: int, users: int) -> list[Record]:
    """The generated history as records; each line as one of a recorded topic, offsets counted by topic."""
    offsets: dict[str, int] = {}
    records = []
    for line in generate(1, events, users):
        offset = offsets[line["topic"]] = offsets.get(line["topic"], -1) + 1
        records.append(
            Record(
                topic=line["topic"],
                partition=line["partition"],
                offset=offset,
                timestamp=line["timestamp"],
                key=canonical_json.encode(line["key"]),
                value=None if line["value"] is None else canonical_json.encode(line["value"]),
            )
        )
    return records


def speed(events: int, users: int, repetitions: int) -> list[Speed]:
    """So many repetitions of the same history, each in a new Trial."""
    records, compiled = history(events, users), plan()
    return [_once(records, compiled) for _ in range(repetitions)]


def held(events: int, users: int, passes: Sequence[int]) -> list[Held]:
    """What is held after so many `passes` of one history. Every pass tells the same changes at later offsets, so the table ends
    each one with the same rows: what grows from pass to pass is what the job keeps of events that it has worked off."""
    trial = Trial(plan=plan(), settings=Settings(), published=Discard(), rejects=Discard())
    records = history(events, users)
    found = []
    for number in range(1, max(passes) + 1):
        for chunk in batches(_later(records, (number - 1) * events), BATCH):
            trial.batch(chunk)
            trial.settle()
        if number in passes:
            trial.finish()
            gc.collect()
            found.append(Held(events=number * events, blocks=sys.getallocatedblocks(), resident=resident()))
    return found


def _once(records: list[Record], compiled: Plan) -> Speed:
    trial = Trial(plan=compiled, settings=Settings())
    gc.collect()
    calm_collector()
    wall = cpu = settling = 0.0
    for chunk in batches(records, BATCH):
        began = perf_counter(), process_time()
        trial.batch(chunk)
        wall, cpu = wall + perf_counter() - began[0], cpu + process_time() - began[1]
        settling -= process_time()
        trial.settle()
        settling += process_time()
    settling -= process_time()
    trial.finish()
    settling += process_time()
    documents = len(trial.published.messages)
    return Speed(events=len(records), wall=wall, cpu=cpu, settling=settling, documents=documents)


def _later(records: list[Record], by: int) -> Iterator[Record]:
    return (replace(record, offset=record.offset + by) for record in records)


def resident() -> float:
    """Resident memory of this process in MB; of Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
