"""Runs many seeds on all cores."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from typing import Any

from tests.simulator.run import simulate
from tests.simulator.shrink import shrink

CHUNK = 50


@dataclass(slots=True, kw_only=True)
class Summary:
    """What seeds showed. `wrong`: seed -> verdict. `staleness`: the longest time from a write to the document that shows it."""

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


def boost_of(seed: int, products: bool) -> dict[str, Any]:
    """What a seed's world is told to be: with `products`, one with a random product of the seed's own."""
    return {"shape": f"any {seed}"} if products else {}


def run_seeds(seeds: Iterable[int], products: bool = False) -> Summary:
    """Runs these seeds in this process."""
    summary = Summary()
    for seed in seeds:
        run = simulate(seed, boost=boost_of(seed, products))
        run.end_job()
        summary.seeds += 1
        summary.requests += run.world.requests
        summary.corrections += run.tally["corrections"]
        summary.staleness = max(summary.staleness, run.staleness)
        summary.faults += run.world.faults
        if run.verdict is not None:
            summary.wrong[seed] = run.verdict
    return summary


def run_many(
    first: int, count: int, *, products: bool = False, processes: int | None = None, told: Callable[[Summary], None]
) -> Summary:
    """Runs `count` seeds from `first`; `told` hears of the summary so far."""
    chunks = [range(n, min(n + CHUNK, first + count)) for n in range(first, first + count, CHUNK)]
    total = Summary()
    with ProcessPoolExecutor(processes or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for part in pool.map(run_seeds, chunks, repeat(products)):
            total.add(part)
            told(total)
    return total


def explained(seed: int, verdict: str, boost: dict[str, Any] | None = None) -> str:
    """A wrong seed, shrunk, with its trace and how to run it again."""
    smaller, keep = shrink(
        seed, boost or {}, lambda world, few: simulate(seed, boost=world, keep=few).verdict is not None
    )
    run = simulate(seed, boost=smaller, keep=keep, trace=True)
    lines = [
        f"seed {seed}: {verdict}",
        f"shrunk to {len(keep)} events: {run.verdict}",
        f"again: python -m tests.simulator.soak --seed {seed} --boost '{smaller}' --keep {','.join(map(str, keep))}",
        *(f"  event {i}: {event}" for i, event in zip(keep, run.events, strict=True)),
        *(f"  {line}" for line in run.world.trace or ()),
    ]
    return "\n".join(lines)
