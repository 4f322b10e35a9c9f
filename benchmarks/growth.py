"""Measure how the cost of one event grows with the size of the data, of the definitions and of the run.

    python -m benchmarks.growth [--quick] [--write]

Each row of the table has one size that grows, and an event that is alone in its batch. The exponent is the slope of the cost over
the size, both as logarithms (least squares): 0 for a cost that stays, 1 for a cost that doubles with the size. A row says whether
the document of the event shows what grows. If it does not, an exponent above `LIMITS` is a fault.

Promises: requests, units and bytes are those of DynamoDB's rules (`statestore.memory`), settle work included where the row says
so. CPU is that of the steps, the median of the events, without the store in memory. The clock is simulated. Does not: measure
Spark, Kafka, a network, or Postgres; the tasks get the plan for nothing.
"""

import argparse
import gc
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from math import log
from pathlib import Path
from statistics import mean, median
from time import thread_time
from typing import Any, Final

from benchmarks.definitions import generate_definitions
from benchmarks.products import COLUMNS
from benchmarks.steps import DiscardingOutbox, demo_plan
from benchmarks.tables import format_table, machine_name
from processor.cli.options import print_progress
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import ENTITIES, load, read_directory
from processor.values import canonical_json
from processor.values.record import Message, Record
from statestore.keys import Key
from statestore.memory import MeteredStore
from statestore.store import Delete, Done, Item, Page, Query, Read, Refused, Write, WriteOutcome
from statestore.values import item_size

TABLE = Path(__file__).parent / "growth.md"
SETUP_BATCH = 5_000
EVENTS = 15
"""Events of each size."""
WARM_UP = 3
"""Events before them."""
HOURS: Final = 3_600.0
LIMITS: Final[Mapping[str, float]] = {
    "requests": 0.02,
    "write units": 0.02,
    "read units": 0.02,
    "KB": 0.05,
    "CPU ms": 0.2,
}
"""The largest exponent of a cost that does not grow. CPU also varies with the machine."""


class GaugedStore(MeteredStore):
    """A store that also counts the bytes that it reads, and its own CPU seconds."""

    def __init__(self, slots: int, *, clock: Callable[[], float]) -> None:
        super().__init__(slots, clock=clock)
        self.bytes = 0
        self.cpu = 0.0
        self._inside = False

    @contextmanager
    def _work(self) -> Iterator[None]:
        if self._inside:
            yield
            return
        self._inside, began = True, thread_time()
        try:
            yield
        finally:
            self.cpu += thread_time() - began
            self._inside = False

    def _count(self, items: Collection[Item]) -> None:
        self.bytes += sum(map(item_size, items))

    def read(self, reads: Sequence[Read]) -> list[Page]:
        with self._work():
            return super().read(reads)

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        with self._work():
            return super().write_all(requests)

    def write(self, write: Write) -> WriteOutcome:
        with self._work():
            return super().write(write)

    def delete(self, delete: Delete) -> Done | Refused:
        with self._work():
            return super().delete(delete)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        with self._work():
            found = super().get(keys)
            self._count(found.values())
            return found

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        with self._work():
            found = super().get_weak(keys)
            self._count(found.values())
            return found

    def query(self, query: Query) -> list[Item]:
        with self._work():
            found = super().query(query)
            self._count(found)
            return found

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        with self._work():
            found = super().page(source, after, limit)
            self._count(found.items)
            return found

    def partition(self, pk: str) -> list[Item]:
        with self._work():
            found = super().partition(pk)
            self._count(found)
            return found


@dataclass(slots=True)
class WeighingOutbox(DiscardingOutbox):
    """An outbox that counts bytes, and stores no message."""

    bytes: int = field(default=0)

    def send(self, message: Message) -> None:
        self.bytes += len(message.key or b"") + len(message.value or b"")
        self.sent += 1


