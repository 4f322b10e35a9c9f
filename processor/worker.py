"""What runs in Spark's Python workers: the two parts of a round, over real clients.

Only plain data crosses to here. Clients are made once per Python worker, after the fork; a producer of a publish slot once per
task, since making it is the fence.
"""

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from processor.batch import Round, Written, publish_part, publish_slot, write_part
from processor.errors import Fenced
from processor.kafka import Outbox, TransactionalOutbox
from processor.lockstep import Lockstep
from processor.model.change import Record
from processor.model.epochs import Epochs
from processor.model.touch import Root
from processor.settings import Settings
from registry.model import Lease
from registry.repository import Registry
from statestore.dynamodb import DynamoStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a task gets: the round, and how to reach the outside. `record_epochs`: the epoch of each record."""

    round: Round
    settings: Settings
    lease: Lease
    record_epochs: Epochs


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a publish slot did; `written`: what the write parts before it did, handed on to the driver."""

    slot: int
    attempt: int
    tally: dict[str, int]
    requests: dict[str, int]
    written: tuple[Written, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    store: DynamoStore
    pool: ThreadPoolExecutor
    rejects: Outbox
    registry: Registry


@lru_cache(maxsize=1)
def clients(settings: Settings) -> Clients:
    """This process's clients."""
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


def write_rows(rows: Iterable[Any], task: Task) -> Iterator[tuple[int, Root | Written]]:
    """The write part over one Spark partition: (publish slot, root) pairs, and one (0, what was written)."""
    mine = clients(task.settings)
    before = mine.store.requests.copy()
    lockstep = Lockstep(store=mine.store, outbox=mine.rejects, pool=mine.pool)
    written = write_part((_record(row, task.record_epochs) for row in rows), task.round, lockstep, mine.rejects)
    written.tally.update({f"request {name}": n for name, n in (mine.store.requests - before).items()})
    for root in written.roots:
        yield publish_slot(root, task.settings.publish_slots), root
    yield 0, Written(roots=frozenset(), tally=written.tally, ends=written.ends)


def publish_roots(slot: int, pairs: Iterable[tuple[int, Root | Written]], task: Task) -> Iterator[Published]:
    """The publish part of one slot. The slot is taken at the broker, then the lease is checked: whoever took over since has
    fenced this producer, or is found here."""
    roots: list[Root] = []
    written: list[Written] = []
    for _, what in pairs:
        if isinstance(what, Written):
            written.append(what)
        else:
            roots.append(what)
    if not roots:
        yield Published(slot=slot, attempt=0, tally={}, requests={}, written=tuple(written))
        return
    mine = clients(task.settings)
    before = mine.store.requests.copy()
    outbox = TransactionalOutbox(
        task.settings.bootstrap_servers, dict(task.settings.kafka), transactional_id(task.settings, slot)
    )
    attempt = mine.registry.begin_attempt(task.lease, slot, task.round.number)
    if attempt is None:
        raise Fenced(f"job {task.lease.job}: generation {task.lease.generation} lost its lease; another job took over")
    lockstep = Lockstep(store=mine.store, outbox=outbox, pool=mine.pool)
    tally = publish_part(roots, task.round, slot, attempt, lockstep)
    requests = dict(mine.store.requests - before)
    yield Published(slot=slot, attempt=attempt, tally=dict(tally), requests=requests, written=tuple(written))


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
