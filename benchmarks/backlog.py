"""What open changes cost the driver and its workers, at a steady rate of writes: no store, no Spark, the driver's own list.

Every write is a star of its own with two slots, opened in rounds of a second, shown by its indexes when it is settled S later,
and closed W after that. Promises: figures of the steady state, after the first entries were closed.
"""

import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from time import process_time

from processor.model.open_changes import Entry, OpenChanges, Settled, item_key
from processor.model.places import SentPlaces
from processor.settings import Settings
from statestore.items import spell_version
from statestore.keys import Key

USERS, REPOS = 100_000, 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """At `rate` writes a second: entries open, MB that the driver holds for them, MB sent to each executor in a round, and CPU
    milliseconds: of the driver in a round, of a worker that asks for `ASKED` keys in it."""

    rate: int
    entries: int
    held: float
    sent: float
    driver: float
    worker: float


ASKED = 20


def backlog(rate: int, seconds: int = 30) -> Backlog:
    """What is held and sent after so many seconds at `rate` writes a second."""
    settings, random = Settings(), Random(1)
    tracemalloc.start()
    held, _, _ = _run(rate, seconds, settings, random)
    bytes_held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del held
    held, sent, driver = _run(rate, seconds, settings, random)
    began = process_time()
    places = SentPlaces(pickle.loads(sent))
    for _ in range(ASKED):
        places.get(("GSI_1", f"user{random.randrange(USERS)}"), ())
    worker = process_time() - began
    return Backlog(
        rate=rate,
        entries=len(held.entries),
        held=bytes_held / 1e6,
        sent=len(sent) / 1e6,
        driver=1000 * driver,
        worker=1000 * worker,
    )


def _run(rate: int, seconds: int, settings: Settings, random: Random) -> tuple[OpenChanges, bytes, float]:
    """The list after so many rounds; what the last one sends, and the CPU seconds that it cost the driver."""
    changes = OpenChanges(wait=settings.wait_seconds, settle=settings.settle_seconds)
    sent, cost = b"", 0.0
    for second in range(seconds):
        entries = list(_entries(rate, second, random))
        began = process_time()
        changes.opened(item_key(1, second, "star.0", 0), entries, float(second))
        due = changes.due(float(second))
        changes.settled((Settled(entry=e, version=e.version, slots=e.slots, shown=True) for e in due), float(second))
        changes.close(float(second))
        sent = pickle.dumps(changes.places.spell())
        cost = process_time() - began
    return changes, sent, cost


def _entries(rate: int, second: int, random: Random) -> Iterator[Entry]:
    for n in range(rate):
        user, repo, offset = f"user{random.randrange(USERS)}", random.randrange(REPOS), second * rate + n
        yield Entry(
            entity="star",
            key=Key("TABLE#star", f"{user}#repo{repo}#owner{offset}"),
            version=spell_version(0, offset),
            slots=((1, user), (2, f"owner{offset}#repo{repo}")),
            former=frozenset(),
        )
