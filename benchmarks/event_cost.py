"""Measure what an event of the history costs on DynamoDB: request units and requests, by purpose, settling included.

    python -m benchmarks.event_cost [--events 40000] [--wide] [--unread] [--keep declared] [--lag 0 | --consistent]
                                    [--stars 10 1000 100000] [--compare]

`--wide` adds 2.5 KB to each row, and `--unread` makes half of the events updates that no product reads (`inputs.real_rows`).
`--compare` prints the dollars of the four histories, and of the wide ones with `keep: declared`, in one table.

Promises: units as AWS documents them (`statestore.memory`), of the second half of the events, with the settle work of that
half. Does not: meet DynamoDB; the store is a map in memory, and its indexes answer `lag` seconds late.
"""

import argparse
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from time import process_time
from typing import Any, get_args

from benchmarks.inputs.history import generate_history
from benchmarks.inputs.real_rows import widened, with_unread_updates
from benchmarks.steps import BATCH, DiscardingOutbox, demo_plan, number_records
from processor.counts import Count
from processor.engine.rounds.round import LaneResult, Round, Stage
from processor.engine.rounds.round_runner import InProcessExecutor
from processor.engine.rounds.trial import Trial, batches
from processor.engine.rounds.write_stage import write_stage
from processor.environment.settings.settings import Settings
from processor.tools.inspect.prices import BILLING, DEFAULT, Prices
from processor.values import canonical_json
from processor.values.entity import KeepChoice
from processor.values.record import Record
from statestore.keys import Key
from statestore.memory import MeteredStore
from statestore.store import Delete, Done, Item, Page, Query, Refused, Write, WriteOutcome

