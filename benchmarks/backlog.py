"""Measure the cost of open changes for the driver and its workers at a steady rate of writes, without store and Spark.

Each write is a new star with two slots. A round of one second opens its change. S later a round settles the change,
because the indexes show the star. W after that a round closes the change. Promises: figures of the steady state, after the
first open changes were closed.
"""

import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from time import process_time

from processor.progress.open_changes import OpenChange, OpenChanges, SettleOutcome, changes_key
from processor.progress.overlay import WorkerOverlay
from processor.settings.settings import Settings
from statestore.items import slot_name
from statestore.keys import row_key
from statestore.versions import encode_version

USERS, REPOS = 100_000, 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChangeCost:
    """The cost of the open changes at `rate` writes a second.

    `entries`: how many changes are open. `driver_memory`: MB that the driver needs for them. `sent`: MB that a round sends
    to each executor. `driver_cpu`: CPU milliseconds of the driver in a round. `worker_cpu`: CPU milliseconds of a worker
    that reads `KEYS_READ` keys in a round.
    """

    rate: int
    entries: int
    driver_memory: float
    sent: float
    driver_cpu: float
    worker_cpu: float


KEYS_READ = 20


def measure_open_changes(rate: int, seconds: int = 30) -> OpenChangeCost:
    """The cost after so many seconds at `rate` writes a second."""
    settings, random = Settings(), Random(1)
    tracemalloc.start()
    changes, _, _ = _run(rate, seconds, settings, random)
    traced_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del changes
    changes, sent, driver = _run(rate, seconds, settings, random)
    began = process_time()
    index, overlay = slot_name(1), WorkerOverlay(pickle.loads(sent))
    for _ in range(KEYS_READ):
        overlay.get((index, f"user{random.randrange(USERS)}"), {})
    worker = process_time() - began
    return OpenChangeCost(
        rate=rate,
        entries=len(changes.by_row),
        driver_memory=traced_bytes / 1e6,
        sent=len(sent) / 1e6,
        driver_cpu=1000 * driver,
        worker_cpu=1000 * worker,
    )


def _run(rate: int, seconds: int, settings: Settings, random: Random) -> tuple[OpenChanges, bytes, float]:
    """The open changes after so many rounds, the bytes that the last round sends, and its CPU seconds in the driver."""
    changes = OpenChanges(wait=settings.wait_seconds, settle=settings.settle_seconds)
    sent, cost = b"", 0.0
    for second in range(seconds):
        entries = list(_entries(rate, second, random))
        began = process_time()
        changes.add(changes_key(1, second, "star.0", 0), entries, float(second))
        due = changes.due(float(second))
        changes.record(
            (SettleOutcome(change=e, version=e.version, slots=e.slots, shown=True) for e in due), float(second)
        )
        changes.close(float(second))
        sent = pickle.dumps(changes.overlay.encode())
        cost = process_time() - began
    return changes, sent, cost


def _entries(rate: int, second: int, random: Random) -> Iterator[OpenChange]:
    for n in range(rate):
        user, repo, offset = f"user{random.randrange(USERS)}", random.randrange(REPOS), second * rate + n
        yield OpenChange(
            entity="star",
            key=row_key("star", 1, f"{user}#repo{repo}#owner{offset}"),
            version=encode_version(0, 0, offset),
            slots=((1, user), (2, f"owner{offset}#repo{repo}")),
            former=frozenset(),
        )
