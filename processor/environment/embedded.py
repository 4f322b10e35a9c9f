"""All embedded parts together: for the time of a `with` block (`embedded_parts`), or shared, from `up` until `down`.

Shared parts serve later commands. A directory holds their state file and their data until `down`. `up` starts a part that died
again, on its old port if that port is still free. Kafka and Postgres, with the table in it, come back with their data. The own
part of a store (moto) runs only where `up --store` has started it, or a release before Postgres was the default. The tables of
moto are in memory only: they end with its process, and a job must create and fill them again.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from processor.environment.programs.connect import start_connect
from processor.environment.programs.downloads import ShowProgress, kafka_broker_jars, locked, silent
from processor.environment.programs.program import Owner, PartsState, find_open_folder, remove_folder
from processor.environment.programs.servers import (
    CONSOLE_PORT,
    start_console,
    start_kafka,
    start_opensearch,
    start_store_postgres,
)
from processor.environment.stores.kind import StartPart
from processor.environment.stores.kinds import KINDS, embedded_kind, kind_of

BROKER, SERVER = "kafka", "postgres"
"""The parts that each job needs: the server holds the registry, and the table of a store without a part of its own."""
OPENSEARCH = "opensearch"
"""The part in which `land` keeps indexes."""
CONSOLE = "console"
"""The part that shows the others in a browser."""
DEBEZIUM = "debezium"
"""The part that reads a database of one's own (`up --source`): its connector is in the part's directory before it starts."""
LATER = (DEBEZIUM, CONSOLE)
"""They start after the others, which they use."""
JOB = "job"
"""The directory of the job that `local up --source` runs, with its log and its checkpoint."""


def part_functions() -> dict[str, StartPart]:
    """How to start each part, by name, in the usual order of parts."""
    own = {kind.embedded.part: kind.embedded.start for kind in KINDS.values() if kind.embedded.start is not None}
    return {
        BROKER: start_kafka,
        SERVER: start_store_postgres,
        **own,
        OPENSEARCH: start_opensearch,
        DEBEZIUM: start_connect,
        CONSOLE: start_console,
    }


def parts_of(store: str) -> set[str]:
    """The names of the parts that a job with this store needs."""
    return {BROKER, SERVER, kind_of(store).embedded.part}


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses of the embedded parts: host:port, a SQLAlchemy URL, and the endpoint of each store's own part that runs."""

    bootstrap_servers: str
    registry_url: str
    endpoints: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> str:
        """The store of a job that names none: the store whose own part somebody asked for, else the usual one."""
        own = (kind.name for kind in KINDS.values() if kind.embedded.part in self.endpoints)
        return next(own, embedded_kind().name)

    @property
    def named(self) -> dict[str, str]:
        """Each address with its name, as `local up` prints it."""
        own = {f"{part}_endpoint": endpoint for part, endpoint in self.endpoints.items()}
        return {"bootstrap_servers": self.bootstrap_servers, "registry_url": self.registry_url, **own}


@contextlib.contextmanager
def embedded_parts(
    directory: Path | None = None, progress: ShowProgress = silent, store: str | None = None
) -> Iterator[Addresses]:
    """Start the parts of a store together; end them, and remove all their data, at the end of the block. `store`: its kind; None:
    the usual one.

    Their data is in a new directory inside `directory` (default: the system's directory for temporary files). They end with
    the block, with an exception, with Ctrl-C, with SIGTERM, and also when this process is killed with -9. SIGTERM leaves the
    block as SystemExit(143), unless the program has a SIGTERM handler of its own. Raises PartError.
    """
    with owned_home(directory, progress) as (home, owner):
        yield _start_all(parts_of(store or embedded_kind().name), home, owner, progress)


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
    start = part_functions()
    with ThreadPoolExecutor(len(names)) as pool:
        started = {name: pool.submit(start[name], home / name, launch=owner.launch) for name in names}
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
    return ", ".join(name for name in part_functions() if name in names)


