"""When parts fail, and for how long: each part has a process of chance of its own, so outages come alone and together."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from threading import Event, Lock
from time import time
from typing import Protocol

SHORTEST, LONGEST = 1.0, 120.0
"""Seconds of an outage. Each factor of two between them is as likely as another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """An outage that has ended. `part`: its name; `way`: how it failed; `began`, `ended`: in seconds since 1970. It ended when
    the part could answer again: a server that starts takes longer than the schedule asked for."""

    part: str
    way: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def overlaps(self, other: "Outage") -> bool:
        return self.began < other.ended and other.began < self.ended


class FailingPart(Protocol):
    """A part that fails in one of its ways, and answers again after `repair`."""

    @property
    def name(self) -> str: ...
    @property
    def ways(self) -> tuple[str, ...]: ...
    def fail(self, way: str) -> None: ...
    def repair(self) -> None: ...


class Budget:
    """How many outages may still begin, for the threads of all parts."""

    def __init__(self, outages: int) -> None:
        self._left, self._lock = outages, Lock()

    def take(self) -> bool:
        """Whether the caller may begin one more."""
        with self._lock:
            self._left -= 1
            return self._left >= 0


def draw(
    random: Random, ways: Sequence[str], pause: float, shortest: float = SHORTEST
) -> Iterator[tuple[float, str, float]]:
    """For ever: the seconds until the next outage, its way, and its length. `pause`: the mean of the former."""
    while True:
        length = math.exp(random.uniform(math.log(shortest), math.log(LONGEST)))
        yield random.expovariate(1 / pause), random.choice(list(ways)), length


def cause_outages(
    part: FailingPart,
    drawn: Iterator[tuple[float, str, float]],
    budget: Budget,
    stopped: Event,
    note: Callable[[Outage], None],
) -> None:
    """Makes a part fail until the budget is used up or `stopped` is set. The part answers at the end."""
    for pause, way, length in drawn:
        if stopped.wait(pause) or not budget.take():
            return
        note(cause_outage(part, way, length, stopped))


def cause_outage(part: FailingPart, way: str, length: float, stopped: Event) -> Outage:
    """Makes a part fail once, for this many seconds or until `stopped` is set."""
    began = time()
    part.fail(way)
    stopped.wait(length)
    part.repair()
    return Outage(part=part.name, way=way, began=began, ended=time())
