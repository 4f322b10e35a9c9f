"""The job with doubles for its clients, each speaking for the actor that runs, and with the world's clock.

The one place that knows which names of the product are replaced.
"""

import copy
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import processor.job
import processor.rounds
import processor.worker
from processor.job import Job
from processor.model.epochs import Epochs
from processor.model.open_changes import OpenChanges
from processor.settings import Settings
from processor.worker import Clients
from tests.simulator.line import Line, ProducerClient, RegistryClient, Rejects, TableClient
from tests.simulator.world import World


def copied(job: Job) -> Job:
    """The job as its driver holds it, with nothing shared that changes."""
    rounds = copy.copy(job.rounds)
    held: Any = rounds.open
    rounds.open = OpenChanges(
        wait=held.wait,
        settle=held.settle,
        entries=dict(held.entries),
        places=copy.deepcopy(held.places),
        _items={item: set(rows) for item, rows in held._items.items()},
        _holders={row: set(items) for row, items in held._holders.items()},
    )
    rounds.fan_outs = replace(rounds.fan_outs, held=dict(rounds.fan_outs.held))
    held = rounds.owed
    rounds.owed = replace(held, stopped=dict(held.stopped), waiting=dict(held.waiting), kept=set(held.kept))
    rounds.tally = Counter(rounds.tally)
    return Job(rounds=rounds)


def speak(job: Job, line: Line) -> None:
    registry: Any = RegistryClient(line)
    job.rounds.store, job.rounds.registry = TableClient(line), registry


@contextmanager
def doubles(world: World) -> Iterator[None]:
    """The product with doubles for its clients, each speaking for the actor that runs, and with this world's clock."""

    def clients(_: Settings) -> Clients:
        line = world.line
        store: Any = TableClient(line)
        registry: Any = RegistryClient(line)
        rejects: Any = Rejects(line)
        return Clients(store=store, pool=None, rejects=rejects, registry=registry)  # type: ignore[arg-type]

    def producer(_: str, __: object, transactional_id: str) -> ProducerClient:
        return ProducerClient(world.line, transactional_id)

    def now() -> float:
        return world.line.note(lambda: world.now + world.skew)

    def sleep(seconds: float) -> None:
        world.line.note(lambda: setattr(world, "now", world.now + seconds))

    close = OpenChanges.close
    replaced: list[tuple[Any, str, Any]] = [
        (processor.worker, "clients", clients),
        (processor.worker, "TransactionalOutbox", producer),
        (processor.job, "TransactionalOutbox", producer),
        (processor.job, "sleep", sleep),
        (processor.rounds, "monotonic", now),
        (processor.rounds, "time", now),
        (processor.rounds, "check_topics", lambda *_: Epochs(steps={})),
        (OpenChanges, "close", lambda self, now: sorted(close(self, now))),  # one seed, one order
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, double in replaced:
        setattr(module, name, double)
    try:
        yield
    finally:
        for module, name, original in before:
            setattr(module, name, original)
