"""Runs many seeds on all cores."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from math import sqrt
from multiprocessing import get_context
from random import Random
from typing import Any, Literal

from tests.simulator.chosen_moments import ChosenMoments, ChosenReplays
from tests.simulator.clocked_products import ClockedSimulation
from tests.simulator.mixed import OVERRIDES as MIXED
from tests.simulator.mixed import MixedEditSimulation, MixedSimulation
from tests.simulator.product_sets import ProductSetSimulation
from tests.simulator.routed_messages import RoutedEditSimulation, RoutedSimulation
from tests.simulator.run import Simulation
from tests.simulator.shared_topic import OVERRIDES as SHARED
from tests.simulator.shared_topic import SharedSourceSimulation, SharedTopicSimulation
from tests.simulator.shrink import shrink
from tests.simulator.simulate import simulate
from tests.simulator.source_topics import OVERRIDES as SOURCE
from tests.simulator.source_topics import SourceSimulation
from tests.simulator.worlds import chosen, chosen_replays, wide

CHUNK = 50
SEEDS = int(os.environ.get("STATESTORE_SEEDS", "10000"))
"""Random histories of the general test. Each other kind of histories runs a share of them."""
FEWEST = 0.9
"""A sample of which a test expects less may show none."""


def share(part: int) -> int:
    """This many histories of a kind: one in `part` of SEEDS, but one at least."""
    return max(1, SEEDS // part)


def at_least(expected: float) -> int:
    """The least count that a test asks of a sample: `expected`, which grows with SEEDS, less two standard deviations of such a
    count; 0 where a sample is too small."""
    return max(1, int(expected - 2 * sqrt(expected))) if expected >= FEWEST else 0


@dataclass(slots=True, kw_only=True)
class Summary:
    """The results of some seeds. `wrong`: the problem of each seed that ended wrong. `staleness`: the longest time in seconds
    from the write of a row to a document that shows it."""

    seeds: int = 0
    requests: int = 0
    corrections: int = 0
    staleness: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, str] = field(default_factory=dict)

    def add(self, other: "Summary") -> None:
        self.seeds += other.seeds
        self.requests += other.requests
        self.corrections += other.corrections
        self.staleness = max(self.staleness, other.staleness)
        self.faults += other.faults
        self.wrong |= other.wrong


Kind = Literal[
    "changes",
    "products",
    "sets",
    "topics",
    "shared topic",
    "shared topics",
    "routed",
    "routed edits",
    "mixed",
    "mixed edits",
    "drawn edits",
    "computed edits",
    "groups",
    "clock",
    "grouped edits",
    "every",
    "every edits",
    "chosen",
    "chosen replays",
    "counted",
    "counted edits",
]
"""Of random histories: over the products of a shape, over a random product of each seed, or with random sets of products that
operators edit; small worlds, whose topics change; entities that share a topic, also one that changes; random products whose
messages have headers and places of their own; and small worlds with operators who erase and replay, or also edit; and the
smallest worlds, whose turns choose their moments."""
CLASSES: Mapping[Kind, type[Simulation]] = {
    "clock": ClockedSimulation,
    "sets": ProductSetSimulation,
    "topics": SourceSimulation,
    "shared topic": SharedTopicSimulation,
    "shared topics": SharedSourceSimulation,
    "routed": RoutedSimulation,
    "routed edits": RoutedEditSimulation,
    "mixed": MixedSimulation,
    "mixed edits": MixedEditSimulation,
    "drawn edits": MixedEditSimulation,
    "computed edits": MixedEditSimulation,
    "grouped edits": MixedEditSimulation,
    "every edits": MixedEditSimulation,
    "counted": MixedSimulation,
    "counted edits": MixedEditSimulation,
    "chosen": ChosenMoments,
    "chosen replays": ChosenReplays,
}


def overrides_of(seed: int, kind: Kind) -> dict[str, Any]:
    """The overrides of a seed. Over the products of a shape some seeds empty tables."""
    if kind == "routed":
        return {"shape": f"{('any', 'grouped')[seed % 2]} {seed}"}
    if kind == "routed edits":
        return wide(seed) | MIXED | {"shape": f"drawn routed {seed}"}
    if kind == "products":
        return {"shape": f"any {seed}"}
    if kind == "sets":
        return {"shape": "edits"}
    if kind == "chosen":
        return chosen(seed)
    if kind == "chosen replays":
        return chosen_replays(seed)
    if kind == "shared topic":
        return overrides_of(seed, "changes") | SHARED
    if kind in ("topics", "shared topics"):
        return wide(seed) | SOURCE
    if kind == "mixed":
        return wide(seed) | MIXED
    if kind == "drawn edits":
        return wide(seed) | MIXED | {"shape": f"drawn {seed}"}
    if kind == "computed edits":
        return wide(seed) | MIXED | {"shape": f"drawn computed {seed}"}
    if kind == "groups":
        return {"shape": f"grouped {seed}", "truncate_chance": Random(f"{seed} truncates").choice((0, 0, 0, 0.1, 0.3))}
    if kind == "clock":
        skew = Random(f"{seed} skew").choice((0, 3, 30))
        return {"shape": f"clocked {seed}", "late_events": False, "max_clock_skew": skew}
    if kind == "grouped edits":
        return wide(seed) | MIXED | {"shape": f"drawn grouped {seed}"}
    if kind == "every":
        return {"shape": f"every {seed}", "truncate_chance": Random(f"{seed} truncates").choice((0, 0, 0, 0.1, 0.3))}
    if kind == "every edits":
        return wide(seed) | MIXED | {"shape": f"drawn every {seed}"}
    if kind == "counted":
        return wide(seed) | MIXED | {"shape": "counted"}
    if kind == "counted edits":
        return wide(seed) | MIXED | {"shape": f"drawn counted {seed}"}
    if kind == "mixed edits":
        return wide(seed) | MIXED | {"shape": "edits"}
    return {"truncate_chance": Random(f"{seed} truncates").choice((0, 0, 0, 0.1, 0.3))}


def simulation_of(kind: Kind) -> type[Simulation]:
    """The class of the runs of a kind."""
    return CLASSES.get(kind, Simulation)


def run_seeds(seeds: Iterable[int], kind: Kind = "changes") -> Summary:
    """Runs these seeds in this process."""
    summary = Summary()
    for seed in seeds:
        run = simulate(seed, overrides=overrides_of(seed, kind), simulation_class=simulation_of(kind))
        run.end_job()
        summary.seeds += 1
        summary.requests += run.world.requests
        summary.corrections += run.tally["corrections"]
        summary.staleness = max(summary.staleness, run.staleness)
        summary.faults += run.world.faults
        if run.problem is not None:
            summary.wrong[seed] = run.problem
    return summary


def run_many(
    first: int, count: int, *, kind: Kind = "changes", processes: int | None = None, report: Callable[[Summary], None]
) -> Summary:
    """Runs `count` seeds from `first`. Calls `report` with the summary so far."""
    chunks = [range(n, min(n + CHUNK, first + count)) for n in range(first, first + count, CHUNK)]
    total = Summary()
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_seeds, chunks, repeat(kind)):
            total.add(part)
            report(total)
    return total


def explain(seed: int, problem: str, kind: Kind = "changes") -> str:
    """Text about a seed that ends wrong: the shrunk run, its trace, and the command that runs it again. A run that draws its
    events in its turns keeps them all."""
    smaller, keep = shrink(
        seed,
        overrides_of(seed, kind),
        lambda fewer, few: (
            simulate(seed, overrides=fewer, keep=few, simulation_class=simulation_of(kind)).problem is not None
        ),
    )
    run = simulate(seed, overrides=smaller, keep=keep, trace=True, simulation_class=simulation_of(kind))
    lines = [
        f"seed {seed}: {problem}",
        f"shrunk to {len(run.events)} events: {run.problem}",
        f'again: python -m tests.simulator.soak --kind "{kind}" --seed {seed} --overrides "{smaller}"'
        f"{' --keep ' if keep else ''}{','.join(map(str, keep))}",
        *(f"  event {i}: {event}" for i, event in zip(keep or range(len(run.events)), run.events, strict=True)),
        *(f"  {line}" for line in run.world.trace or ()),
    ]
    return "\n".join(lines)
