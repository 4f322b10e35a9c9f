"""All embedded parts together, for as long as a `with` block lasts. Parts that stay between commands: `standing.py`."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from processor.local.cache import Progress
from processor.local.dynamodb import start_moto
from processor.local.jars import kafka_broker_jars, silent
from processor.local.kafka import start_kafka
from processor.local.kept import Owner
from processor.local.postgres import start_postgres
from processor.local.program import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where the three parts answer: host:port, a SQLAlchemy URL, an http URL."""

    bootstrap_servers: str
    registry_url: str
    dynamodb_endpoint: str


@contextlib.contextmanager
def embedded(directory: Path | None = None, progress: Progress = silent) -> Iterator[Addresses]:
    """Kafka, Postgres and moto, started together, gone at the end of the block with all their data.

    They live in a new directory inside `directory` (default: the system's place for temporary files). They end with
    the block, an exception, Ctrl-C, SIGTERM (which leaves the block as SystemExit(143), unless the program handles it
    itself), and also when this process is killed with -9. Raises PartError.
    """
    with _sigterm_as_exit(), _scratch(directory) as scratch:
        kafka_broker_jars(progress)  # here, where Ctrl-C can interrupt it
        with Owner(remove=scratch) as owner:
            yield _start_all(scratch, owner, progress)


def _start_all(scratch: Path, owner: Owner, progress: Progress) -> Addresses:
    progress("starting Kafka, Postgres and DynamoDB (moto)")
    with ThreadPoolExecutor(3) as pool:
        kafka = pool.submit(start_kafka, scratch / "kafka", launch=owner.launch, progress=progress)
        postgres = pool.submit(start_postgres, scratch / "postgres", launch=owner.launch)
        dynamodb = pool.submit(start_moto, scratch / "dynamodb", launch=owner.launch)
        futures: list[Future[Part]] = [kafka, postgres, dynamodb]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            owner.close()  # the other threads see their parts end, and the pool can end too
            raise
    return Addresses(
        bootstrap_servers=kafka.result().endpoint,
        registry_url=postgres.result().endpoint,
        dynamodb_endpoint=dynamodb.result().endpoint,
    )


@contextlib.contextmanager
def _scratch(parent: Path | None) -> Iterator[Path]:
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="statestore-", dir=parent)).resolve()
    try:
        scratch.chmod(0o711)  # Postgres of a root user runs as nobody, and must get through
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Let SIGTERM raise SystemExit, so that blocks are left in order; a handler of the program's own is respected."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
