"""Measure the speed and the memory of the steps alone, as `statestore try` runs them: in this process, without Spark.

Promises: the figures include decoding, but not reading the file. Every repetition starts with an empty store. The garbage
collector does not look at the benchmark's own records. Does not: measure DynamoDB or Kafka; the store is a map in memory.
"""

import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, process_time

from benchmarks.inputs.history import generate_history
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import MemoryOutbox, Trial, batches
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import ENTITIES, load, read_directory
from processor.tools.demo.github import RecordedLine
from processor.values import canonical_json
from processor.values.entity import KeepChoice
from processor.values.record import Message, Record
from statestore.memory import MemoryStore

EXAMPLE = Path(__file__).parents[1] / "examples" / "github"
BATCH = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One repetition over `events` events: seconds of the clock and of the CPU for the batches, CPU seconds for the settle work
    after them, those of `json.loads` and `json.dumps` for the same keys and values, and documents sent."""

    events: int
    wall: float
    cpu: float
    settling: float
    json: float
    documents: int

    @property
    def against_json(self) -> float:
        """How many times the CPU of `json` the steps with settling take."""
        return (self.cpu + self.settling) / self.json


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Memory of the process after `events` events: living blocks of Python's allocator, and MB of resident memory."""

    events: int
    blocks: int
    resident: float


@dataclass(slots=True)
class DiscardingOutbox(MemoryOutbox):
    """An outbox that stores no message, so that published messages use no memory."""

    sent: int = field(default=0)

    def send(self, message: Message) -> None:
        self.sent += 1


def demo_plan(keep: KeepChoice = "all") -> Plan:
    """The demo's plan: UserProfile over five tables."""
    texts = read_directory(EXAMPLE)
    return plan_alone(load(texts | {ENTITIES: f"keep: {keep}\n{texts[ENTITIES]}"}), Settings().slots)


def generate_records(events: int, users: int) -> list[Record]:
    """A generated history as records."""
    return number_records(generate_history(1, events, users))


def number_records(lines: Iterable[RecordedLine]) -> list[Record]:
    """Recorded lines as records. The offsets count the records of each topic."""
    offsets: dict[str, int] = {}
    records = []
    for line in lines:
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


def measure_speed(events: int, users: int, repetitions: int, *, consistent: bool = False) -> list[Speed]:
    """Repeats the same history this many times, each time in a new Trial. `consistent`: whether the store says that its indexes
    are never late."""
    records, compiled = generate_records(events, users), demo_plan()
    return [_run_once(records, compiled, consistent) for _ in range(repetitions)]


def measure_memory(events: int, users: int, passes: Sequence[int]) -> list[MemoryUse]:
    """The memory after each number of `passes` of one history.

    Each pass has the same changes at later offsets, so the table has the same rows at the end of each pass. Memory that
    grows from pass to pass is memory that the job still uses for events that it has processed.
    """
    trial = Trial(plan=demo_plan(), settings=Settings(), published=DiscardingOutbox(), rejects=DiscardingOutbox())
    records = generate_records(events, users)
    found = []
    for number in range(1, max(passes) + 1):
        for chunk in batches(_later(records, (number - 1) * events), BATCH):
            trial.batch(chunk)
            trial.background_work()
        if number in passes:
            trial.finish()
            gc.collect()
            found.append(MemoryUse(events=number * events, blocks=sys.getallocatedblocks(), resident=resident_memory()))
    return found


def _run_once(records: list[Record], compiled: Plan, consistent: bool) -> Speed:
    settings = Settings()
    trial = Trial(plan=compiled, settings=settings, other_store=MemoryStore(settings.slots, consistent=consistent))
    gc.collect()
    tune_garbage_collector()
    wall = cpu = settling = 0.0
    for chunk in batches(records, BATCH):
        began = perf_counter(), process_time()
        trial.batch(chunk)
        wall, cpu = wall + perf_counter() - began[0], cpu + process_time() - began[1]
        settling -= process_time()
        trial.background_work()
        settling += process_time()
    settling -= process_time()
    trial.finish()
    settling += process_time()
    documents = len(trial.published.messages)
    return Speed(
        events=len(records), wall=wall, cpu=cpu, settling=settling, json=_json_seconds(records), documents=documents
    )


def _json_seconds(records: list[Record]) -> float:
    """CPU seconds that parsing and printing all keys and values takes."""
    began = process_time()
    for record in records:
        json.dumps(json.loads(record.key or b"null"))
        json.dumps(json.loads(record.value or b"null"))
    return process_time() - began


def _later(records: list[Record], by: int) -> Iterator[Record]:
    return (replace(record, offset=record.offset + by) for record in records)


def resident_memory() -> float:
    """Resident memory of this process in MB. Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
