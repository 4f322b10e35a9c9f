"""A job for one event of the night: its topics, its table, its registry, the process of `statestore run`, and the records that
come meanwhile.

The servers are those of all events. Each event has a job of its own over them, so that no event sees what an earlier one left.
"""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, sleep, time
from typing import Any

import psycopg

from processor.environment.programs.program import LOOPBACK, free_port
from processor.environment.settings.settings import Settings, setting_flags
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.language.definitions.load import load
from processor.values.record import Message
from tests.integration.job.profile_definitions import profile_definitions
from tests.outages.outage_parts import Server
from tests.outages.watched_job import STATESTORE, Line, follow_log, start_job

LEASE_SECONDS = 6
START_SECONDS = 180.0
"""A job may take this long on a busy machine until it reads its topics."""
END_SECONDS = 60.0
START_AGAIN_SECONDS = 5.0
RATE = 4.0
"""Records a second."""


@dataclass(slots=True, kw_only=True)
class JobProcess:
    """The process of a job. `arguments`: those of `statestore run`; `again`: a supervisor starts it again after each end;
    `asked`: somebody stopped it."""

    arguments: list[str]
    port: int
    file: Path
    environment: dict[str, str] = field(default_factory=lambda: {"STATESTORE_REJECT_WINDOW_SECONDS": "60"})
    again: bool = False
    asked: bool = False
    lines: list[Line] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    _process: "subprocess.Popen[str] | None" = None
    _lock: Lock = field(default_factory=Lock)

    def start(self, *more: str) -> None:
        """Starts the job, and reads its log in a thread."""
        with self._lock:
            self.asked = False
            self._process = process = start_job([*self.arguments, *more], self.port, self.environment)
        Thread(target=self._follow, args=(process, more), daemon=True).start()

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Ends all processes of the job at once."""
        process = self._process
        self.asked = True
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop(self) -> int:
        """Ends the job as an operator does. Returns its exit status."""
        process = self._process
        self.asked = True
        if process is None or process.poll() is not None:
            return 0
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(END_SECONDS)
        finally:
            self.kill()

    def said(self, event: str, since: float = 0.0) -> bool:
        """Whether the job has said this event since then."""
        return any(line.event == event and line.at >= since for line in list(self.lines))

    def ended_with_error(self) -> bool:
        return not self.again and not self.alive() and any(self.statuses)

    def _follow(self, process: "subprocess.Popen[str]", more: tuple[str, ...]) -> None:
        assert process.stderr is not None
        follow_log(process.stderr, self.file, self.lines)
        self.statuses.append(process.wait())
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        deadline = monotonic() + START_AGAIN_SECONDS
        while self.again and not self.asked and monotonic() < deadline:
            sleep(0.1)
        if self.again and not self.asked:
            self.start(*more)


@dataclass(slots=True, kw_only=True)
class Source:
    """The records: users with their stars, at a rate. `bad`: the share of them that break their contract; `sent`: all so far."""

    outbox: KafkaOutbox
    name: str
    rate: float = RATE
    bad: float = 0.0
    sent: int = 0
    ended: Event = field(default_factory=Event)

    def run(self) -> None:
        """Sends records until `ended`."""
        debt = 0.0
        while not self.ended.wait(0.25):
            debt += self.rate / 4
            while debt >= 1:
                debt -= 1
                self.send(self.sent % 100 < self.bad * 100)

    def send(self, bad: bool) -> None:
        """Sends a user and a star in turn. A bad one has a text where a number belongs."""
        self.sent += 1
        number = self.sent // 2 % 200
        if bad or self.sent % 2:
            value: dict[str, Any] = {"id": "1k" if bad else number, "name": f"n{number}"}
            self._send("user", {"id": number}, value)
        else:
            key = {"who": f"n{number}", "repo": f"r{self.sent % 7}"}
            self._send("star", key, {**key, "note": str(self.sent)})

    def burst(self, records: int, bad: float) -> None:
        """Sends this number of records at once."""
        for n in range(records):
            self.send(n % 100 < bad * 100)
        self.outbox.flush()

    def _send(self, entity: str, key: object, value: object) -> None:
        topic = f"{self.name}.{entity}"
        self.outbox.send(
            Message(topic=topic, key=json.dumps(key).encode(), value=json.dumps(value).encode(), headers=())
        )


class Night:
    """The job of one event. `folder`: for its files; `broker`, `postgres`: the servers, each behind its proxy;
    `at_end`: what must happen after the event."""

    def __init__(self, name: str, folder: Path, broker: Server, postgres: Server) -> None:
        self.name, self.folder, self.broker, self.postgres = name, folder, broker, postgres
        self.at_end = ExitStack()
        self.at_end.callback(self.end)
        folder.mkdir()
        default = Settings()
        self.settings = Settings(
            job=name,
            store="postgres",
            table=name,
            slots=6,
            registry=postgres.address,
            registry_schema=name,
            store_url=postgres.address,
            bootstrap_servers=broker.address,
            checkpoint=str(folder / "checkpoint"),
            dead_letter_topic=f"{name}.rejects",
            wait_seconds=1.0,
            settle_seconds=1.0,
            lease_seconds=LEASE_SECONDS,
            outage_seconds=default.outage_seconds // 10,
            lanes=2,
        )
        self.file = self.write_settings("settings.toml")
        self.definitions = folder / "definitions"
        self._write_definitions()
        topics = [self.topic("user"), self.topic("star")]
        Admin(broker.endpoint, {}).ensure(topics, partitions=2, compacted=False)
        self.run_verb("apply", "--definitions", str(self.definitions), "--why", "the night")
        arguments = ["--settings", str(self.file)]
        self.job = JobProcess(arguments=arguments, port=free_port(), file=folder / "job.log")
        self.source = Source(outbox=KafkaOutbox(broker.endpoint, {}, **{"message.timeout.ms": 0}), name=name)

    def topic(self, entity: str) -> str:
        return f"{self.name}.{entity}"

    def start(self) -> None:
        """Starts the job and its records, and waits until it works."""
        self.job.start()
        Thread(target=self.source.run, daemon=True).start()
        wait_until(lambda: self.job.ended_with_error() or self.job.said("batch"), START_SECONDS, "no first batch")
        if self.job.ended_with_error():
            raise AssertionError(f"the job ends: {self.job.lines[-1].text}")

    def start_again(self, *more: str) -> None:
        """Starts the job, and waits until it runs."""
        began = time()
        self.job.start(*more)
        wait_until(lambda: self.job.said("open", began), START_SECONDS, "the job does not run again")

    def ends(self) -> dict[str, int]:
        """Where each partition of the topics ends now: behind all records so far."""
        self.source.outbox.flush()
        admin = Admin(self.broker.endpoint, {})
        topics = [self.topic("user"), self.topic("star")]
        return {f"{topic}/{partition}": end for topic in topics for partition, end in admin.ends(topic).items()}

    def positions(self) -> dict[str, int]:
        """Where the job reads on in each partition, by its page; of batches that it has committed."""
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.job.port}/status.json", timeout=5) as answer:
                report = json.load(answer)
        except OSError:
            return {}
        return dict(report["positions"]) if report else {}

    def end(self) -> None:
        """Ends the records and the job."""
        self.source.ended.set()
        self.job.kill()

    def run_verb(self, *words: str, seconds: float = 600.0) -> "subprocess.CompletedProcess[str]":
        """Runs a verb with the settings of the job."""
        command = [STATESTORE, *words, "--settings", str(self.file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)

    def give(self, *words: str) -> None:
        """Gives a verb as an operator does; it must end well."""
        done = self.run_verb(*words)
        if done.returncode:
            raise SystemExit(f"statestore {' '.join(words)}: {done.stdout}{done.stderr}")

    def execute(self, *statements: str) -> None:
        """Executes SQL in the Postgres of registry and table."""
        with psycopg.connect(self.postgres.endpoint.replace("+psycopg", ""), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def write_settings(self, name: str, **changes: Any) -> Path:
        """Writes a file of the settings, with these changes."""
        settings = replace(self.settings, **changes)
        file = self.folder / name
        lines = []
        for setting, _ in setting_flags():
            value = getattr(settings, setting)
            if setting in ("registry", "store_url"):
                (self.folder / f"{setting}.address").write_text(str.__str__(value))
                value = f"file:{self.folder / setting}.address"
            lines.append(f"{setting} = {json.dumps(value)}\n")
        file.write_text("".join(lines))
        return file

    def _write_definitions(self) -> None:
        texts = dict(profile_definitions(self.name))
        people = {"product": "people", "topic": f"{self.name}.people", "root": "user", "fields": ["id", "name"]}
        texts["products/people.yaml"] = json.dumps(people)
        load(texts)
        for name, text in texts.items():
            path = self.definitions / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def wait_until(condition: Callable[[], bool], seconds: float, problem: str) -> None:
    """Waits until the condition holds. Raises TimeoutError."""
    deadline = monotonic() + seconds
    while not condition():
        if monotonic() > deadline:
            raise TimeoutError(f"{problem} within {seconds:.0f} s")
        sleep(0.2)