def addresses_of(endpoints: Mapping[str, str]) -> Addresses:
    """The addresses of started parts, by name."""
    return Addresses(
        bootstrap_servers=endpoints[BROKER],
        registry_url=endpoints[SERVER],
        endpoints={name: endpoint for name, endpoint in endpoints.items() if name not in (BROKER, SERVER)},
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsStatus:
    """The addresses of the shared parts, and for each part name whether its process runs."""

    addresses: Addresses
    alive: dict[str, bool]

    @property
    def all_alive(self) -> bool:
        return all(self.alive.values())

    @property
    def dead(self) -> list[str]:
        """The parts that died. A job needs no console."""
        return [name for name, alive in self.alive.items() if not alive and name != CONSOLE]


def up(
    directory: Path, progress: ShowProgress = silent, store: str | None = None, more: Collection[str] = ()
) -> Addresses:
    """Start those parts that do not run: of the store (None: the usual one), `more`, and those that the directory has. Returns
    the addresses of all parts. Raises PartError, and stops what it started."""
    kafka_broker_jars(progress)
    with _locked_state(directory, progress) as (home, state):
        wanted = parts_of(store or embedded_kind().name) | set(more) | state.parts.keys()
        missing = [name for name in wanted if not _runs(state, name)]
        if missing:
            progress(f"starting {named(missing)}")
            for at_once in (set(missing) - {*LATER}, set(missing) & {*LATER}):
                _start(at_once, home, state, progress)
        return _addresses(state)


def status(directory: Path) -> PartsStatus | None:
    """The status of the parts of a directory; None before `up` and after `down`."""
    state = PartsState(directory / "state.json")
    needed = parts_of(embedded_kind().name) | state.parts.keys() - {CONSOLE}
    if any(name not in state.parts or state.parts[name].endpoint is None for name in needed):
        return None
    alive = {name: _runs(state, name) for name in part_functions() if name in needed | state.parts.keys()}
    return PartsStatus(addresses=_addresses(state), alive=alive)


def down(directory: Path, progress: ShowProgress = silent) -> bool:
    """Stop the parts and remove their data. Returns False if there were no parts."""
    if not (directory / "state.json").exists():
        return False
    with _locked_state(directory, progress) as (home, state):
        parts = state.parts
        for name in parts.keys() & {*LATER}:
            parts[name].process.stop()
        with ThreadPoolExecutor(len(part_functions())) as pool:
            list(pool.map(lambda part: part.process.stop(), parts.values()))
        state.clear()
        for name in (*part_functions(), JOB):
            remove_folder(find_open_folder(home / name))
            remove_folder(home / name)
    return bool(parts)


def _start(names: Collection[str], home: Path, state: PartsState, progress: ShowProgress) -> None:
    with ThreadPoolExecutor(len(part_functions())) as pool:

        def start(name: str) -> None:
            before = state.parts.get(name)
            part = part_functions()[name](home / name, launch=state.launch(name), port=before.port if before else None)
            state.set_endpoint(name, part.endpoint)
            usual = before.port if before else CONSOLE_PORT if name == CONSOLE else None
            if usual not in (None, state.parts[name].port):
                progress(f"another program listens at port {usual}: {name} has port {state.parts[name].port} now")

        futures = [pool.submit(start, name) for name in names]
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            state.stop(names)  # then the other threads end, and with them the pool
            raise


@contextlib.contextmanager
def _locked_state(directory: Path, progress: ShowProgress) -> Iterator[tuple[Path, PartsState]]:
    """The directory, which this function makes if needed, and its state, locked against other commands."""
    directory.mkdir(parents=True, exist_ok=True)
    home = directory.resolve()
    with locked(home / "lock", lambda: progress("waiting for another command that uses these parts")):
        yield home, PartsState(home / "state.json")


def _runs(state: PartsState, name: str) -> bool:
    part = state.parts.get(name)
    return part is not None and part.endpoint is not None and part.process.alive()


def _addresses(state: PartsState) -> Addresses:
    return addresses_of({name: part.endpoint for name, part in state.parts.items() if part.endpoint})
