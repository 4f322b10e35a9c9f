"""What runs in Spark's Python workers: the two parts of a round, over real clients.

Only plain data crosses to here. Clients are made once per Python worker, after the fork; a producer of a publish slot once per
task, since making it is the fence.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from processor.batch import Round, Written, publish_part, publish_slot, resume_part, settle_part, write_part
from processor.errors import Fenced, TopicRefused
from processor.kafka import Outbox, TransactionalOutbox
from processor.lockstep import Lockstep, calm_collector
from processor.model.change import Record
from processor.model.epochs import Epochs
from processor.model.fan_out import FanOut, Found, Resumed
from processor.model.open_changes import Entry, Settled, places_of
from processor.model.owed import Sent
from processor.model.places import SentPlaces
from processor.model.replays import Letter, Replayed
from processor.model.touch import Root
from processor.replays import replay_part
from processor.settings import Settings
from registry.model import Lease
from registry.repository import Registry
from statestore.dynamodb import DynamoStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a task gets: the round, and how to reach the outside. `record_epochs`: the epoch of each record; `places`: what
    `SentPlaces` reads, as a broadcast."""

    round: Round
    settings: Settings
    lease: Lease
    record_epochs: Epochs
    places: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a publish slot did: `failed` and `owed` as `Sent` has them. `written`, `settled`, `resumed`: what the parts before it
    did, handed on to the driver."""

    slot: int
    attempt: int
    tally: dict[str, int]
    requests: dict[str, int]
    written: tuple[Written, ...]
    settled: tuple[Settled, ...]
    resumed: tuple[Resumed, ...]
    failed: dict[str, str]
    owed: frozenset[Root]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    store: DynamoStore
    pool: ThreadPoolExecutor
    rejects: Outbox
    registry: Registry


@lru_cache(maxsize=1)
def clients(settings: Settings) -> Clients:
    """This process's clients."""
    calm_collector()
    return Clients(
        store=open_store(settings),
        pool=ThreadPoolExecutor(settings.threads, thread_name_prefix="requests"),
        rejects=Outbox(settings.bootstrap_servers, dict(settings.kafka)),
        registry=Registry(settings.registry, settings.registry_schema),
    )


def open_store(settings: Settings) -> DynamoStore:
    """The table's store."""
    region = settings.region or os.environ.get("AWS_REGION")
    return DynamoStore(table=settings.table, endpoint_url=settings.endpoint or None, region=region)


@dataclass(frozen=True, slots=True)
class Opened:
    """Changes that this round opened, for every publish slot."""

    entries: tuple[Entry, ...]


Pair = tuple[int, Root | Written | Settled | Resumed | Opened]
"""(publish slot, what it gets): a root to publish, changes that were just opened, or what goes on to the driver (slot 0)."""


def write_rows(rows: Iterable[Any], task: Task) -> Iterator[Pair]:
    """The write part over one Spark partition."""
    mine = clients(task.settings)
    before = mine.store.requests.copy()
    written = write_part((_record(row, task.record_epochs) for row in rows), task.round, _finder(task), mine.rejects)
    written.tally.update({f"request {name}": n for name, n in (mine.store.requests - before).items()})
    entries = tuple(entry for opened in written.opened.values() for entry in opened)
    for slot in range(task.settings.publish_slots if entries else 0):
        yield slot, Opened(entries)
    yield from _to_slots(written.roots, task)
    yield 0, replace(written, roots=frozenset())


def settle_entries(entries: Iterable[Entry], task: Task) -> Iterator[Pair]:
    """The settle part over some open changes."""
    before = clients(task.settings).store.requests.copy()
    outcomes, found = settle_part(entries, task.round.plan, _finder(task))
    yield from ((0, outcome) for outcome in outcomes)
    yield from _found(found, before, task)


def resume_fan_outs(fan_outs: Iterable[FanOut], task: Task) -> Iterator[Pair]:
    """The next pages of some fan-outs."""
    before = clients(task.settings).store.requests.copy()
    resumed, found = resume_part(fan_outs, task.round.plan, _finder(task))
    # their roots go to their slots, not with them
    yield from ((0, r._replace(found=Found(frozenset(), ()))) for r in resumed)
    yield from _found(found, before, task)


def publish_owed(roots: Iterable[Root], task: Task) -> Iterator[Pair]:
    """Roots that are owed, to their slots."""
    return _to_slots(roots, task)


