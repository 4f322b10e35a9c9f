"""Switches for the protections of publishing: one publisher, reservations, acknowledgements (rule 7 of docs/architecture.md)."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import processor.engine.protocol.ledger as ledger
import processor.engine.protocol.publish as publish
import processor.engine.rounds.publish_stage as publish_stage
from processor.engine.rounds.driver import Driver
from statestore.store import Done, Write
from tests.simulator.actor import ProducerClient
from tests.simulator.broker import Broker
from tests.simulator.leases import Registry
from tests.simulator.without.switch import Stub, always, between_stages, replacing, with_requests


def _always_acknowledged(*_: Any) -> Any:
    yield from ()
    return True


suppress_by_any_entry = replacing((publish, "_acknowledged", lambda _: _always_acknowledged))
any_attempt = replacing((ledger.Run, "acknowledges", lambda _: lambda self, mark: mark.round <= self.through))
unconditional_reservation = replacing((publish, "reserve", lambda make: lambda *args: make(*args)._replace(when=None)))
weak_answers_silence = replacing((publish, "turn_of", always(0)))
contended_roots_read_weakly = replacing(
    (publish_stage, "PublishTask", lambda make: lambda **kw: make(**{**kw, "contended": ()}))
)
no_fence = replacing((Broker, "init_transactions", lambda _: lambda self, id_: self.epochs.setdefault(id_, 1)))


def _begin_without_check(_: Any) -> Any:
    counts: dict[Any, Any] = {}

    def begin(_self: Any, lease: Any, lane: int, round_: int) -> Any:
        return next(counts.setdefault((lease.generation, lane, round_), itertools.count()))

    return begin


no_lease_check = replacing((Registry, "begin_attempt", _begin_without_check))


def _ignore_errors(flush: Any) -> Any:
    def changed(self: Any) -> None:
        try:
            flush(self)
        except Exception:
            return

    return changed


ignored_flush_errors = replacing((ProducerClient, "flush", _ignore_errors))


same_hash_of_too_large_documents = replacing((publish, "UNFIT", lambda _: ""))


def _without_backlog(stage: Any) -> Any:
    def changed(*args: Any) -> Any:
        result = stage(*args)
        return replace(result, backlog=result.backlog - result.unfit.keys())

    return changed


too_large_documents_not_kept = replacing((publish_stage, "publish_stage", _without_backlog))


@contextmanager
def no_reservation() -> Iterator[None]:
    """The task writes the ledger only after the broker acknowledged the messages."""
    writes: list[Write] = []

    def postpone(request: Any) -> Any:
        if not isinstance(request, Write):
            return request
        writes.append(request)
        return Stub(Done(None))

    def write_at_the_end(stage: Any) -> Any:
        def changed(*args: Any) -> Any:
            writes.clear()
            tally = stage(*args)
            for write in writes:
                args[-1].store.write(write._replace(when=None))
            return tally

        return changed

    def without_reservation(step: Any) -> Any:
        return with_requests(step, postpone)

    with replacing(
        (publish_stage, "publish", without_reservation), (publish_stage, "publish_stage", write_at_the_end)
    )():
        yield


@contextmanager
def settling_during_a_batch() -> Iterator[None]:
    """The driver settles between the two stages of a batch's round."""
    processing: list[Driver] = []

    def note_driver(process: Any) -> Any:
        def changed(self: Driver, *args: Any) -> Any:
            processing.append(self)
            try:
                return process(self, *args)
            finally:
                processing.clear()

        return changed

    def settle() -> None:
        if processing:
            driver = processing.pop()
            driver.work(next(driver.kinds()))

    with replacing((Driver, "process_batch", note_driver))(), between_stages(settle)():
        yield
