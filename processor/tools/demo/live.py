"""The live demo: an application writes to Postgres, Debezium reads its log, and the job keeps the documents.

`LiveParts` starts and ends the processes, `LiveDocuments` reads the documents of the topics and those of the products' SQL,
`LiveScreen` shows what happens, and `run_live_demo` is the story with the comparison at the end.

Promises: all processes end with this one, also when it is killed with -9, and their data goes with them. `kill` ends Debezium,
the broker or the job with SIGKILL; `start` starts the part again over its data. Postgres and moto are never killed: moto holds
its tables in memory.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

from processor.environment.embedded import owned_home
from processor.environment.programs.connect import start_connect, write_connector
from processor.environment.programs.downloads import (
    ShowProgress,
    connect_jars,
    debezium_jars,
    silent,
    spark_kafka_jars,
)
from processor.environment.programs.program import Owner, Process, Program, SecretUrl, log_tail, log_text
from processor.environment.programs.servers import STORE_SETTINGS, start_kafka, start_postgres
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import kind_of
from processor.errors import KafkaError, PartError
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.language.definitions.load import load, read_directory
from processor.tools.demo.tour import differing_keys
from processor.tools.inspect.oracle import source_oracle
from processor.tools.source.live_source import (
    POSTGRESQL,
    DocumentScreen,
    PublishedDocuments,
    connector_properties,
    password_of,
)

PREFIX = DATABASE = "shop"
"""The first word of every topic, and the application's database."""
CHOICES = {
    "table.include.list": r"public\..*",
    "provide.transaction.metadata": "true",
    "heartbeat.interval.ms": "1000",
    "topic.creation.default.partitions": "2",
}
"""What the demo and the soaks want of the connector in addition."""
EXAMPLE = Path(__file__).parents[3] / "examples" / "shop"
DEBEZIUM, BROKER, JOB, LAST_RUN, APPLICATION = "Debezium", "Kafka", "job", "last run", "application"
"""The parts, and the folders of their logs."""
MOST_ENDS = 5
"""The run gives up after this number of ends of one part that nobody killed."""
POLL_SECONDS = 0.2