WRITES = {"TABLE": "row", "LEDGER": "ledger", "OPEN": "open changes"}
"""The purpose of a write, by the partition that it changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCost:
    """The cost of `events` events. `units`: request units by purpose, of which those in `reads` are read units; `asked`:
    the requests by purpose; `requests`: by DynamoDB's names. `cpu`: seconds. `documents`: sent in the whole history, of them
    `corrections` by settling."""

    events: int
    units: Counter[str]
    asked: Counter[str]
    reads: frozenset[str]
    requests: Counter[str]
    cpu: float
    documents: int
    corrections: int

    def dollars(self, purpose: str, prices: Prices = DEFAULT) -> Decimal:
        """Dollars a million events."""
        return self.units[purpose] * (prices.read if purpose in self.reads else prices.write) / self.events

    def total(self, prices: Prices = DEFAULT) -> Decimal:
        """Dollars a million events, for all purposes."""
        return sum((self.dollars(purpose, prices) for purpose in self.units), Decimal(0))


class PurposeStore(MeteredStore):
    """A store that counts units by purpose. `reading`: the purpose of the reads now."""

    def __init__(self, slots: int, *, lag: float, clock: Any) -> None:
        super().__init__(slots, lag=lag, clock=clock)
        self.units: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.reading = "other reads"

    def write(self, write: Write) -> WriteOutcome:
        with self._counting(write.key):
            return super().write(write)

    def delete(self, delete: Delete) -> Done | Refused:
        with self._counting(delete.key):
            return super().delete(delete)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        with self._counting():
            return super().get(keys)

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        with self._counting():
            return super().get_weak(keys)

    def query(self, query: Query) -> list[Item]:
        with self._counting():
            return super().query(query)

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        with self._counting():
            return super().page(source, after, limit)

    @contextmanager
    def _counting(self, written: Key | None = None) -> Iterator[None]:
        before, requests = (self.written - self.copied, self.copied, self.read_units), self.requests.total()
        yield
        purpose = WRITES.get(written.pk.split("#")[0], "end of the round") if written else "row"
        self.asked[purpose if written else self.reading] += self.requests.total() - requests
        self.units[purpose] += self.written - self.copied - before[0]
        self.units["its index copies"] += self.copied - before[1]
        self.units[self.reading] += self.read_units - before[2]  # type: ignore[assignment]


class PurposeExecutor(InProcessExecutor):
    """An executor that names the purpose of the reads of each stage."""

    def run_round(self, stage: Stage, work: Any, round_: Round, overlay: Any) -> list[LaneResult]:
        store: Any = self.store
        store.reading = "find roots" if stage is write_stage else "settle"
        return InProcessExecutor.run_round(self, stage, work, round_, overlay)


def cost_records(events: int, users: int, *, wide: bool = False, unread: bool = False) -> list[Record]:
    """The records of a history. `wide`, `unread`: as the options."""
    lines = generate_history(1, events // 2 if unread else events, users)
    lines = widened(lines) if wide else lines
    return number_records(with_unread_updates(lines, 1) if unread else lines)


def measure_event_cost(
    records: Sequence[Record], lag: float = 0.0, *, consistent: bool = False, keep: KeepChoice = "all"
) -> EventCost:
    """The cost of the second half of some records. `consistent`: whether the store says that its indexes are never late; `keep`:
    of all entities."""
    settings = Settings()
    outbox = DiscardingOutbox()
    trial = Trial(plan=demo_plan(keep), settings=settings, published=outbox)
    store = PurposeStore(settings.slots, lag=lag, clock=trial.clock.now)
    store.consistent = consistent

    def begin(_: Round) -> tuple[int, DiscardingOutbox]:
        if store.reading == "find roots":
            store.reading = "assemble"
        return 0, outbox

    trial.driver.progress.store = store
    trial.driver.rounds.executor = PurposeExecutor(store=store, begin=begin, rejects=DiscardingOutbox())
    half = len(records) // 2
    _process(trial, records[:half])
    trial.finish()
    units, asked, requests, cpu = store.units.copy(), store.asked.copy(), store.requests.copy(), process_time()
    _process(trial, records[half:])
    trial.finish()
    return EventCost(
        events=len(records) - half,
        units=store.units - units,
        asked=store.asked - asked,
        reads=frozenset({"find roots", "assemble", "settle"}),
        requests=store.requests - requests,
        cpu=process_time() - cpu,
        documents=outbox.sent,
        corrections=trial.tally[Count.CORRECTIONS],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """The cost of a batch of ten stars of one repository that has `stars` stars, settling included: units, and CPU seconds. The
    sample that settling takes in full is left out."""

    stars: int
    written: int
    read: Decimal
    cpu: float


def measure_group_cost(stars: int) -> GroupCost:
    """The cost of ten more stars of a repository with this many."""
    trial = Trial(plan=demo_plan(), settings=Settings(), published=DiscardingOutbox())
    store = MeteredStore(trial.settings.slots, clock=trial.clock.now)
    trial = Trial(
        plan=trial.plan, settings=trial.settings, published=trial.published, clock=trial.clock, other_store=store
    )
    trial.driver.progress.open_changes.samples = False
    records = [_star(n) for n in range(stars + 10)]
    for chunk in batches(records[:stars], 10_000):
        trial.batch(chunk)
    trial.finish()
    written, read, cpu = store.written, store.read_units, process_time()
    trial.batch(records[stars:])
    trial.finish()
    return GroupCost(
        stars=stars, written=store.written - written, read=store.read_units - read, cpu=process_time() - cpu
    )


def _star(n: int) -> Record:
    star = {"username": f"user{n}", "repo_owner": "popular", "repo_name": "repo"}
    return Record(
        topic="star",
        partition=0,
        offset=n,
        timestamp=0,
        key=canonical_json.encode(star),
        value=canonical_json.encode(star),
    )


def _process(trial: Trial, records: Sequence[Record]) -> None:
    for chunk in batches(records, BATCH):
        trial.batch(chunk)
        trial.background_work()


def format_event_cost(cost: EventCost) -> str:
    """The table by purpose, in Markdown."""
    purposes = sorted(cost.units, key=lambda purpose: (purpose in cost.reads, purpose))
    lines = ["| purpose | requests per event | units per event | $ per million events |", "|---|---|---|---|"]
    for purpose in purposes:
        kind = "read" if purpose in cost.reads else "write"
        asked, units = cost.asked[purpose] / cost.events, cost.units[purpose] / cost.events
        lines.append(f"| {purpose} ({kind}) | {asked:.2f} | {units:.3f} | {cost.dollars(purpose):.2f} |")
    total = cost.total()
    named = ", ".join(f"{name} {n / cost.events:.2f}" for name, n in sorted(cost.requests.items()))
    lines.append(f"| all | {cost.requests.total() / cost.events:.2f} | | {total:.2f} |")
    lines.append("")
    lines.append(
        f"At a steady rate, $ a million events: {', '.join(f'{n} {cost.total(p):.2f}' for n, p in BILLING.items())}."
    )
    lines.append(f"Requests per event: {named}.")
    lines.append(f"{cost.documents:,} documents, {cost.corrections:,} of them corrections; {cost.cpu:.1f} CPU seconds.")
    return "\n".join(lines)


def format_comparison(costs: Mapping[str, EventCost]) -> str:
    """The table of histories, in Markdown: $ a million events."""
    lines = [f"| history | {' | '.join(BILLING)} | the row | its index copies |", "|---" * (len(BILLING) + 3) + "|"]
    for history, cost in costs.items():
        parts = [cost.total(prices) for prices in BILLING.values()]
        parts += [cost.dollars("row"), cost.dollars("its index copies")]
        lines.append(f"| {history} | {' | '.join(f'{part:.2f}' for part in parts)} |")
    return "\n".join(lines)


def compare_histories(events: int, users: int) -> dict[str, EventCost]:
    """The cost of each history, by its options."""
    kinds: list[tuple[bool, bool, KeepChoice]] = [(w, u, "all") for w in (False, True) for u in (False, True)]
    kinds += [(True, unread, "declared") for unread in (False, True)]
    costs = {}
    for wide, unread, keep in kinds:
        names = ["--wide"] * wide + ["--unread"] * unread + [f"--keep {keep}"] * (keep != "all")
        records = cost_records(events, users, wide=wide, unread=unread)
        costs[" ".join(names) or "the mix"] = measure_event_cost(records, keep=keep)
    return costs


def format_group_cost(costs: Sequence[GroupCost]) -> str:
    """The table of groups, in Markdown."""
    lines = ["| stars of the repository | write units | read units | CPU ms |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {c.stars:,} | {c.written} | {c.read:g} | {1000 * c.cpu:.1f} |" for c in costs)])


def main() -> None:
    options = argparse.ArgumentParser(description="Measures what an event of the history costs on DynamoDB.")
    options.add_argument("--events", type=int, default=40_000)
    options.add_argument("--users", type=int, default=3_000)
    options.add_argument("--lag", type=float, default=0.0, help="seconds after which the indexes show a write")
    options.add_argument("--stars", type=int, nargs="*", default=[], help="stars of a popular repository")
    options.add_argument("--consistent", action="store_true", help="a store whose indexes are never late")
    options.add_argument("--wide", action="store_true", help="rows of 2.5 KB more that no product reads")
    options.add_argument("--unread", action="store_true", help="half of the events are updates that no product reads")
    options.add_argument("--keep", choices=get_args(KeepChoice), default="all", help="the columns that rows store")
    options.add_argument("--compare", action="store_true", help="the dollars of all histories in one table")
    given = options.parse_args()
    if given.compare:
        print(format_comparison(compare_histories(given.events, given.users)))
        return
    records = cost_records(given.events, given.users, wide=given.wide, unread=given.unread)
    cost = measure_event_cost(records, given.lag, consistent=given.consistent, keep=given.keep)
    print(format_event_cost(cost))
    print(format_group_cost([measure_group_cost(stars) for stars in given.stars]))


if __name__ == "__main__":
    main()
