"""The clock of a driver: real, or virtual for `statestore try` and tests. All times are in seconds."""

import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Tells the time, and waits."""

    def now(self) -> float:
        """The time since some moment; it never goes back."""

    def date(self) -> float:
        """The time since 1970."""

    def sleep(self, seconds: float) -> None:
        """Waits."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.monotonic()

    def date(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(slots=True)
class VirtualClock:
    """A clock that moves only when its owner moves it."""

    seconds: float = 0.0

    def now(self) -> float:
        return self.seconds

    def date(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
