"""Cuts and restarts the parts around a real job under load, at random moments, alone and together, and compares every document
with SQL.

    .venv/bin/python -m tests.outages.soak --outages 200 --seed 1
    .venv/bin/python -m tests.outages.soak --outages 200 --seed 1 --store dynamodb
    .venv/bin/python -m tests.outages.soak --outages 16 --alone 16 --way silent --shortest 30

The parts are real: Kafka, a Postgres for the registry and one for the table (or DynamoDB Local), and a schema registry of the
tests. At first they fail alone, in turn. Then each fails by a process of chance of its own, for 1 to 120 s. The job is a process
of `statestore run`; when it ends by itself, it starts again after 5 s, as a platform does.

At the end all parts answer. Then every document must be that of SQL, no message may be out of order, there may be no dead
letter, the job must run, and `statestore status` must name nothing that a person must repair. Exit status 1 otherwise. The seed
decides the ways and the lengths; the moments depend on the machine. The table goes to standard output.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic, sleep, time

from processor.cli.options import set_embedded_credentials
from processor.environment.embedded import owned_home
from processor.environment.programs.program import free_port
from processor.environment.settings.settings import Settings, setting_flags
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.text import duration_text
from tests.outages.outage_load import FramedSource, OutageVerdict, write_definitions
from tests.outages.outage_parts import REGISTRY, STORE, Schemas, Server, dynamodb, kafka, postgres
from tests.outages.outage_schedule import SHORTEST, Budget, Outage, cause_outage, cause_outages, draw
from tests.outages.outage_table import QUIET_SECONDS, effects, markdown, table
from tests.outages.watched_job import STATESTORE, WatchedJob, background
from tests.simulator.check import KEYS
from tests.support.registry_stub import registry_stub

START_SECONDS = 300.0
"""The job may take this long until its first batch."""
SETTLE_SECONDS = 900.0
"""The job may work this long after the last outage and the last change."""
PAUSE = 60.0
"""Seconds between two outages of a part, on average."""
RATE = 20.0
"""Changes a second."""


@dataclass(slots=True, kw_only=True)
class OutageSoak:
    """One run."""

    parts: list[Server | Schemas]
    job: WatchedJob
    source: FramedSource
    verdict: OutageVerdict
    outages: list[Outage] = field(default_factory=list)
    ended: Event = field(default_factory=Event)

    def run(
        self, alone: int, outages: int, seed: int, pause: float, rate: float, way: str | None, shortest: float
    ) -> list[str]:
        """The whole story: outages alone, then this many of all parts. Returns what is wrong at its end."""

        def drawn(random: Random, part: Server | Schemas, pause: float) -> Iterator[tuple[float, str, float]]:
            return draw(random, (way,) if way else part.ways, pause, shortest)

        self.source.fill()
        background(self.job.run, self.job.look)
        load = background(lambda: self.source.run(rate))
        self._wait(lambda: self.job.batches() > 0, START_SECONDS, "the job has no batch")
        random = Random(f"{seed} alone")
        self._cause_alone(alone, lambda part: next(drawn(random, part, 1.0)))
        budget = Budget(outages)
        threads = [
            Thread(target=cause_outages, args=(part, own, budget, self.ended, self._note), daemon=True)
            for part in self.parts
            for own in [drawn(Random(f"{seed} {part.name}"), part, pause)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.source.stopped.set()
        for one in load:
            one.join()
        return self._end()

    def _cause_alone(self, outages: int, drawn: Callable[[Server | Schemas], tuple[float, str, float]]) -> None:
        """Lets the parts fail in turn. The next one waits until the job works again."""
        for n in range(outages):
            part = self.parts[n % len(self.parts)]
            _, way, length = drawn(part)
            self._note(cause_outage(part, way, length, self.ended))
            before, deadline = self.job.batches(), monotonic() + START_SECONDS
            while self.job.batches() < before + 2 and monotonic() < deadline:
                sleep(0.2)
            sleep(QUIET_SECONDS)

    def _end(self) -> list[str]:
        deadline = monotonic() + SETTLE_SECONDS
        while (found := self.verdict.differences()) and monotonic() < deadline:
            sleep(3)
        found += [f"a person must repair: {line}" for line in self._wrong()]
        if status := self.job.stop():
            found.append(f"the job ended with the exit status {status} after SIGTERM")
        return found

    def _wrong(self) -> list[str]:
        """What `statestore status` names, and whether the job runs."""
        words = [STATESTORE, "status", *self.job.settings, "--json"]
        done = subprocess.run(
            words, env={**os.environ, **self.job.environment}, capture_output=True, text=True, check=False
        )
        if not done.stdout:
            return [done.stderr.strip()]
        lines = [str(line) for line in json.loads(done.stdout)["wrong"]]
        return lines or ([f"status ends with {done.returncode}"] if done.returncode else [])

    def _note(self, outage: Outage) -> None:
        self.outages.append(outage)
        text = f"{len(self.outages)}: {outage.part}, {outage.way}, {duration_text(outage.seconds)}"
        print(
            f"{text}; {self.job.batches()} batches, {len(self.job.ends)} ends of the job", file=sys.stderr, flush=True
        )

    def _wait(self, done: Callable[[], bool], seconds: float, problem: str) -> None:
        deadline = monotonic() + seconds
        while not done():
            if monotonic() > deadline:
                raise SystemExit(f"{problem} within {seconds:.0f} s; its log: {self.job.log}")
            sleep(0.2)


@contextmanager
def prepared(store: str, seed: int, log: Path) -> Iterator[OutageSoak]:
    """A run on new parts, each behind its proxy, with the definitions in the registry."""
    set_embedded_credentials()
    with owned_home() as (home, _), registry_stub() as stub, ExitStack() as stack:
        home.chmod(0o755)  # under root the servers are another user
        servers = [
            kafka(home),
            postgres(REGISTRY, home),
            dynamodb(home) if store == "dynamodb" else postgres(STORE, home),
        ]
        parts: list[Server | Schemas] = [*servers, Schemas(stub)]
        for part in parts:
            stack.callback(part.close)
        broker, registry, _ = servers
        loaded = write_definitions(home / "definitions")
        settings, arguments = _settings(home, store, servers, parts[-1].address)
        direct = replace(settings, registry=registry.endpoint)
        _apply(direct, home)
        Admin(broker.endpoint, {}).ensure(KEYS, partitions=settings.partitions, compacted=False)
        outbox = KafkaOutbox(broker.endpoint, {}, **{"message.timeout.ms": 0})
        source = FramedSource(outbox=outbox, chance=Random(f"{seed} source"), stub=stub)
        yield OutageSoak(
            parts=parts,
            job=WatchedJob(settings=arguments, environment={}, port=free_port(), log=log),
            source=source,
            verdict=OutageVerdict(servers=broker.endpoint, postgres=registry.endpoint, loaded=loaded, source=source),
        )


def _settings(home: Path, store: str, servers: list[Server], schemas: str) -> tuple[Settings, list[str]]:
    """The settings of the job, and the arguments that name them."""
    broker, registry, table_ = servers
    settings = Settings(
        job="outages",
        store="dynamodb" if store == "dynamodb" else "postgres",
        table="outages",
        slots=8,
        registry=registry.address,
        bootstrap_servers=broker.address,
        checkpoint=str(home / "checkpoint"),
        wait_seconds=1.0,
        settle_seconds=1.0,
        store_url=table_.address if store == "postgres" else "",
        endpoint=table_.address if store == "dynamodb" else "",
        region="eu-west-1",
    )
    written = dict(vars_of(settings))
    for name in ("registry", "store_url"):
        if text := written[name]:
            (home / f"{name}.address").write_text(str(text))
            written[name] = f"file:{home / name}.address"
    file = home / "settings.toml"
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in written.items()]
    file.write_text("".join(lines) + f'[schema_registry]\nurl = "{schemas}"\n')
    return settings, ["--settings", str(file)]


def vars_of(settings: Settings) -> dict[str, str | int | float | bool]:
    """The settings by name, without those that are tables."""
    return {name: getattr(settings, name) for name, _ in setting_flags()}


def _apply(settings: Settings, home: Path) -> None:
    environment = {f"STATESTORE_{name.upper()}": str(value) for name, value in vars_of(settings).items()}
    words = [STATESTORE, "apply", "--definitions", str(home / "definitions"), "--why", "the outages"]
    subprocess.run(words, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    """Runs once."""
    options = argparse.ArgumentParser(
        prog="tests.outages.soak", description="Cuts and restarts the parts around a job."
    )
    options.add_argument("--outages", type=int, default=200, help="outages of all parts together (%(default)s)")
    options.add_argument(
        "--alone", type=int, default=80, help="how many of them come in turn, before others (%(default)s)"
    )
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--store", choices=("postgres", "dynamodb"), default="postgres", help="%(default)s")
    options.add_argument("--pause", type=float, default=PAUSE, help="mean seconds between two of a part (%(default)s)")
    options.add_argument("--rate", type=float, default=RATE, help="changes a second (%(default)s)")
    options.add_argument("--way", help="the only way in which parts fail (all)")
    options.add_argument("--shortest", type=float, default=SHORTEST, help="seconds of an outage (%(default)s)")
    given = options.parse_args()
    began = time()
    log = Path(tempfile.mkdtemp(prefix="statestore-outages-")) / "job.log"
    with prepared(given.store, given.seed, log) as soak:
        others = given.outages - given.alone
        found = soak.run(given.alone, others, given.seed, given.pause, given.rate, given.way, given.shortest)
        job, published = soak.job, sum(len(soak.verdict.published(name)) for name in soak.verdict.loaded.products)
    print(markdown(table(effects(soak.outages, job.lines, job.health, job.ends))))
    print(
        f"\n{given.store}: {len(soak.outages)} outages in {duration_text(time() - began)}, {soak.source.n} changes, "
        f"{job.batches()} batches, {published} messages, {len(found)} problems, {len(job.ends)} ends of the job"
    )
    for end in job.ends:
        print(f"the job ended with {end.status}: {end.text[:300]}")
    print(f"the log of the job is {log}", *found, sep="\n", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
