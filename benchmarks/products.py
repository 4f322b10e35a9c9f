"""Measure many products over one state: the cost of an event by the number of products that read its column, and of planning.

The benchmark changes the same pull requests in one column at a time: first a column that no product reads, then one that a single
product reads, then one that all read (`benchmarks.definitions`). Promises: CPU seconds of the batches, decoding included; all
products have published their documents before the first batch. Does not: include settling in the figures.
"""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

from benchmarks.definitions import generate_definitions
from benchmarks.steps import BATCH, DiscardingOutbox, generate_records
from processor.counts import Count
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values import canonical_json
from processor.values.record import Record

COLUMNS = {"none": "body", "one": "created_at", "all": "title"}
"""Columns of a pull request, by how many products read them."""
NEW_VALUE = "2020-01-01T00:00:00Z"
"""A value that each of these columns can have, and that no row has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductCost:
    """Changes of a column that `readers` of the `products` read: CPU milliseconds and documents sent, per event."""

    products: int
    readers: str
    events: int
    cpu: float
    documents: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningCost:
    """CPU seconds for the definitions of this many products: `load` to read and check them, `plan` to make a plan with slots."""

    products: int
    load: float
    plan: float


def measure_products(products: int, events: int, users: int) -> list[ProductCost]:
    """The cost of changes with this many products, after a history of `events` events and `users` users."""
    plan = plan_alone(load(generate_definitions(products)), Settings().slots)
    trial = Trial(plan=plan, settings=Settings(), published=DiscardingOutbox(), rejects=DiscardingOutbox())
    records = generate_records(events, users)
    _run_batches(trial, records)
    gc.collect()
    tune_garbage_collector()
    return [_measure_column(trial, records, products, readers) for readers in COLUMNS]


def measure_planning(products: int) -> PlanningCost:
    """Plans this many products from their texts."""
    texts = generate_definitions(products)
    began = process_time()
    definitions = load(texts)
    loaded = process_time()
    plan_alone(definitions, Settings().slots)
    return PlanningCost(products=products, load=loaded - began, plan=process_time() - loaded)


def _measure_column(trial: Trial, records: list[Record], products: int, readers: str) -> ProductCost:
    changes = list(_changes(trial, records, COLUMNS[readers]))
    before = trial.tally[Count.PUBLISHED]
    cpu = _run_batches(trial, changes)
    documents = trial.tally[Count.PUBLISHED] - before
    n = len(changes)
    return ProductCost(products=products, readers=readers, events=n, cpu=1000 * cpu / n, documents=documents / n)


def _run_batches(trial: Trial, records: list[Record]) -> float:
    """Runs records in batches and settles them. Returns the CPU seconds of the batches alone."""
    cpu = 0.0
    for chunk in batches(records, BATCH):
        cpu -= process_time()
        trial.batch(chunk)
        cpu += process_time()
        trial.background_work()
    trial.finish()
    return cpu


def _changes(trial: Trial, records: list[Record], column: str) -> Iterator[Record]:
    """Each pull request that exists at the end of the history, with `NEW_VALUE` in one column."""
    last = {record.key: record for record in records if record.topic == "pull_request"}
    offset = trial.committed.offsets["pull_request", 0, 0][1]
    for record in last.values():
        if record.value is not None:
            row = {**canonical_json.loads(record.value), column: NEW_VALUE}
            yield replace(record, offset=offset, value=canonical_json.encode(row))
            offset += 1
