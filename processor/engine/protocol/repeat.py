"""What a connector sends again after it was killed: all that came after its last stored offset, in the same order.

Delivery order is order, so rows go back for a while. A transaction that had ended comes again, and with it all that ended after
it. The last one that had not ended comes again, and goes on. Until all of this is read, documents may show some rows of before,
and some of after.
"""

from dataclasses import dataclass, field
from math import inf

from processor.engine.protocol.ended_transactions import EndedTransaction, EndedTransactions
from processor.engine.protocol.horizon import Horizon

REORDER_SECONDS = 1.0
"""So much later than the end of its transaction a record may come without being a copy: brokers may give the times."""


@dataclass(slots=True, kw_only=True)
class Repeat:
    """What the connector of a topic sends again. `names`: the open transactions of which it has sent a copy; `unread`: those of
    them of which the job must yet read all records. `since`: Kafka's time of the newest copy that came after its end; minus
    infinity without one. `newest`: the last transaction that had ended before. `horizon`: what the job must read, once all
    copies are sent."""

    names: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    since: float = -inf
    newest: EndedTransaction | None = None
    horizon: Horizon = field(default_factory=Horizon)

    def see(self, name: str, copied: float, ended: EndedTransactions) -> None:
        """Takes a transaction of which a copy has come after its end, and Kafka's time of the copy."""
        self.names.add(name)
        if copied > self.since:
            self.since, self.newest = copied, ended.newest_before(copied)
            if not self.is_sent:
                self.horizon = Horizon()

    def add(self, name: str, *, is_unread: bool) -> None:
        """Takes a transaction of which a copy has come from before its end."""
        self.names.add(name)
        self.horizon = Horizon()
        if is_unread:
            self.unread.add(name)

    def remove(self, name: str) -> bool:
        """Forgets a transaction; returns whether others are left."""
        self.names.discard(name)
        self.unread.discard(name)
        return bool(self.names)

    def end(self, end: EndedTransaction) -> None:
        """Takes the end of a transaction."""
        if end.first < self.since and (self.newest is None or end.first > self.newest.first):
            self.newest = end

    @property
    def is_sent(self) -> bool:
        """Whether the end has come again that was the newest."""
        return self.newest is None or self.newest.last >= self.since - REORDER_SECONDS


def is_copy(time: float, ended: EndedTransaction) -> bool:
    """Whether a record of this time came after the end of its transaction."""
    return time > ended.first + REORDER_SECONDS
