"""What many products over one state cost: an event, by how many products read what it changed; and planning them all.

The same pull requests are changed in one column at a time: one that no product reads, one that a single product reads, one
that all read (`benchmarks.definitions`). Promises: CPU seconds of the batches, decoding included; every product's documents
stand before the first of them. Does not: settle within what is measured.
"""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

from benchmarks.definitions import generated
from benchmarks.steps import BATCH, Discard, history
from processor.definitions.load import load
from processor.lockstep import calm_collector
from processor.model import canonical_json
from processor.model.change import Record
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import Trial, batches

COLUMNS = {"none": "body", "one": "created_at", "all": "title"}
"""Columns of a pull request, by how many products read them."""
MOMENT = "2020-01-01T00:00:00Z"
"""A value that each of them takes, and none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Changes of a column that `readers` of the `products` read: CPU milliseconds and documents sent, per event."""

    products: int
    readers: str
    events: int
    cpu: float
    documents: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """CPU seconds that definitions of so many products take: to be read and checked, and to become a plan with slots."""

    products: int
    load: float
    plan: float


def reads(products: int, events: int, users: int) -> list[Read]:
    """What changes cost under so many products, after a history of `events` events of `users` users."""
    plan = plan_alone(load(generated(products)), Settings().slots)
    trial = Trial(plan=plan, settings=Settings(), published=Discard(), rejects=Discard())
    records = history(events, users)
    _told(trial, records)
    gc.collect()
    calm_collector()
    return [_read(trial, records, products, readers) for readers in COLUMNS]


def planned(products: int) -> Planned:
    """Plans so many products, from their texts."""
    texts = generated(products)
    began = process_time()
    definitions = load(texts)
    loaded = process_time()
    plan_alone(definitions, Settings().slots)
    return Planned(products=products, load=loaded - began, plan=process_time() - loaded)


def _read(trial: Trial, records: list[Record], products: int, readers: str) -> Read:
    changes = list(_changes(trial, records, COLUMNS[readers]))
    before = trial.tally["published"]
    cpu = _told(trial, changes)
    documents = trial.tally["published"] - before
    n = len(changes)
    return Read(products=products, readers=readers, events=n, cpu=1000 * cpu / n, documents=documents / n)


def _told(trial: Trial, records: list[Record]) -> float:
    """Tells records and settles them; the CPU seconds of the batches alone."""
    cpu = 0.0
    for chunk in batches(records, BATCH):
        cpu -= process_time()
        trial.batch(chunk)
        cpu += process_time()
        trial.settle()
    trial.finish()
    return cpu


def _changes(trial: Trial, records: list[Record], column: str) -> Iterator[Record]:
    """Every pull request that there is at the end, with another value in one column; the others as the history has them."""
    last = {record.key: record for record in records if record.topic == "pull_request"}
    offset = trial.ends["pull_request", 0]
    for record in last.values():
        if record.value is not None:
            row = {**canonical_json.loads(record.value), column: MOMENT}
            yield replace(record, offset=offset, value=canonical_json.encode(row))
            offset += 1
