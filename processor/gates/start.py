"""What a run does before it trusts its account of transactions: it reads what its topics had when it began.

A batch may have failed before the start. Its tasks wrote rows, and nobody holds their roots yet, or knows their transactions. The
next batch reads those records again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from processor.progress.epochs import Partition

PATIENCE_SECONDS = 10.0
"""So long after the job has read these records, transactions that are older than `at_most` may still end."""


@dataclass(slots=True, kw_only=True)
class Start:
    """`until`: before it a run that is not ready lets no root go. `patient_until`: before it no open transaction is too old;
    infinite while the run is not ready. Both on the job's clock. `unread`: where the topics ended that the job has not read so
    far; None while nobody knows."""

    until: float = -inf
    patient_until: float = -inf
    unread: dict[Partition, int] | None = None

    @property
    def ready(self) -> bool:
        """Whether the job has read what its topics had."""
        return self.patient_until < inf

    def expect(self, ends: Mapping[Partition, int]) -> None:
        """Takes where the topics end."""
        if not self.ready and self.unread is None:
            self.unread = dict(ends)

    def read(self, positions: Mapping[Partition, int], now: float) -> bool:
        """Takes how far the job has read; returns whether it is ready from now on."""
        if self.unread is None:
            return False
        self.unread = {at: end for at, end in self.unread.items() if positions.get(at, 0) < end}
        if not self.unread:
            self.unread, self.patient_until = None, now + PATIENCE_SECONDS
        return self.ready