@dataclass(slots=True)
class Rows:
    """Makes records of rows; the offsets count the records of each partition."""

    offsets: dict[tuple[str, int], int] = field(default_factory=dict)

    def record(self, topic: str, key: Sequence[str], row: Mapping[str, Any], partition: int = 0) -> Record:
        offset = self.offsets[topic, partition] = self.offsets.get((topic, partition), -1) + 1
        key_bytes = canonical_json.encode({name: row[name] for name in key})
        return Record(
            topic=topic, partition=partition, offset=offset, key=key_bytes, value=canonical_json.encode(dict(row))
        )

    def user(self, number: int, partition: int = 0, **more: Any) -> Record:
        row = {"id": number, "email": f"{number}@example.org", "username": f"user{number}", **more}
        return self.record("user", ["email"], row, partition)

    def star(self, user: int, repo: int) -> Record:
        row = {"username": f"user{user}", "repo_name": f"repo{repo}", "repo_owner": "acme", "created_at": _time(repo)}
        return self.record("star", ["username", "repo_name", "repo_owner"], row)

    def repo(self, number: int) -> Record:
        row = {"owner": "acme", "name": f"repo{number}", "description": f"The repository {number}"}
        return self.record("repo", ["owner", "name"], row)

    def pull_request(self, number: int, **more: Any) -> Record:
        row = {
            "repo": "tool",
            "repo_owner": "acme",
            "index": number,
            "author": f"user{number}",
            "status": "open",
            **more,
        }
        return self.record("pull_request", ["repo", "repo_owner", "index"], row)


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(1_420_070_400 + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """`rows`: the records before the measured events, `events`. `plan`: of the job. `late`: records that come
    right before the measured events, so that their changes are open."""

    plan: Plan
    rows: Sequence[Record]
    events: Sequence[Record]
    late: Sequence[Record] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A row of the table. `grows`: what grows; `event`: what is measured; `begin`: makes the scene of a size. `shown`: whether
    the documents of the event show what grows. `settles`: whether the cost has the settle work of the event."""

    grows: str
    event: str
    sizes: tuple[int, ...]
    begin: Callable[[int], Scene]
    shown: bool = False
    settles: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What was measured of a kind: the costs by their names, one for each size."""

    kind: Kind
    sizes: tuple[int, ...]
    costs: Mapping[str, tuple[float, ...]]

    def exponent(self, cost: str) -> float:
        """The slope of the logarithm of a cost over that of the size."""
        return fit_exponent(self.sizes, self.costs[cost])

    @property
    def faults(self) -> list[str]:
        """The costs that grow with what the event does not touch."""
        return [] if self.kind.shown else [cost for cost, limit in LIMITS.items() if self.exponent(cost) > limit]


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The exponent of a power law through these costs, by least squares of the logarithms. 0 where nothing costs anything."""
    if not any(costs):
        return 0.0
    least = min(cost for cost in costs if cost > 0)
    xs, ys = [log(size) for size in sizes], [log(max(cost, least)) for cost in costs]
    middle, height = mean(xs), mean(ys)
    return sum((x - middle) * (y - height) for x, y in zip(xs, ys, strict=True)) / sum((x - middle) ** 2 for x in xs)


LIST = """
product: newest
root: user
fields: [email]
embed:
  stars: {many: star, on: {username: username}, %s}
"""
NEWEST = "order_by: [-created_at], limit: 50, fields: [repo_name, created_at]"


@lru_cache
def _list_plan(join: str) -> Plan:
    entities = {name: text for name, text in _example().items() if name == ENTITIES}
    return plan_alone(load(entities | {"newest.yaml": LIST % join}), Settings().slots)


@lru_cache
def _products_plan(products: int) -> Plan:
    return plan_alone(load(generate_definitions(products)), Settings().slots)


def _example() -> dict[str, str]:
    return dict(read_directory(Path(__file__).parents[1] / "examples" / "github"))


def _popular(stars: int) -> Scene:
    """One more star of a repository with this many."""
    rows = Rows()
    before = [rows.repo(0), *(rows.star(n, 0) for n in range(stars))]
    users = range(stars, stars + WARM_UP + EVENTS)
    before += map(rows.user, users)
    return Scene(plan=demo_plan(), rows=before, events=[rows.star(n, 0) for n in users])


def _list(plan: Callable[[], Plan], repos: bool = False) -> Callable[[int], Scene]:
    """One more star of a user with this many. `repos`: with the repositories."""

    def begin(stars: int) -> Scene:
        rows, numbers = Rows(), range(stars + WARM_UP + EVENTS)
        before = [rows.user(0), *map(rows.repo, numbers if repos else ()), *(rows.star(0, n) for n in numbers[:stars])]
        return Scene(plan=plan(), rows=before, events=[rows.star(0, n) for n in numbers[stars:]])

    return begin


def _products(readers: str) -> Callable[[int], Scene]:
    """A change of a column of a pull request that these products read."""

    def begin(products: int) -> Scene:
        rows, numbers = Rows(), range(WARM_UP + EVENTS)
        before = [record for n in numbers for record in (rows.user(n), rows.pull_request(n))]
        changes = [rows.pull_request(n, **{COLUMNS[readers]: "2020-01-01T00:00:00Z"}) for n in numbers]
        return Scene(plan=_products_plan(products), rows=before, events=changes)

    return begin


def _updates(rows: Rows, number: Callable[[int], int], seconds: int = WARM_UP + EVENTS) -> list[Record]:
    """Updates of one user after the other, each of which changes the document."""
    return [rows.user(number(n), id=1_000_000 + n) for n in range(seconds)]


def _entities(entities: int) -> Scene:
    """An update of a user among other entities, each with a product of its own."""
    rows, files = Rows(), _example()
    for n in range(entities):
        files[ENTITIES] += f"\nother{n}: {{key: [id], columns: {{id: int, user_id: int, name: string}}}}\n"
        files[f"of_other{n}.yaml"] = f"product: of_other{n}\nroot: other{n}\nfields: [id, name]\n"
    before = [rows.user(n) for n in range(WARM_UP + EVENTS)]
    return Scene(plan=plan_alone(load(files), Settings().slots), rows=before, events=_updates(rows, lambda n: n))


def _partitions(partitions: int) -> Scene:
    """An update of a user in a topic with many partitions."""
    rows = Rows()
    before = [rows.user(n, partition=n) for n in range(partitions)]
    before += [rows.user(partitions + n) for n in range(WARM_UP + EVENTS)]
    return Scene(plan=demo_plan(), rows=before, events=_updates(rows, lambda n: partitions + n))


def _open(changes: int) -> Scene:
    """An update of a user while changes of other users are open."""
    rows = Rows()
    before = [rows.user(n) for n in range(WARM_UP + EVENTS)]
    late = [rows.user(1_000 + n) for n in range(changes)]
    return Scene(plan=demo_plan(), rows=before, late=late, events=_updates(rows, lambda n: n))


def _roots(roots: int) -> Scene:
    """An update of one user among others."""
    rows = Rows()
    before = [rows.user(n) for n in range(max(roots, WARM_UP + EVENTS))]
    return Scene(plan=demo_plan(), rows=before, events=_updates(rows, lambda n: n))


LENGTHS = (10, 100, 1_000, 10_000)
NUMBERS = (1, 10, 100, 1_000)
KINDS = (
    Kind(grows="stars of the repository", event="another user stars it", sizes=LENGTHS, begin=_popular),
    Kind(
        grows="stars of the user, all shown with their repositories",
        event="one more star",
        sizes=LENGTHS,
        begin=_list(demo_plan, repos=True),
        shown=True,
    ),
    Kind(
        grows="stars of the user, the newest 50 shown",
        event="one more star",
        sizes=LENGTHS[1:],
        begin=_list(lambda: _list_plan(NEWEST)),
    ),
    Kind(
        grows="stars of the user, the newest 50 with `ordered: true`",
        event="one more star",
        sizes=LENGTHS[1:],
        begin=_list(lambda: _list_plan(f"{NEWEST}, ordered: true")),
    ),
    Kind(
        grows="stars of the user, their `count(*)` shown",
        event="one more star",
        sizes=LENGTHS,
        begin=_list(lambda: _list_plan("value: count(*)")),
    ),
    Kind(grows="products, none reads the column", event="an update", sizes=NUMBERS, begin=_products("none")),
    Kind(grows="products, one reads the column", event="an update", sizes=NUMBERS, begin=_products("one")),
    Kind(grows="products, all read the column", event="an update", sizes=NUMBERS, begin=_products("all"), shown=True),
    Kind(grows="other entities with a product", event="an update", sizes=NUMBERS, begin=_entities),
    Kind(grows="partitions of the topic", event="an update", sizes=NUMBERS, begin=_partitions),
    Kind(
        grows="open changes of other rows",
        event="an update, without settling",
        sizes=LENGTHS,
        begin=_open,
        settles=False,
    ),
    Kind(grows="roots", event="an update", sizes=LENGTHS, begin=_roots),
)
UPTIME = Kind(grows="hours of the run, an event each 10 s", event="an update", sizes=(1, 2, 4, 8, 12), begin=_roots)


@dataclass(slots=True)
class Gauge:
    """What the events of a trial cost: `read` gives the costs since the last call, by their names."""

    trial: Trial
    store: GaugedStore
    outbox: WeighingOutbox
    before: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = self._now()

    def read(self) -> dict[str, float]:
        now = self._now()
        found = {name: value - self.before[name] for name, value in now.items()}
        self.before = now
        return found

    def _now(self) -> dict[str, float]:
        store = self.store
        return {
            "requests": store.requests.total(),
            "write units": store.written,
            "read units": float(store.read_units),
            "KB": (store.bytes + self.outbox.bytes) / 1_000,
            "CPU ms": 1_000 * (thread_time() - store.cpu),
        }


def _gauge(plan: Plan) -> Gauge:
    outbox, settings = WeighingOutbox(), Settings()
    trial = Trial(plan=plan, settings=settings, published=outbox)
    store = GaugedStore(settings.slots, clock=trial.clock.now)
    trial = Trial(plan=plan, settings=settings, published=outbox, clock=trial.clock, other_store=store)
    trial.driver.progress.open_changes.samples = False
    return Gauge(trial, store, outbox)


def _typical(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The means of the counts, and the median of CPU."""
    return {name: (median if name == "CPU ms" else mean)([one[name] for one in found]) for name in LIMITS}


def measure_size(kind: Kind, size: int) -> dict[str, float]:
    """The costs of an event at a size."""
    scene = kind.begin(size)
    gauge = _gauge(scene.plan)
    trial = gauge.trial
    for chunk in batches(scene.rows, SETUP_BATCH):
        trial.batch(chunk)
    trial.finish()
    trial.batch_seconds = 0.0
    for chunk in batches(scene.late, SETUP_BATCH):
        trial.batch(chunk)
    gc.collect()
    tune_garbage_collector()
    found = []
    for record in scene.events:
        gauge.read()
        trial.batch([record])
        if kind.settles:
            trial.finish()
        found.append(gauge.read())
    return _typical(found[WARM_UP:])


def measure_growth(kind: Kind, sizes: Sequence[int]) -> Growth:
    """The costs of a kind at these sizes."""
    return _growth(kind, sizes, [measure_size(kind, size) for size in sizes])


def measure_uptime(hours: Sequence[int], seconds: float = 10.0, users: int = 100) -> Growth:
    """The costs of an event at these ages of one run, whose users change in turn: each the mean of the last `users` events."""
    scene = _roots(users)
    gauge = _gauge(scene.plan)
    gauge.trial.batch(scene.rows)
    gauge.trial.finish()
    rows, found, at_hours = Rows({("user", 0): users}), [], []
    tune_garbage_collector()
    for number in range(round(max(hours) * HOURS / seconds)):
        gauge.read()
        gauge.trial.batch([rows.user(number % users, id=1_000_000 + number)])
        gauge.trial.advance(seconds - gauge.trial.batch_seconds)
        found.append(gauge.read())
        if (number + 1) * seconds / HOURS in hours:
            at_hours.append(_typical(found[-users:]))
    return _growth(UPTIME, hours, at_hours)


def _growth(kind: Kind, sizes: Sequence[int], found: Sequence[Mapping[str, float]]) -> Growth:
    return Growth(kind=kind, sizes=tuple(sizes), costs={name: tuple(costs[name] for costs in found) for name in LIMITS})


def format_growth(found: Sequence[Growth]) -> str:
    """The table, in Markdown: each cost at the smallest and at the largest size, with its exponent."""
    head = ("what grows", "event", "sizes", *LIMITS, "shown", "grows")
    rows = [
        (
            one.kind.grows,
            one.kind.event,
            ", ".join(f"{size:,}" for size in one.sizes),
            *(
                f"{_figure(costs[0])} to {_figure(costs[-1])} ({one.exponent(name):.2f})"
                for name, costs in one.costs.items()
            ),
            "yes" if one.kind.shown else "no",
            ", ".join(one.faults) or "",
        )
        for one in found
    ]
    return format_table(head, rows)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    """Prints the table; with --write, writes it into its file."""
    options = argparse.ArgumentParser(description="Measures how the cost of an event grows.")
    options.add_argument("--quick", action="store_true", help="the small sizes only, to test the benchmark itself")
    options.add_argument("--only", default="", help="the rows whose first column has this text")
    options.add_argument("--write", action="store_true", help=f"write the table into {TABLE.name}")
    given = options.parse_args()
    if given.write and (given.quick or given.only):
        options.error("--write needs all rows at all sizes: leave out --quick and --only")
    found = []
    for kind in (*KINDS, UPTIME):
        if given.only in kind.grows:
            print_progress(f"{kind.grows}: {', '.join(map(str, kind.sizes))}")
            sizes = kind.sizes[:2] if given.quick else kind.sizes
            found.append(measure_uptime(sizes) if kind is UPTIME else measure_growth(kind, sizes))
    text = format_growth(found)
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(text, f"Load average at the end {load}.", sep="\n\n")
    if given.write:
        title = f"{datetime.now(UTC):%Y-%m-%d}, {machine_name()}; load average at the end {load}. One run."
        TABLE.write_text(f"{INTRODUCTION}\n{title}\n\n{text}\n", encoding="utf-8")


INTRODUCTION: Final = """# How the cost of an event grows

`.venv/bin/python -m benchmarks.growth --write` writes this file. A cost has its figure at the smallest size, its figure at the
largest one, and the exponent of its growth in brackets: 0 stays, 1 doubles with the size. *Shown*: whether the document of the
event shows what grows. *Grows*: the costs that grow although it does not.
"""


if __name__ == "__main__":
    main()
