"""Measure the fan-out of one change: a repository of the demo, which many users starred, gets another description.

Promises: it runs the Trial of `statestore try`, publishes all documents before the change, and counts the messages of each
document. The memory figure is resident memory of Linux: that of the round with the most, minus that before the change. The
store is a map in memory, or DynamoDB Local with as many threads as a worker has. Does not: settle the changes before that
change, because an index without lag shows them at once.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.steps import demo_plan, resident_memory
from processor.cli.options import print_progress, set_embedded_credentials
from processor.engine.protocol.open_changes import OpenChanges
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import MemoryOutbox, Trial, batches
from processor.environment.programs.servers import DYNAMODB_LOCAL_NAME, start_dynamodb_local
from processor.environment.settings.settings import Settings
from processor.values import canonical_json
from processor.values.record import Message, Record
from statestore.dynamodb.store import DynamoStore
from statestore.store import Store

MEMORY = "memory"
REPO = {"owner": "acme", "name": "tool"}
SETUP_BATCH = 100
"""Records in a batch before the change. A small batch frees little memory, which would hide the memory of a round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutCost:
    """The cost of a change that affects `roots` documents.

    `seconds`: until the job sent the last of them. `settled`: seconds until all is settled. `rounds`: until then. `memory`:
    MB above the memory before the change. `documents`: messages sent. `repeated`: messages of documents that were sent
    before. `requests`: by operation, until all is settled.
    """

    store: str
    roots: int
    seconds: float
    settled: float
    rounds: int
    memory: float
    documents: int
    repeated: int
    requests: Mapping[str, int]


@dataclass(slots=True)
class CountingOutbox(MemoryOutbox):
    """An outbox that stores no message.

    `times` counts the messages of each user. `last` is the time of the last message. `most` is the most resident memory (MB)
    at the end of a round.
    """

    times: bytearray = field(default_factory=bytearray)
    last: float = 0.0
    most: float = 0.0

    def send(self, message: Message) -> None:
        self.times[int(canonical_json.loads(message.key or b"")["email"])] += 1
        self.last = perf_counter()

    def flush(self) -> None:
        self.most = max(self.most, resident_memory())


def measure_fan_out(store: str, roots: int) -> FanOutCost:
    """Runs the change once with this many documents, on one of `STORES`."""
    outbox = CountingOutbox(times=bytearray(roots))
    settings = Settings()
    with STORES[store](settings) as other_store:
        trial = Trial(plan=demo_plan(), settings=settings, published=outbox, other_store=other_store)
        for chunk in batches(_starred_repo(roots), SETUP_BATCH):
            trial.batch(chunk)
            trial.driver.progress.open_changes = OpenChanges(wait=settings.wait_seconds, settle=settings.settle_seconds)
        gc.collect()
        tune_garbage_collector()
        outbox.times = bytearray(roots)
        base = outbox.most = resident_memory()
        requests, before, began = trial.store.requests.copy(), trial.driver.rounds.number, perf_counter()
        trial.batch([_repo(roots)])
        trial.finish()
        settled = perf_counter() - began
        return FanOutCost(
            store=store,
            roots=roots,
            seconds=outbox.last - began,
            settled=settled,
            rounds=trial.driver.rounds.number - before,
            memory=outbox.most - base,
            documents=sum(outbox.times),
            repeated=sum(times - 1 for times in outbox.times if times),
            requests=trial.store.requests - requests,
        )


@contextmanager
def _memory(_settings: Settings) -> Iterator[Store | None]:
    """The memory store of the trial."""
    yield None


@contextmanager
def _dynamodb_local(settings: Settings) -> Iterator[Store | None]:
    """A table of DynamoDB Local."""
    set_embedded_credentials()
    with TemporaryDirectory(prefix="statestore-bench-", ignore_cleanup_errors=True) as directory:
        part = start_dynamodb_local(Path(directory) / "dynamodb", progress=print_progress)
        try:
            store = DynamoStore(
                table="fan-out", endpoint_url=part.endpoint, region="us-east-1", threads=settings.threads
            )
            store.create(settings.slots)
            yield store
            store.close()
        finally:
            part.stop()


STORES: Mapping[str, Callable[[Settings], AbstractContextManager[Store | None]]] = {
    MEMORY: _memory,
    DYNAMODB_LOCAL_NAME: _dynamodb_local,
}


def _starred_repo(roots: int) -> Iterator[Record]:
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
