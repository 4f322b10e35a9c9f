"""Searches for documents that show a part of a source transaction: an application writes orders in transactions over two to five
tables, Debezium reads them, and four products show the same orders, with and without a gate. Debezium, the broker and the job are
killed with -9 in turn. A consumer compares each message with the invariant of its order (order_documents.py); at the end every
document equals the SELECT over the application's own database.

    .venv/bin/python -m tests.transactions.soak --calm 2 --minutes 10 --seed 1
    .venv/bin/python -m tests.transactions.soak --source mariadb --calm 0.5 --minutes 1

Promises: the first load does not count, and no message after it is left out. Where a gated document is broken, the command keeps
all topics and the log of the job in a folder, and names it. Does not: kill the databases.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic, sleep, time

from processor.environment.programs.program import free_port
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.tools.demo.live import (
    APPLICATION,
    DEBEZIUM,
    DELIVERY_SECONDS,
    JOB,
    JOB_FLAGS,
    LAST_RUN,
    LOOK_SECONDS,
    LiveDocuments,
    LiveParts,
    finish,
    live_parts,
)
from processor.values.recorded_topics import open_writer, to_line
from tests.live.kills import kill_in_turn
from tests.outages.outage_table import markdown
from tests.transactions.freshness import commits_of
from tests.transactions.gate_counts import INCOMPLETE, RELEASED, GateCounts
from tests.transactions.gate_report import GateReport, printed_lines
from tests.transactions.mariadb_source import mariadb_source
from tests.transactions.topic_watch import TopicWatch

EXAMPLE = Path(__file__).parent / "orders"
LONGEST_PAUSE = 30.0
"""Seconds between a document after a restart and the next kill: a start of the job waits 20 s for its lease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """A run. `calm`, `kills`: seconds without kills, and then with them. `writers`, `pause`, `keys`: of the application.
    `keep`: where topics and logs go; None: into a new folder, and only where a gated document is broken."""

    source: str
    seed: int
    calm: float
    kills: float
    writers: int
    pause: float
    keys: int
    keep: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionResult:
    """`report`: of the products; `killed`, `ended`: how often each part was killed, and ended by itself. `documents`: at the end,
    and `wrong` those that are not the SELECT's. `kept`: the folder with topics and logs, if there is one."""

    report: GateReport
    killed: Counter[str]
    ended: Counter[str]
    documents: int
    wrong: list[str]
    dead_letters: int
    counts: GateCounts
    transactions: str
    kept: str

    @property
    def good(self) -> bool:
        return not (self.report.torn() or self.wrong or self.dead_letters)


def soak_transactions(plan: Transactions) -> TransactionResult:
    """Runs once."""
    with ExitStack() as stack:
        counts = GateCounts(free_port())
        flags = {**JOB_FLAGS, "status_port": str(counts.port)}
        parts = stack.enter_context(live_parts("postgres", flags, example=EXAMPLE))
        copy = stack.enter_context(mariadb_source(parts)) if plan.source == "mariadb" else None
        documents = LiveDocuments(parts)
        products = list(documents.definitions.products.values())
        watch = TopicWatch(bootstrap=parts.bootstrap, topics=[product.topic for product in products])
        with watch.watching(), counts.watching():
            parts.create_source(plan.seed)
            if copy:
                copy()
            parts.start(DEBEZIUM)
            parts.start(JOB)
            _wait_for_first_load(parts, documents)
            began, killed = time(), _write(parts, documents, plan)
            finish(parts)
        if copy:
            copy()
        count, wrong = documents.compare()
        lines = printed_lines(parts.application_lines())
        report = GateReport(
            products=products,
            arrivals=list(watch.arrivals.values()),
            commits=commits_of(lines),
            began=began,
            kills=began + plan.calm,
        )
        return TransactionResult(
            report=report,
            killed=killed,
            ended=Counter(parts.ended),
            documents=count,
            wrong=wrong,
            dead_letters=documents.dead_letters(),
            counts=counts,
            transactions=", ".join(parts.application_lines()[-2:]),
            kept=_keep(parts, plan.keep) if plan.keep or report.torn() or wrong else "",
        )


