"""Without parts of what makes one publisher, and suppression safe (rule 7)."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import processor.batch as batch
import processor.model.ledger as ledger
import processor.steps.publish as publish
import processor.worker as worker
from processor.rounds import Rounds
from statestore.store import Done, Write
from tests.simulator.broker import Broker
from tests.simulator.leases import Registry
from tests.simulator.line import ProducerClient
from tests.simulator.without.switch import Answer, asking, replacing


def _yes(*_: Any) -> Any:
    yield from ()
    return True


suppress_anything = replacing((publish, "_acknowledged", lambda _: _yes))
any_attempt = replacing((ledger.Run, "kept", lambda _: lambda self, mark: mark.round <= self.through))
reserve_anyway = replacing((publish, "reserve", lambda make: lambda *args: make(*args)._replace(when=None)))
no_fence = replacing((Broker, "init", lambda _: lambda self, producer: self.epochs.setdefault(producer, 1)))


def _unleased(_: Any) -> Any:
    counts: dict[Any, Any] = {}

    def begin(_self: Any, lease: Any, slot: int, round_: int) -> Any:
        return next(counts.setdefault((lease.generation, slot, round_), itertools.count()))

    return begin


no_lease_check = replacing((Registry, "begin_attempt", _unleased))


def _deaf(flush: Any) -> Any:
    def changed(self: Any) -> None:
        try:
            flush(self)
        except Exception:
            return

    return changed


flush_unheard = replacing((ProducerClient, "flush", _deaf))


@contextmanager
def hash_without_reservation() -> Iterator[None]:
    """The ledger is written once the messages are acknowledged, and says nothing before."""
    sent: list[Write] = []

    def later(request: Any) -> Any:
        if not isinstance(request, Write):
            return request
        sent.append(request)
        return Answer(Done(None))

    def recorded(part: Any) -> Any:
        def changed(*args: Any) -> Any:
            sent.clear()
            tally = part(*args)
            for write in sent:
                args[-1].store.write(write._replace(when=None))
            return tally

        return changed

    def unreserved(step: Any) -> Any:
        return asking(step, later)

    with replacing((batch, "publish", unreserved), (worker, "publish_part", recorded))():
        yield


def _in_the_middle(action: Any) -> Any:
    """Settle work between the two stages of a round."""

    def changed(self: Rounds, pairs: Any, task: Any) -> Any:
        written, settles = pairs._partitions, bool(task.round.starts)

        def then() -> Any:
            found = written()
            if settles:
                self.settle()
            return found

        pairs._partitions = then
        return action(self, pairs, task)

    return changed


settling_beside_live = replacing((Rounds, "_action", _in_the_middle))
