"""What Spark chooses for a micro-batch: where it ends in each partition, and which partitions a task reads."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from processor.job.run.source import OffsetRanges
from processor.values.record import Record
from tests.simulator.history import Partition

if TYPE_CHECKING:
    from tests.simulator.run import Simulation


def draw_ends(run: "Simulation", offsets: Mapping[Partition, int]) -> dict[Partition, int]:
    """Where the next batch ends in each partition."""
    r, conditions = run.world.rng, run.world.conditions
    most = conditions.batch_records
    if not conditions.source_order:
        return {p: min(run.available[p], o + r.randint(0, most)) for p, o in offsets.items()}
    ends, seen, room = dict(offsets), Counter[Partition](), r.randint(1, most)
    for p in run.source_order():
        seen[p] += 1
        if offsets[p] < seen[p] <= run.available[p] and room:
            ends[p], room = seen[p], room - 1
    return ends


def draw_tasks(run: "Simulation", ranges: OffsetRanges) -> list[list[Record]]:
    """The records of these ranges by task. A task reads a Kafka partition as a whole."""
    tasks: dict[int, list[Record]] = {}
    for i, (p, (start, end)) in enumerate(sorted(ranges.ranges.items())):
        task = i if run.world.rng.random() < 0.5 else 0
        tasks.setdefault(task, []).extend(run.logs[p][start:end])
    return list(tasks.values())
