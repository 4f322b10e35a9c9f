"""All embedded parts together, for the time of a `with` block. `shared_parts.py` has parts that stay longer."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from processor.local.cache import ShowProgress
from processor.local.dynamodb_api import start_moto
from processor.local.jars import kafka_broker_jars, silent
from processor.local.kafka_broker import start_kafka
from processor.local.owned_process import Owner
from processor.local.postgres_server import start_store_postgres
from processor.local.program import EmbeddedPart

STORES = ("postgres", "dynamodb")
"""Where a job on embedded parts can have its table; the first is the default."""
START_FUNCTIONS: dict[str, Callable[..., EmbeddedPart]] = {
    "kafka": start_kafka,
    "postgres": start_store_postgres,
    "dynamodb": start_moto,
}


def parts_of(store: str) -> set[str]:
    """The names of the parts that a job with this store needs. Postgres holds the registry, and its table unless moto does."""
    return {"kafka", "postgres", "dynamodb"} if store == "dynamodb" else {"kafka", "postgres"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses of the embedded parts: host:port, a SQLAlchemy URL, an http URL that is empty without moto."""

    bootstrap_servers: str
    registry_url: str
    dynamodb_endpoint: str = ""

    @property
    def store(self) -> str:
        """The store of a job that names none: DynamoDB if somebody asked for moto."""
        return "dynamodb" if self.dynamodb_endpoint else "postgres"


@contextlib.contextmanager
def embedded_parts(
    directory: Path | None = None, progress: ShowProgress = silent, store: str = STORES[0]
) -> Iterator[Addresses]:
    """Start the parts of a store together; end them, and remove all their data, at the end of the block.

    Their data is in a new directory inside `directory` (default: the system's directory for temporary files). They end with
    the block, with an exception, with Ctrl-C, with SIGTERM, and also when this process is killed with -9. SIGTERM leaves the
    block as SystemExit(143), unless the program has a SIGTERM handler of its own. Raises PartError.
    """
    with owned_home(directory, progress) as (home, owner):
        yield _start_all(parts_of(store), home, owner, progress)


@contextlib.contextmanager
def owned_home(directory: Path | None = None, progress: ShowProgress = silent) -> Iterator[tuple[Path, Owner]]:
    """A directory for the data of parts, and their owner: the promises of `embedded_parts`, without a part. The jars of the
    broker are there."""
    with _sigterm_as_exit(), _temporary_directory(directory) as home:
        kafka_broker_jars(progress)  # Ctrl-C interrupts the download here, not in a thread
        with Owner(remove=home) as owner:
            yield home, owner


def _start_all(names: set[str], home: Path, owner: Owner, progress: ShowProgress) -> Addresses:
    progress(f"starting {named(names)}")
    with ThreadPoolExecutor(len(names)) as pool:
        started = {name: pool.submit(START_FUNCTIONS[name], home / name, launch=owner.launch) for name in names}
        try:
            done, _ = wait(started.values(), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        except BaseException:
            owner.close()  # then the other threads end, and with them the pool
            raise
    return addresses_of({name: future.result().endpoint for name, future in started.items()})


def named(names: Collection[str]) -> str:
    """The names of parts in their usual order, for a line of progress."""
    return ", ".join(name for name in START_FUNCTIONS if name in names)


def addresses_of(endpoints: Mapping[str, str]) -> Addresses:
    """The addresses of started parts, by name."""
    return Addresses(
        bootstrap_servers=endpoints["kafka"],
        registry_url=endpoints["postgres"],
        dynamodb_endpoint=endpoints.get("dynamodb", ""),
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
