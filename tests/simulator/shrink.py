"""Makes a failing run smaller: fewer events, then fewer faults, as long as it stays red."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.simulator.run import draw

Red = Callable[[Mapping[str, Any], list[int]], bool]
"""Whether the seed is red in a world, with only these events."""


def shrink(seed: int, boost: Mapping[str, Any], red: Red) -> tuple[dict[str, Any], list[int]]:
    """A smaller world and the events to keep."""
    smaller, keep = dict(boost), list(range(len(draw(seed, boost)[2])))
    size = len(keep) // 2
    while size:
        for start in range(len(keep) - size, -1, -size):
            fewer = keep[:start] + keep[start + size :]
            if red(smaller, fewer):
                keep = fewer
        size //= 2
    for faults in range(draw(seed, boost)[1].faults):
        if red({**smaller, "faults": faults}, keep):
            smaller["faults"] = faults
            break
    return smaller, keep