def _write(parts: LiveParts, documents: LiveDocuments, plan: Transactions) -> Counter[str]:
    """Lets the application write, without kills and then with them. Returns how often each part was killed."""
    flags = {"seed": plan.seed, "writers": plan.writers, "pause": plan.pause, "keys": plan.keys}
    parts.start_writing(*(word for name, value in flags.items() for word in (f"--{name}", str(value))))
    until = monotonic() + plan.calm
    while monotonic() < until:
        assert parts.writes(), "the application ended too early"
        parts.start_again()
        sleep(LOOK_SECONDS)
    killed = (
        kill_in_turn(parts, documents, plan.kills, Random(plan.seed), LONGEST_PAUSE) if plan.kills else Counter[str]()
    )
    parts.stop_writing()
    while parts.writes():
        parts.start_again()
        sleep(LOOK_SECONDS)
    return killed


def _wait_for_first_load(parts: LiveParts, documents: LiveDocuments) -> None:
    """Waits until each product shows the orders that were there before: gates do not hold them."""
    until = monotonic() + DELIVERY_SECONDS
    while monotonic() < until:
        parts.start_again()
        sleep(LOOK_SECONDS)
        count, wrong = documents.compare()
        if count and not wrong:
            return
    raise SystemExit(f"no first load within {DELIVERY_SECONDS:.0f} s: {wrong}; {parts.log(JOB).read_text()[-2000:]}")


def _keep(parts: LiveParts, place: Path | None) -> str:
    """Writes all topics into a folder, with the logs; returns its name."""
    folder = place or Path(tempfile.mkdtemp(prefix="statestore-transactions-"))
    folder.mkdir(exist_ok=True)
    for topic in Admin(parts.bootstrap, {}).names():
        with open_writer(str(folder / f"{topic}.jsonl.gz")) as lines:
            lines.writelines(f"{to_line(record)}\n" for record in read_topic(parts.bootstrap, {}, topic))
    for part in (JOB, DEBEZIUM, LAST_RUN, APPLICATION):
        shutil.copy(parts.log(part), folder / f"{part}.log")
    return str(folder)


def main() -> None:
    options = argparse.ArgumentParser(prog="tests.transactions.soak")
    options.add_argument("--source", choices=("postgres", "mariadb"), default="postgres", help="%(default)s")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--calm", type=float, default=2, help="minutes without kills (%(default)s)")
    options.add_argument("--minutes", type=float, default=10, help="minutes with kills after them (%(default)s)")
    options.add_argument("--writers", type=int, default=4, help="connections of the application (%(default)s)")
    options.add_argument(
        "--pause", type=float, default=0.5, help="mean seconds between their transactions (%(default)s)"
    )
    options.add_argument(
        "--keys", type=int, default=0, help="weight of transactions that change primary keys (%(default)s)"
    )
    options.add_argument("--keep", type=Path, help="a folder for all topics and logs, also where nothing is broken")
    given = options.parse_args()
    result = soak_transactions(
        Transactions(
            source=given.source,
            seed=given.seed,
            calm=given.calm * 60,
            kills=given.minutes * 60,
            writers=given.writers,
            pause=given.pause,
            keys=given.keys,
            keep=given.keep,
        )
    )
    print(*_lines(result), sep="\n")
    sys.exit(not result.good)


def _lines(result: TransactionResult) -> Iterator[str]:
    yield markdown(list(result.report.table()))
    yield ""
    yield (
        f"{result.transactions}; killed: {dict(result.killed)}, ended by themselves: {dict(result.ended)}; "
        f"at the end {result.documents} documents, {len(result.wrong)} differ from the SELECT, "
        f"{result.dead_letters} dead letters"
    )
    yield (
        f"gates let {result.counts.total(RELEASED)} documents go, of these {result.counts.total(INCOMPLETE)} at `at_most` "
        "while a transaction was open, as far as the job could say before each kill"
    )
    yield from result.wrong
    yield from map(result.report.describe, result.report.torn())
    if result.kept:
        yield f"the topics and logs are in {result.kept}"


if __name__ == "__main__":
    main()
