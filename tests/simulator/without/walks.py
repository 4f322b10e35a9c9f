"""Switches for the protections of registry edits: fills, publications, and the steps of the job in the registry."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import processor.engine.protocol.publish as publish
import processor.engine.rounds.follow_up_stages as follow_up_stages
from processor.engine.plan.plan import Plan
from processor.engine.protocol import walks
from processor.engine.protocol.ledger import NO_DOCUMENT, LedgerEntry
from processor.engine.protocol.walks import Walks
from processor.engine.rounds.round import Stage
from processor.engine.rounds.round_runner import RoundRunner
from processor.job.run.job import Job
from registry.edits.operations import advance
from registry.model import Lease
from statestore.keys import Key
from statestore.store import Write
from tests.simulator.leases import Registry
from tests.simulator.run import Simulation
from tests.simulator.without.switch import always, between_stages, replacing

read_before_full = replacing(
    (Walks, "proven", lambda _: lambda self, plan: frozenset(plan.entities)),
    (Walks, "_has_proof", always(True)),
)


def _written_is_done(finish: Any) -> Any:
    def changed(self: Walks, name: Any, plan: Plan, now: float) -> None:
        walk = self.walks[name]
        if name[0] == "fill" and not (walk.left or walk.unseen):
            self.walks[name] = replace(walk, done=True)
        else:
            finish(self, name, plan, now)

    return changed


not_probed = replacing((Walks, "_finish", _written_is_done))


def _without_unseen(advance: Any) -> Any:
    return lambda self, walked, *args: advance(self, [one._replace(unseen=()) for one in walked], *args)


unseen_forgotten = replacing((Walks, "advance", _without_unseen))


rows_only = replacing(
    (walks, "_published_partitions", lambda _: lambda plan, p: plan.entities[p.product.root].partitions())
)


def _with_document(read: Any) -> Any:
    def changed(*args: Any) -> LedgerEntry:
        entry: LedgerEntry = read(*args)
        return LedgerEntry() if entry.hash == NO_DOCUMENT else entry

    return changed


documents_only = replacing((follow_up_stages, "read_entry", _with_document))
any_version_of_document = replacing((LedgerEntry, "shows", lambda _: lambda self, digest, *_: self.hash == digest))


def _in_any_topic(shows: Any) -> Any:
    return lambda self, digest, version, _: shows(self, digest, version, self.topic)


any_topic_of_tombstone = replacing((LedgerEntry, "shows", _in_any_topic))


def _resumed_in_the_middle(adopt: Any) -> Any:
    def changed(self: Walks, plan: Plan, *args: Any) -> Any:
        running = {name: replace(product, paused=False) for name, product in plan.products.items()}
        requests = adopt(self, replace(plan, products=running), *args)
        for name, product in plan.products.items():
            if product.paused:
                self.walks["publish", name] = replace(self.walks["publish", name], held=True)
        return requests

    return changed


pause_keeps_the_walk = replacing((Walks, "adopt", _resumed_in_the_middle))

fill_overwrites = replacing(
    (walks, "merge_image", lambda make: lambda *args, **kw: make(*args, **kw)._replace(when=None))
)


@contextmanager
def publication_overwrites() -> Iterator[None]:
    """In the rounds of walks a reservation looks at no turn."""
    rounds: set[tuple[int, int]] = set()

    def note_round(run_round: Any) -> Any:
        def changed(self: RoundRunner, stage: Stage, *args: Any, **kw: Any) -> Any:
            if stage is follow_up_stages.walk_stage:
                rounds.add((self.run.number, self.number))
            return run_round(self, stage, *args, **kw)

        return changed

    def unconditional(reserve: Any) -> Any:
        def changed(key: Key, seen: Any, entries: Mapping[int, LedgerEntry], message_key: str, *more: Any) -> Write:
            write: Write = reserve(key, seen, entries, message_key, *more)
            walked = any(entry.mark and entry.mark[:2] in rounds for entry in entries.values())
            return write._replace(when=None) if walked else write

        return changed

    with replacing((RoundRunner, "run_round", note_round), (publish, "reserve", unconditional))():
        yield


@contextmanager
def version_inside_a_round() -> Iterator[None]:
    """A batch takes the registry's version between the two stages of its round, and publishes by the version before."""
    late: list[Callable[[], None]] = []

    def take_late(run_batch: Any) -> Any:
        def changed(self: Simulation, job: Job) -> None:
            with replacing((Job, "take_version", lambda take: lambda job: late.append(partial(take, job))))():
                run_batch(self, job)

        return changed

    def take() -> None:
        while late:
            late.pop()()

    with replacing((Simulation, "_run_batch", take_late))(), between_stages(take)():
        yield


def _at_once(_: Any) -> Any:
    def changed(
        self: Registry, _lease: Lease, _version: int, *, proven: Collection[str], published: Collection[str]
    ) -> None:
        self.edit(lambda stored: advance(stored, proven=proven, published=published))

    return changed


steps_at_once = replacing((Registry, "advance", _at_once))