def _finder(task: Task) -> Lockstep:
    """What runs the steps before publishing."""
    mine, places = clients(task.settings), SentPlaces(task.places.value)
    return Lockstep(
        store=mine.store, outbox=mine.rejects, open=(places,), pool=mine.pool, page=task.settings.fan_out_page
    )


def _found(found: Found, before: Counter[str], task: Task) -> Iterator[Pair]:
    yield from _to_slots(found.roots, task)
    spent = clients(task.settings).store.requests - before
    tally = Counter({f"request {name}": n for name, n in spent.items()})
    yield 0, Written(roots=frozenset(), tally=tally, ends={}, opened={}, rest=found.rest)


def replay_letters(
    groups: Iterable[list[Letter]], round_: Round, settings: Settings, oldest: float
) -> Iterator[Replayed]:
    """Replays dead letters: each group, those of a Kafka partition."""
    mine = clients(settings)
    lockstep = Lockstep(store=mine.store, outbox=mine.rejects, pool=mine.pool)
    for letters in groups:
        yield from replay_part(letters, round_, lockstep, oldest=oldest)


def publish_roots(slot: int, pairs: Iterable[Pair], task: Task) -> Iterator[Published]:
    """The publish part of one slot. The slot is taken at the broker, then the lease is checked: whoever took over since has
    fenced this producer, or is found here."""
    roots: list[Root] = []
    written: list[Written] = []
    settled: list[Settled] = []
    resumed: list[Resumed] = []
    opened: list[Entry] = []
    for _, what in pairs:
        match what:
            case Written():
                written.append(what)
            case Settled():
                settled.append(what)
            case Resumed():
                resumed.append(what)
            case Opened():
                opened += what.entries
            case _:
                roots.append(what)
    nothing = 0, Sent(Counter(), {}, frozenset()), Counter[str]()
    attempt, sent, requests = _publish(slot, roots, opened, task) if roots else nothing
    yield Published(
        slot=slot,
        attempt=attempt,
        tally=dict(sent.tally),
        requests=dict(requests),
        written=tuple(written),
        settled=tuple(settled),
        resumed=tuple(resumed),
        failed=sent.failed,
        owed=sent.owed,
    )


def _publish(slot: int, roots: list[Root], opened: list[Entry], task: Task) -> tuple[int, Sent, Counter[str]]:
    """Publishes roots as one transaction; returns the attempt, what was done, and the requests. One that a topic refuses is given
    up, and begun anew without that product: what it reserved was not acknowledged, since another attempt is kept."""
    before = clients(task.settings).store.requests.copy()
    refused: dict[str, str] = {}
    while True:
        round_ = replace(task.round, stopped=task.round.stopped | refused.keys())
        try:
            attempt, sent = _attempt(slot, roots, opened, replace(task, round=round_))
        except TopicRefused as refusal:
            products = (p.product for p in task.round.plan.products.values())
            refused |= {p.name: str(refusal) for p in products if p.topic == refusal.topic}
        else:
            sent = sent._replace(failed={**sent.failed, **refused})
            return attempt, sent, clients(task.settings).store.requests - before


def _attempt(slot: int, roots: list[Root], opened: list[Entry], task: Task) -> tuple[int, Sent]:
    """One attempt: a producer of its own, which aborts what the one before it left open."""
    mine, settings = clients(task.settings), task.settings
    outbox = TransactionalOutbox(settings.bootstrap_servers, dict(settings.kafka), transactional_id(settings, slot))
    attempt = mine.registry.begin_attempt(task.lease, slot, task.round.number)
    if attempt is None:
        raise Fenced(f"job {task.lease.job}: generation {task.lease.generation} lost its lease; another job took over")
    places = (SentPlaces(task.places.value), places_of(opened))
    lockstep = Lockstep(store=mine.store, outbox=outbox, open=places, pool=mine.pool)
    return attempt, publish_part(roots, task.round, slot, attempt, lockstep)


def _to_slots(roots: Iterable[Root], task: Task) -> Iterator[Pair]:
    return ((publish_slot(root, task.settings.publish_slots), root) for root in roots)


def transactional_id(settings: Settings, slot: int) -> str:
    """The fixed transactional id of a publish slot."""
    return f"{settings.job}-{slot}"


def _record(row: Any, epochs: Epochs) -> Record:
    return Record(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        epoch=epochs.of(row.topic, row.partition, row.offset),
        timestamp=row.timestamp,
        key=None if row.key is None else bytes(row.key),
        value=None if row.value is None else bytes(row.value),
        headers=tuple((h.key, None if h.value is None else bytes(h.value)) for h in row.headers or ()),
    )
