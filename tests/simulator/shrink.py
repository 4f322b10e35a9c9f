"""Makes a failing run smaller: fewer events, then fewer faults, as long as it stays wrong."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tests.simulator.run import draw, simulate


def shrink(
    seed: int,
    boost: Mapping[str, Any],
    without: Callable[[], AbstractContextManager[None]] = nullcontext,
    sound: bool = False,
) -> tuple[dict[str, Any], list[int]]:
    """A smaller world and the events to keep. `sound`: what is kept must be right with all protections on."""

    def red(boost: Mapping[str, Any], keep: list[int]) -> bool:
        if simulate(seed, boost=boost, keep=keep, without=without).verdict is None:
            return False
        return not sound or simulate(seed, boost=boost, keep=keep).verdict is None

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
