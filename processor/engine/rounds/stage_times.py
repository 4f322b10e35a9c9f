"""How long the stages of a batch take, as counters of a tally in milliseconds.

`write` and `publish` count the tasks of the two stages of a round, each task with its waiting for answers: tasks that run side
by side add up. BATCH counts whole micro-batches of a job.
"""

from collections import Counter
from time import perf_counter
from typing import Literal

from processor.counts import STAGE, Stage


def stage_time(stage: Stage | Literal["batch"], began: float) -> Counter[str]:
    """The time of a stage since `began`, a moment of `perf_counter`."""
    return Counter({f"{STAGE}{stage}": round(1000 * (perf_counter() - began))})