class LiveParts:
    """The running parts. `example`: the folder of the definitions and of application.py; `bootstrap`: the broker; `source`: the
    SQLAlchemy URL of the application's database. `connector`, `password`: the properties of Debezium's connector, and the
    password of its user. `server`: the server to which the application writes, as its client reads it. `ended`: the parts that
    ended without a kill, in order."""

    def __init__(self, home: Path, owner: Owner, store: str, job_flags: Mapping[str, str], example: Path) -> None:
        self._home, self._launch, self.example = home, owner.launch, example
        broker = start_kafka(home / BROKER, launch=owner.launch)
        more = STORE_SETTINGS | {"wal_level": "logical"}
        postgres = start_postgres(home / "postgres", launch=owner.launch, more=more)
        self.bootstrap, self._server = broker.endpoint, postgres.endpoint
        self.source = SecretUrl(self._server.removesuffix("/postgres") + f"/{DATABASE}")
        self.connector = connector_properties(self.source, PREFIX, (), kind=POSTGRESQL) | CHOICES
        self.password = password_of(self.source)
        address = urlsplit(self._server)
        self.server = f"postgresql://{address.username}@{address.hostname}:{address.port}/postgres"
        self._job = {
            "bootstrap_servers": self.bootstrap,
            "registry": self._server,
            "store": store,
            "checkpoint": str(home / "checkpoint"),
            **job_flags,
        }
        own = kind_of(store).embedded
        if own.start is not None:
            endpoint = own.start(home / own.part, launch=owner.launch).endpoint
            self._job |= own.settings(Settings(), self._server, endpoint)
        self._running: dict[str, Process] = {BROKER: broker.process}
        self.ended: list[str] = []

    def start(self, part: str) -> None:
        """Starts Debezium, the broker or the job, over the data that it has. Raises PartError."""
        starts: dict[str, Callable[[], Process]] = {
            DEBEZIUM: self._start_debezium,
            BROKER: self._start_broker,
            JOB: lambda: self._start_job(JOB),
        }
        self._running[part] = starts[part]()

    def kill(self, part: str) -> None:
        """Ends a part with SIGKILL, and waits until it and its children have ended."""
        process = self._running.pop(part)
        if process.alive():
            os.kill(process.pid, signal.SIGKILL)
        process.stop()

    def stop(self, part: str) -> None:
        """Asks a part by SIGTERM to end, and waits for it."""
        process = self._running.pop(part)
        if process.alive():
            os.kill(process.pid, signal.SIGTERM)
        _wait(process)

    def start_again(self) -> None:
        """Starts each part again that ended by itself, as the manager of a service does. Raises PartError where a part ends too
        often."""
        for part in [part for part, process in self._running.items() if not process.alive()]:
            self.ended.append(part)
            if self.ended.count(part) == MOST_ENDS:
                lines = f"ended {MOST_ENDS} times; its log ends with:\n{log_tail(self.log(part))}"
                raise PartError(part, lines, "read these lines")
            self.start(part)

    def finish_job(self) -> None:
        """Runs the job once more, until no work remains. Raises PartError if it fails."""
        _wait(self._start_job(LAST_RUN, "--once", "--take-over"))
        self._expect(LAST_RUN, " records read = ")

    def create_source(self, seed: int) -> None:
        """Lets the application make its database."""
        _wait(self._start_application("create", "--seed", str(seed)))
        self._expect(APPLICATION, "the shop has")

    def start_writing(self, *flags: str) -> None:
        """Starts the application; `flags`: those of its action `write`."""
        self._application = self._start_application("write", *flags)

    def stop_writing(self) -> None:
        """Lets the application end after its transaction."""
        os.kill(self._application.pid, signal.SIGTERM)

    def writes(self) -> bool:
        """Whether the application still writes. Raises PartError if it failed."""
        if self._application.alive():
            return True
        self._expect(APPLICATION, "\ncloses after")
        return False

    def application_lines(self) -> list[str]:
        """The whole lines that the application has printed."""
        return log_text(self.log(APPLICATION)).split("\n")[:-1]

    def log(self, part: str) -> Path:
        """The file with the output of a part."""
        return self._home / part / "log.txt"

    def _start_broker(self) -> Process:
        port = int(self.bootstrap.rpartition(":")[2])
        broker = start_kafka(self._home / BROKER, launch=self._launch, port=port)
        if broker.endpoint != self.bootstrap:
            raise PartError(BROKER, f"another program took its port {port}", "run the command again")
        return broker.process

    def _start_debezium(self) -> Process:
        folder = self.log(DEBEZIUM).parent
        write_connector(folder, self.connector, self.password)
        return start_connect(folder, launch=self._launch, bootstrap=self.bootstrap).process

    def _start_job(self, part: str, *flags: str) -> Process:
        code = "import sys; from processor.cli.main import main; sys.exit(main())"
        command = (sys.executable, "-c", code, "run", "--definitions", str(self.example), *flags)
        return self._start(part, *command, **{f"STATESTORE_{name.upper()}": value for name, value in self._job.items()})

    def _start_application(self, action: str, *flags: str) -> Process:
        command = (sys.executable, str(self.example / "application.py"), action, self.server, *flags)
        return self._start(APPLICATION, *command, PGPASSWORD=urlsplit(self._server).password or "")

    def _start(self, part: str, *command: str, **environment: str) -> Process:
        return self._launch(Program(name=part, directory=self.log(part).parent, argv=command, env=environment))

    def _expect(self, part: str, line: str) -> None:
        """Raises PartError if the log of a part that has ended does not have the line of success."""
        log = self.log(part)
        if line not in log_text(log):
            raise PartError(part, f"it failed; its log ends with:\n{log_tail(log)}", "read these lines")


def _wait(process: Process) -> None:
    while process.alive():
        sleep(POLL_SECONDS)


@contextmanager
def live_parts(
    store: str, job_flags: Mapping[str, str], progress: ShowProgress = silent, example: Path = EXAMPLE
) -> Iterator[LiveParts]:
    """Starts Kafka and Postgres, and moto if the job's table is there; all parts end with the block. `store`: of the table, one
    of `KINDS`; `job_flags`: other settings of the job. Raises PartError."""
    if not example.is_dir():
        raise PartError(APPLICATION, f"it is not at {example}", "run the demo in a checkout of the repository")
    spark_kafka_jars(progress)
    connect_jars(progress)
    debezium_jars(POSTGRESQL, progress)
    with owned_home(progress=progress) as (home, owner):
        yield LiveParts(home, owner, store, job_flags, example)


CLOSING_TOPIC = f"{PREFIX}.public.closing"


