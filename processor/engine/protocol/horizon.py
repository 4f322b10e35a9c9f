"""Whether the job has read what its topics had at a moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from processor.engine.protocol.epochs import Partition


@dataclass(slots=True, kw_only=True)
class Horizon:
    """`unread`: where the topics ended that the job has not read so far; None while nobody has said where they end."""

    unread: dict[Partition, int] | None = None

    def expect(self, ends: Mapping[Partition, int]) -> None:
        """Takes where the topics end, if nobody has said it before."""
        if self.unread is None:
            self.unread = dict(ends)

    def read(self, positions: Mapping[Partition, int]) -> bool:
        """Takes how far the job has read; returns whether it has read so far."""
        if self.unread is None:
            return False
        self.unread = {at: end for at, end in self.unread.items() if positions.get(at, 0) < end}
        return not self.unread
