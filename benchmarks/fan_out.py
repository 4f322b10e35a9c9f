"""One change with many documents above it: a repository of the demo that so many users starred gets another description.

Promises: `try`'s Trial over the memory store, all documents out before the change; each document's messages are counted.
Memory is resident memory of Linux, of the round that held most, above what was resident before the change. The store is a map in
memory, or DynamoDB Local, asked by as many threads as a worker has. Does not: settle what came before the change, which an index
without lag shows at once.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.steps import plan, resident
from processor.cli.options import embedded_credentials, say
from processor.local.dynamodb import LOCAL, start_dynamodb_local
from processor.lockstep import calm_collector
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.open_changes import OpenChanges
from processor.model.step import Message
from processor.settings import Settings
from processor.trial import MemoryOutbox, Trial, batches
from statestore.dynamodb import DynamoStore

MEMORY = "memory"
REPO = {"owner": "acme", "name": "tool"}
SMALL = 100
"""Records a batch before the change: few, so that the memory that it gives back hides little of a round's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A change above which stand `roots` documents: seconds until the last of them was sent and until all was settled, rounds
    until then, MB above the base, documents sent, those of them that were sent before, and the requests until all was settled."""

    store: str
    roots: int
    seconds: float
    settled: float
    rounds: int
    memory: float
    documents: int
    twice: int
    requests: Mapping[str, int]


@dataclass(slots=True)
class Seen(MemoryOutbox):
    """An outbox that holds no message: it counts those of each user, knows when the last one came, and the most memory (MB) that
    was resident when a round's were all out."""

    times: bytearray = field(default_factory=bytearray)
    last: float = 0.0
    most: float = 0.0

    def send(self, message: Message) -> None:
        self.times[int(canonical_json.loads(message.key or b"")["email"])] += 1
        self.last = perf_counter()

    def flush(self) -> None:
        self.most = max(self.most, resident())


def spread(store: str, roots: int) -> Spread:
    """The change, once, above so many documents, in one of `STORES`."""
    seen = Seen(times=bytearray(roots))
    trial = Trial(plan=plan(), settings=Settings(), published=seen)
    with STORES[store](trial):
        for chunk in batches(_starred(roots), SMALL):
            trial.batch(chunk)
            trial.open = OpenChanges(wait=trial.settings.wait_seconds, settle=trial.settings.settle_seconds)
        gc.collect()
        calm_collector()
        seen.times = bytearray(roots)
        base = seen.most = resident()
        requests, before, began = trial.store.requests.copy(), trial.run.through, perf_counter()
        trial.batch([_repo(roots)])
        trial.finish()
        settled = perf_counter() - began
        return Spread(
            store=store,
            roots=roots,
            seconds=seen.last - began,
            settled=settled,
            rounds=trial.run.through - before,
            memory=seen.most - base,
            documents=sum(seen.times),
            twice=sum(times - 1 for times in seen.times if times),
            requests=trial.store.requests - requests,
        )


@contextmanager
def _local(trial: Trial) -> Iterator[None]:
    """Has the trial ask DynamoDB Local."""
    embedded_credentials()
    with (
        TemporaryDirectory(prefix="statestore-bench-", ignore_cleanup_errors=True) as directory,
        ThreadPoolExecutor(trial.settings.threads) as trial.pool,
    ):
        part = start_dynamodb_local(Path(directory) / "dynamodb", progress=say)
        try:
            trial.store = store = DynamoStore(table="fan-out", endpoint_url=part.endpoint, region="us-east-1")
            store.create_table(trial.settings.slots)
            yield
            store.close()
        finally:
            part.stop()


STORES: Mapping[str, Callable[[Trial], AbstractContextManager[object]]] = {MEMORY: nullcontext, LOCAL: _local}


def _starred(roots: int) -> Iterator[Record]:
    yield _repo(0)
    for n in range(roots):
        yield _record("user", n, {"email": str(n)}, {"id": n, "email": str(n), "username": f"user{n}"})
        star = {"username": f"user{n}", "repo_owner": REPO["owner"], "repo_name": REPO["name"]}
        yield _record("star", n, star, star)


def _repo(offset: int) -> Record:
    return _record("repo", offset, REPO, {**REPO, "description": f"Said at {offset}"})


def _record(topic: str, offset: int, key: Mapping[str, Any], row: Mapping[str, Any]) -> Record:
    key_bytes, row_bytes = canonical_json.encode(dict(key)), canonical_json.encode(dict(row))
    return Record(topic=topic, partition=0, offset=offset, key=key_bytes, value=row_bytes)
