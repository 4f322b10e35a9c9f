"""Edit the registry of a real job under a steady stream of changes, kill the job, and compare every document with SQL at the end.

    python -m tests.edits.soak --seconds 120 --seed 0

The parts are real: embedded Kafka, Postgres and DynamoDB Local, and the job is a process of `statestore run`. Every few seconds
operators edit the registry from outside (`tests.edits.operators`). SIGKILL ends all processes of the job twice: after a third
of the time, and in the middle of a fill. The next run starts at once.

At the end the input stops, and operators resume everything. Then every live product must have exactly the documents of Postgres
over the source tables, all of its present version, and the topic of every other product must hold tombstones only. Exit status 1
otherwise. The table of what happened goes to standard output, the progress to standard error. The edits depend on the seed, but
their moments depend on the machine: two runs with one seed differ.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random
from subprocess import Popen
from time import sleep, time

from benchmarks.job import start_parts
from benchmarks.job_process import STATESTORE, background, environment, run_command
from processor.environment.settings.resolve import open_registry
from processor.environment.stores.kinds import open_store
from processor.errors import StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.text import table_lines
from processor.values.record import Record
from tests.edits.operators import Operators
from tests.edits.source import EditedSource
from tests.edits.verdict import EditVerdict
from tests.edits.watch import EditWatch
from tests.simulator.check import KEYS
from tests.simulator.edit_shapes import CONTENTS

EDIT_SECONDS = 3.0
"""Between two edits."""
RATE = 20.0
"""Changes a second."""
END_SECONDS = 300.0
"""The job may work this long after the last change and the last edit."""
START_SECONDS = 90.0
"""The job may take this long until its first batch, or until a fill begins."""


@dataclass(slots=True, kw_only=True)
class EditSoak:
    """One run. `logs`: of each start of the job; `flow`: when the input began and ended."""

    directory: Path
    operators: Operators
    watch: EditWatch
    source: EditedSource
    verdict: EditVerdict
    logs: list[Path] = field(default_factory=list)
    flow: tuple[float, float] = (0.0, 0.0)

    def run(self, seconds: float, rate: float) -> None:
        """The whole story, until the last document is due. Raises StatestoreError when the job ends by itself."""
        self.source.fill()
        with background(lambda: self.source.run(rate)):
            with self.job() as process:
                self._wait(process, self._works, START_SECONDS)
                self.flow = (time(), inf)
                self._edit(process, seconds / 3)
            with self.job() as process:
                self._edit(process, seconds / 3)
                self._wait_for_fill(process)
            with self.job("--take-over") as process:
                self._edit(process, seconds / 3)
                self.source.stopped.set()
                self.flow = (self.flow[0], time())
                self.operators.resume_all()
                self._wait(process, lambda: self.watch.settled() and not self.verdict.differences(), END_SECONDS)

    @contextmanager
    def job(self, *more: str) -> Iterator[Popen[bytes]]:
        """A run of the job. The end of the block kills all its processes."""
        self.logs.append(self.directory / f"job{len(self.logs)}.log")
        with run_command([STATESTORE, "run", *more], self.logs[-1], **self.operators.environment) as process:
            yield process

    def pauses(self, messages: list[Record]) -> tuple[float, float]:
        """The longest time between two messages of products while the input flowed, by Kafka's timestamps; and the longest one
        without the parts of it in which the job could publish nothing."""
        began, ended = self.flow[0], min(self.flow[1], time())
        times = sorted(t for record in messages if began <= (t := record.timestamp / 1000) <= ended)
        gaps = list(pairwise([began, *times, ended]))
        silent = [sum(max(0.0, min(b, last) - max(a, first)) for first, last in self.watch.silent) for a, b in gaps]
        return max(b - a for a, b in gaps), max(b - a - s for (a, b), s in zip(gaps, silent, strict=True))

    def _edit(self, process: Popen[bytes], seconds: float) -> None:
        """Edits while the job starts, and then for some seconds."""
        began, end = time(), inf
        while time() < end:
            self._check(process)
            if end == inf and self._works():
                end = time() + seconds
            if time() > began + START_SECONDS + seconds:
                raise StatestoreError(f"the job did not work within {START_SECONDS:.0f} s")
            self.operators.edit()
            sleep(EDIT_SECONDS)

    def _wait_for_fill(self, process: Popen[bytes]) -> None:
        """Waits until the job is in the middle of a fill, for which an operator gives it a reason."""
        self.operators.resume_all()
        self.operators.move("star")
        self._wait(process, self.watch.fills, START_SECONDS)
        if not self.watch.fills():
            raise StatestoreError("no fill began after the move of a slot")

    def _wait(self, process: Popen[bytes], done: Callable[[], bool], seconds: float) -> None:
        deadline = time() + seconds
        while not done() and time() < deadline:
            self._check(process)
            sleep(0.1)

    def _works(self) -> bool:
        """Whether the job has processed a batch."""
        return " batch " in self.logs[-1].read_text()

    def _check(self, process: Popen[bytes]) -> None:
        if process.poll() is not None:
            raise StatestoreError(f"the job ended by itself:\n{self.logs[-1].read_text()[-4000:]}")


@contextmanager
def prepared(seed: int) -> Iterator[EditSoak]:
    """A run on new embedded parts, with a first content of each product, and with its watch."""
    with start_parts("local", batch=10_000) as (given, directory):
        settings = replace(
            given, slots=8, wait_seconds=1.0, settle_seconds=1.0, lease_seconds=5, walk_page=20, walk_rate=100
        )
        servers = settings.bootstrap_servers
        with open_registry(settings) as registry, open_registry(settings) as watched:
            registry.migrate(settings.slots)
            operators = Operators(
                settings=settings,
                registry=registry,
                environment=environment(settings),
                directory=directory,
                chance=Random(f"{seed} edits"),
            )
            if reason := operators.apply(dict.fromkeys(CONTENTS, 0)):
                raise StatestoreError(reason)
            Admin(servers, {}).ensure(KEYS, partitions=settings.partitions, compacted=False)
            source = EditedSource(outbox=KafkaOutbox(servers, {}), chance=Random(f"{seed} source"))
            watch = EditWatch(registry=watched, store=open_store(settings))
            with background(watch.run):
                try:
                    yield EditSoak(
                        directory=directory,
                        operators=operators,
                        watch=watch,
                        source=source,
                        verdict=EditVerdict(settings=settings, registry=registry, tables=source.tables),
                    )
                finally:
                    source.stopped.set()
                    watch.stopped.set()


def report(soak: EditSoak) -> str:
    """The table of what happened."""
    operators, watch = soak.operators, soak.watch
    messages = [record for name in CONTENTS for record in soak.verdict.published(name)]
    logs = "".join(log.read_text() for log in soak.logs)
    times, replaced = watch.publications()
    longest, undisturbed = soak.pauses(messages)
    rows = [
        *((f"edits: {kind}", str(n)) for kind, n in sorted(operators.done.items())),
        *((f"refused: {kind}: {reason}", str(n)) for (kind, reason), n in sorted(operators.refused.items())),
        ("source changes", str(soak.source.n)),
        ("registry versions", str(operators.registry.snapshot().version)),
        ("kills during the edits", str(len(soak.logs) - 1)),
        ("walks: fills", str(watch.seen["fill"])),
        ("walks: publications", str(watch.seen["publish"])),
        ("rows rewritten by fills", str(sum(watch.written.values()))),
        ("documents published", str(len(messages))),
        ("corrections among them", str(sum(map(int, re.findall(r"(\d+) corrections", logs))))),
        ("longest pause of publishing, s", f"{longest:.1f}"),
        ("the same without the time when it could publish nothing, s", f"{undisturbed:.1f}"),
        ("longest time from an edit to its version being applied, s", f"{watch.slowest_version():.1f}"),
        ("longest time from a new version of a product to its publication in full, s", f"{max(times, default=0):.1f}"),
        ("new versions of products, published in full", str(len(times))),
        ("new versions of products, replaced before", str(replaced)),
    ]
    return "\n".join(table_lines(rows, right={1}))


def main() -> int:
    """Runs once."""
    options = argparse.ArgumentParser(description="Edits the registry of a real job under load, and kills the job.")
    options.add_argument("--seconds", type=float, default=120.0, help="how long operators edit (%(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of the changes and the edits (%(default)s)")
    options.add_argument("--rate", type=float, default=RATE, help="changes a second (%(default)s)")
    given = options.parse_args()
    with prepared(given.seed) as soak:
        try:
            soak.run(given.seconds, given.rate)
            found = soak.verdict.differences()
        except StatestoreError as error:
            found = [str(error)]
        print(report(soak))
        if not soak.watch.settled():
            found.append("the registry still has work for the job")
        if found:
            keep_logs(soak)
    print(*found, sep="\n", file=sys.stderr)
    return 1 if found else 0


def keep_logs(soak: EditSoak) -> None:
    """Copies the logs of the job and the history of the registry to a directory that stays, and says where."""
    kept = Path(tempfile.mkdtemp(prefix="statestore-edits-"))
    for log in soak.logs:
        (kept / log.name).write_bytes(log.read_bytes())
    edits = reversed(soak.operators.registry.history())
    lines = (f"{e.version} {e.at} {e.who} {e.why} {e.entry} {e.operation} {e.old} -> {e.new}\n" for e in edits)
    (kept / "history").write_text("".join(lines))
    print(f"the logs of the job and the history of the registry are in {kept}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
