"""Switches for the clock of products (processor/engine/protocol/ticks.py)."""

from collections.abc import Iterator
from typing import Any

import processor.engine.rounds.publish_stage as publish_stage
import processor.language.product.expressions.expression as expression
from processor.engine.protocol.pending import Turn
from processor.engine.protocol.ticks import Ticks
from statestore.store import Done
from tests.simulator.without.switch import replacing


def _is_due(request: Any) -> bool:
    return getattr(request, "key", ("",))[0].startswith("DUE#")


def _written_at_last(publish: Any) -> Any:
    def changed(*args: Any) -> Any:
        running, answers, late = publish(*args), None, list[Any]()
        while True:
            try:
                requests = next(running) if answers is None else running.send(answers)
            except StopIteration as end:
                if late:
                    yield tuple(late)
                return end.value
            if requests and all(map(_is_due, requests)):
                late += requests
                answers = tuple(Done(None) for _ in requests)
            else:
                answers = yield requests

    return changed


written_at_last = replacing((publish_stage, "publish", _written_at_last))
"""A task writes due items after it has sent the messages."""


def _without_time(load: Any) -> Any:
    def changed(self: Ticks, item: Any) -> None:
        load(self, item)
        self.time = self._kept = 0

    return changed


goes_back = replacing((Ticks, "load", _without_time))
"""A start takes the clock of its machine, also where the runs before were later."""


def _from_now(load: Any) -> Any:
    def changed(self: Ticks, item: Any) -> None:
        load(self, item)
        self._bucket = None

    return changed


read_from_now = replacing((Ticks, "load", _from_now))
"""A start reads the bucket of the present, and none before."""


def _deleted_first(turns: Any) -> Any:
    def changed(self: Ticks, moment: Any) -> Iterator[Any]:
        for turn in turns(self, moment):
            if turn.ends:
                yield Turn(requests=list(self._ended(list(turn.ends))))
            yield turn._replace(ends=())

    return changed


deleted_first = replacing((Ticks, "turns", _deleted_first))
"""The items of due roots go before the round that publishes these roots."""
unnoticed = replacing(
    (Ticks, "take", lambda take: lambda self, found, done, moment: take(self, (), done, moment)),
)
"""The driver does not hear of the ticks of new items."""


over_counts = replacing((publish_stage, "PublishTask", lambda made: lambda **kw: made(**{**kw, "clock": -1})))
"""A tick in the ledger counts, also where it is over."""


unbroken = replacing((expression, "clock_breaks", lambda _breaks: lambda *_: []))
"""A renderer takes the local time of the clock for one that never falls."""
