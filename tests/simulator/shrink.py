"""Makes a run that ends wrong smaller: fewer events, then fewer faults, as long as it still ends wrong."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.simulator.simulate import draw_run

EndsWrong = Callable[[Mapping[str, Any], list[int]], bool]
"""Whether the seed ends wrong with these overrides, and with only these events."""


def shrink(seed: int, overrides: Mapping[str, Any], ends_wrong: EndsWrong) -> tuple[dict[str, Any], list[int]]:
    """Smaller overrides, and the indexes of the events to keep."""
    smaller, keep = dict(overrides), list(range(len(draw_run(seed, overrides)[2])))
    size = len(keep) // 2
    while size:
        for start in range(len(keep) - size, -1, -size):
            fewer = keep[:start] + keep[start + size :]
            if fewer and ends_wrong(smaller, fewer):
                keep = fewer
        size //= 2
    for max_faults in range(draw_run(seed, overrides)[1].max_faults):
        if ends_wrong({**smaller, "max_faults": max_faults}, keep):
            smaller["max_faults"] = max_faults
            break
    return smaller, keep
