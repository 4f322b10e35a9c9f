"""The last hour of a run in samples, one a minute, for people who look at its report. A new run begins with none."""

from collections import deque
from typing import Any, Final

SAMPLE_SECONDS: Final = 60.0
MOST_SAMPLES: Final = 60


class SampleRing:
    """The samples, the oldest first: `[at, events a second, documents a second, backlog]`; `at`: in seconds since 1970."""

    def __init__(self) -> None:
        self._samples = deque[list[Any]](maxlen=MOST_SAMPLES)

    def add(self, at: float, *values: float) -> list[list[Any]]:
        """Adds a sample, unless the last one is younger than a minute. Returns all of them."""
        if not self._samples or at - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._samples.append([round(at), *values])
        return list(self._samples)