class LiveDocuments(PublishedDocuments):
    """The documents of the parts."""

    def __init__(self, parts: LiveParts) -> None:
        super().__init__(parts.bootstrap, load(read_directory(parts.example)))
        self._parts = parts

    def is_closed(self) -> bool:
        """Whether Debezium has sent the row that the application writes last, and so all changes before it."""
        return self._count(CLOSING_TOPIC) > 0

    def dead_letters(self) -> int:
        """How many records the job refused."""
        return self._count(Settings().dead_letter_topic)

    def compare(self) -> tuple[int, list[str]]:
        """How many documents the products' SQL gives over the application's own tables, and which published ones differ."""
        count, wrong = 0, []
        with source_oracle(self._parts.source, "public", self.definitions.entities) as tables:
            for name, product in self.definitions.products.items():
                truth = tables.documents(product)
                published = read_topic(self._parts.bootstrap, {}, product.topic)
                count += len(truth)
                wrong += [f"{name} {key}" for key in differing_keys(published, truth)]
        return count, wrong

    def _count(self, topic: str) -> int:
        """The records of a topic, 0 if there is no such topic."""
        found = Admin(self._parts.bootstrap, {}).topics([topic])
        return sum(1 for name in found for _ in read_topic(self._parts.bootstrap, {}, name))


STEPS = 6
JOB_FLAGS = {"wait_seconds": "0.2", "settle_seconds": "0.2", "batch_size": "200"}
"""An index of moto is never late, so W and S are short."""
LOOK_SECONDS = 1.0
DELIVERY_SECONDS = 600.0
"""The longest time until Debezium and the job have delivered a change."""


def run_live_demo(store: str, show: ShowProgress) -> tuple[int, list[str], int]:
    """Runs the demo with the job's table in `store`. Returns how many documents the SQL gives, which published ones differ, and
    how many dead letters there are. Raises PartError."""
    own = kind_of(store).embedded
    api = "" if own.start is None else f", and {own.title}"
    show(f"step 1 of {STEPS}: starting Kafka, and Postgres with wal_level=logical{api}")
    with live_parts(store, JOB_FLAGS, show) as parts:
        show(f"step 2 of {STEPS}: the application makes its tables and first rows (examples/shop/application.py)")
        parts.create_source(seed=1)
        screen = LiveScreen(parts, show)
        screen.show_statements()
        show(f"step 3 of {STEPS}: starting Debezium and the job, which publishes the first documents")
        parts.start(DEBEZIUM)
        parts.start(JOB)
        screen.wait_for_documents()
        show(f"step 4 of {STEPS}: the application writes (sql), and the documents follow (doc, with what changed)")
        parts.start_writing("--steps", "24", "--pause", "2")
        screen.follow()
        show(f"step 5 of {STEPS}: ending Debezium, and running the job until no work remains")
        finish(parts)
        screen.show_documents()
        show(f"step 6 of {STEPS}: asking the application's own database for the same documents, by the products' SQL")
        return (*screen.live.compare(), screen.live.dead_letters())


def finish(parts: LiveParts) -> None:
    """Ends Debezium after the last change is in Kafka, and lets the job do all its work."""
    documents, until = LiveDocuments(parts), monotonic() + DELIVERY_SECONDS
    while not documents.is_closed():
        if monotonic() > until:
            raise KafkaError(f"Debezium did not send the last change within {DELIVERY_SECONDS:.0f} s")
        parts.start_again()
        sleep(LOOK_SECONDS)
    parts.kill(DEBEZIUM)
    parts.stop(JOB)
    parts.finish_job()


class LiveScreen(DocumentScreen):
    """Shows what the application writes and which documents follow."""

    def __init__(self, parts: LiveParts, show: ShowProgress) -> None:
        self.live = LiveDocuments(parts)
        super().__init__(self.live, show)
        self._parts = parts
        self._shown = 0

    def wait_for_documents(self) -> None:
        """Waits for the documents of the rows that Debezium's snapshot has: until no more come."""
        shown, before = 0, 0
        while not shown or shown > before:
            self._parts.start_again()
            sleep(LOOK_SECONDS)
            before, shown = shown, shown + self.show_documents()

    def follow(self) -> None:
        """Shows both until the application has ended."""
        writes = True
        while writes:
            writes = self._parts.writes()
            self._parts.start_again()
            self.show_statements()
            self.show_documents()
            sleep(LOOK_SECONDS)

    def show_statements(self) -> None:
        """Shows the lines that the application printed since the last call."""
        lines = self._parts.application_lines()
        for line in lines[self._shown :]:
            self._show(f"sql  {line}")
        self._shown = len(lines)
