"""All embedded parts together, for the time of a `with` block. `shared_parts.py` has parts that stay longer."""

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

from processor.local.cache import ShowProgress
from processor.local.dynamodb_api import start_moto
from processor.local.jars import kafka_broker_jars, silent
from processor.local.kafka_broker import start_kafka
from processor.local.owned_process import Owner
from processor.local.postgres_server import start_postgres
from processor.local.program import EmbeddedPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses of the three embedded parts: host:port, a SQLAlchemy URL, an http URL."""

    bootstrap_servers: str
    registry_url: str
    dynamodb_endpoint: str


@contextlib.contextmanager
def embedded_parts(directory: Path | None = None, progress: ShowProgress = silent) -> Iterator[Addresses]:
    """Start Kafka, Postgres and moto together; end them, and remove all their data, at the end of the block.

    Their data is in a new directory inside `directory` (default: the system's directory for temporary files). They end with
    the block, with an exception, with Ctrl-C, with SIGTERM, and also when this process is killed with -9. SIGTERM leaves the
    block as SystemExit(143), unless the program has a SIGTERM handler of its own. Raises PartError.
    """
    with owned_home(directory, progress) as (home, owner):
        yield _start_all(home, owner, progress)


@contextlib.contextmanager
def owned_home(directory: Path | None = None, progress: ShowProgress = silent) -> Iterator[tuple[Path, Owner]]:
    """A directory for the data of parts, and their owner: the promises of `embedded_parts`, without a part. The jars of the
    broker are there."""
    with _sigterm_as_exit(), _temporary_directory(directory) as home:
        kafka_broker_jars(progress)  # Ctrl-C interrupts the download here, not in a thread
        with Owner(remove=home) as owner:
            yield home, owner


def _start_all(home: Path, owner: Owner, progress: ShowProgress) -> Addresses:
    progress("starting Kafka, Postgres and DynamoDB (moto)")
    with ThreadPoolExecutor(3) as pool:
        kafka = pool.submit(start_kafka, home / "kafka", launch=owner.launch, progress=progress)
        postgres = pool.submit(start_postgres, home / "postgres", launch=owner.launch)
        dynamodb = pool.submit(start_moto, home / "dynamodb", launch=owner.launch)
        futures: list[Future[EmbeddedPart]] = [kafka, postgres, dynamodb]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            owner.close()  # then the other threads end, and with them the pool
            raise
    return Addresses(
        bootstrap_servers=kafka.result().endpoint,
        registry_url=postgres.result().endpoint,
        dynamodb_endpoint=dynamodb.result().endpoint,
    )


@contextlib.contextmanager
def _temporary_directory(parent: Path | None) -> Iterator[Path]:
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="statestore-", dir=parent)).resolve()
    try:
        home.chmod(0o711)  # under root Postgres runs as nobody, who must enter this directory
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _sigterm_as_exit() -> Iterator[None]:
    """Make SIGTERM raise SystemExit, so that all blocks end in order. Leaves a handler of the program unchanged."""
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
