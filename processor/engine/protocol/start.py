"""What a run does before it trusts its account of transactions: it reads what its topics had when it began.

A batch may have failed before the start. Its tasks wrote rows, and nobody holds their roots yet, or knows their transactions. The
next batch reads those records again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.horizon import Horizon

PATIENCE_SECONDS = 10.0
"""So long after the job has read these records, transactions that are older than `at_most` may still end."""


@dataclass(slots=True, kw_only=True)
class Start:
    """`until`: before it a run that is not ready lets no root go. `patient_until`: before it no open transaction is too old;
    infinite while the run is not ready. Both on the job's clock. `horizon`: what it reads first."""

    until: float = -inf
    patient_until: float = -inf
    horizon: Horizon = field(default_factory=Horizon)

    @property
    def ready(self) -> bool:
        """Whether the job has read what its topics had."""
        return self.patient_until < inf

    @property
    def asks(self) -> bool:
        """Whether it must know where the topics end."""
        return not self.ready and self.horizon.unread is None

    def expect(self, ends: Mapping[Partition, int]) -> None:
        """Takes where the topics end."""
        if not self.ready:
            self.horizon.expect(ends)

    def read(self, positions: Mapping[Partition, int], now: float) -> bool:
        """Takes how far the job has read; returns whether it is ready from now on."""
        if self.ready or not self.horizon.read(positions):
            return False
        self.patient_until = now + PATIENCE_SECONDS
        return True
