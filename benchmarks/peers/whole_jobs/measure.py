"""Runs a system through the life of a job: warm-up, work, crashes, and a new product.

1. The first half of the history warms the job up, until all documents are right.
2. The second half is the work. The clock runs until the last document, CPU seconds until the work that follows it is done.
3. SIGKILL ends the job while events come at a steady rate, and the job starts at once again, some times.
4. One more product comes to the running job.

Promises: after each part, the last documents equal the answer of the products' SQL, or their number is in `wrong`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from time import perf_counter, sleep

from benchmarks.peers.old_ways.measure import sql_documents
from benchmarks.peers.old_ways.workload import joined_definitions, joined_records
from benchmarks.peers.whole_jobs.system import Files, ProgramSeconds, System, cpu_seconds
from benchmarks.peers.whole_jobs.topics import Documents, SourceTopics, TargetTopics, target_topics
from processor.cli.options import print_progress
from processor.engine.plan.planning import plan_alone
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.language.definitions.load import load
from processor.tools.demo.github import TOPIC_PARTITIONS
from processor.values.record import Record

JOINS = 3
IDLE_SECONDS = 20.0
"""A job without events takes this long to end the work after its last document, twice: two checkpoints, or settling."""
WORK_SECONDS = 15.0
"""A job works for this long before it is killed: longer than a checkpoint takes to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """`events` took `seconds` of the clock and gave this many `messages`. `cpu`: CPU seconds of each program; `idle`: those that
    it takes in a second without events, which `cpu` leaves out; `wrong`: last documents that differ from SQL's answer."""

    events: int
    seconds: float
    cpu: Mapping[str, float]
    idle: Mapping[str, float]
    messages: int
    wrong: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJobCost:
    """`state`: bytes after the work; `restarts`: seconds from each kill to the next right document; `addition`: seconds from a
    new product to its right documents; `wrong`: how many documents differ after both."""

    system: str
    products: int
    work: Work
    state: int
    restarts: Sequence[float]
    addition: float
    wrong: int


def measure_whole_job(
    opened: AbstractContextManager[System], products: int, events: int, users: int, kills: int
) -> WholeJobCost:
    """The life of a job with this many products, over the history of this many events. Raises StatestoreError if the job ends."""
    records, half = joined_records(events, users, JOINS), events // 2
    warm, done = _answer(products, records[:half]), _answer(products, records)
    files, more = (joined_definitions(n, JOINS) for n in (products, products + 1))
    with opened as system, target_topics(system.servers, _make_topics(system, more)) as target:
        source = SourceTopics(system.servers)
        source.send(records[:half])
        system.start(files)
        wrong = target.wait_until_right(warm, system)
        print_progress(f"{system.title}, {products} products: warm, {wrong} wrong documents")
        work = _work(system, source, target, records[half:], done)
        print_progress(f"{work}")
        state = system.state_bytes()
        restarts = [_restart(system, source, target) for _ in range(kills)]
        wrong = target.wait_until_right(_answer(products, source.records), system)
        print_progress(f"restarts took {restarts} s, {wrong} wrong documents")
        answer, began = _answer(products + 1, source.records), perf_counter()
        system.add(more)
        wrong += target.wait_until_right(answer, system)
        addition = target.at - began
        print_progress(f"a new product took {addition:.1f} s, {wrong} wrong documents")
    return WholeJobCost(
        system=system.title,
        products=products,
        work=work,
        state=state,
        restarts=restarts,
        addition=addition,
        wrong=wrong,
    )


def _make_topics(system: System, files: Files) -> dict[str, int]:
    """Makes the topics of all entities and products: the topics of the products, with their partitions."""
    definitions, admin = load(files), Admin(system.servers, {})
    targets = [product.topic for product in definitions.products.values()]
    admin.ensure([e.topic for e in definitions.entities.values()], partitions=TOPIC_PARTITIONS, compacted=False)
    admin.ensure(targets, partitions=TOPIC_PARTITIONS, compacted=True)
    return dict.fromkeys(targets, TOPIC_PARTITIONS)


def _work(
    system: System, source: SourceTopics, target: TargetTopics, records: Sequence[Record], answer: Documents
) -> Work:
    sleep(IDLE_SECONDS)  # the work that follows the documents of the warm-up
    before = cpu_seconds()
    sleep(IDLE_SECONDS)
    idle = {name: used / IDLE_SECONDS for name, used in _since(before).items()}
    before, count, began = cpu_seconds(), target.count, perf_counter()
    source.send(records)
    wrong = target.wait_until_right(answer, system)
    sleep(IDLE_SECONDS)
    return Work(
        events=len(records),
        seconds=target.at - began,
        cpu={name: used - idle.get(name, 0) * (perf_counter() - target.at) for name, used in _since(before).items()},
        idle=idle,
        messages=target.count - count,
        wrong=wrong,
    )


def _since(before: ProgramSeconds) -> dict[str, float]:
    """CPU seconds of each program since then."""
    return {name: used - before[name] for name, used in cpu_seconds().items()}


def _restart(system: System, source: SourceTopics, target: TargetTopics) -> float:
    """Seconds from a kill to the first document that shows an event after it."""
    with source.stream():
        first = source.number
        target.wait_for_event(first, system)
        sleep(WORK_SECONDS)
        first, began = source.number, perf_counter()
        system.kill()
        system.restart()
        return target.wait_for_event(first, system) - began


def _answer(products: int, records: Sequence[Record]) -> Documents:
    """The documents of this many products by SQL, for the last rows: topic -> message key -> document."""
    definitions = load(joined_definitions(products, JOINS))
    documents = sql_documents(definitions, plan_alone(definitions, Settings().slots), records)
    return {definitions.products[name].topic: found for name, found in documents.items()}
