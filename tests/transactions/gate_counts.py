"""What a job says of its gates on its page of metrics, summed over its runs. A kill takes what a run counted in its last
seconds."""

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from processor.environment.programs.program import LOOPBACK

RELEASED, INCOMPLETE = "gate_released_total", "gate_released_incomplete_total"
_LINE = re.compile(rf"^statestore_({RELEASED}|{INCOMPLETE})(?:{{.*}})? ([0-9.e+]+)$", re.MULTILINE)
LOOK_SECONDS = 1.0


@dataclass(slots=True)
class GateCounts:
    """`port`: of the page. `ended`: the counts of the runs before this one; `now`: those of this one."""

    port: int
    ended: dict[str, float] = field(default_factory=dict)
    now: dict[str, float] = field(default_factory=dict)
    _stopped: Event = field(default_factory=Event)

    def total(self, name: str) -> int:
        """How many there were in all runs."""
        return int(self.ended.get(name, 0) + self.now.get(name, 0))

    def take(self, page: str) -> None:
        """Takes a page. Lower counts than before are those of another run."""
        found = {name: float(value) for name, value in _LINE.findall(page)}
        if found and any(found.get(name, 0) < value for name, value in self.now.items()):
            self.ended = {name: self.ended.get(name, 0) + self.now.get(name, 0) for name in (RELEASED, INCOMPLETE)}
        self.now = found or self.now

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Looks at the page during the block."""
        thread = Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            try:
                with urllib.request.urlopen(f"http://{LOOPBACK}:{self.port}/metrics", timeout=5) as answer:
                    self.take(answer.read().decode())
            except OSError:  # the job starts, or is dead
                continue
