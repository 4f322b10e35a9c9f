"""The shared parts: embedded parts that `up` starts, that later commands use, and that `down` stops.

A directory holds their state file and their data until `down`. `up` starts a part that died again, on its old port if that
port is still free. Kafka and Postgres, with the table in it, come back with their data. The own part of a store (moto) runs
only where `up --store` has started it, or a release before Postgres was the default. The tables of moto are in memory only: they
end with its process, and a job must create and fill them again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from processor.embedded.parts import CONSOLE, Addresses, addresses_of, named, part_functions, parts_of
from processor.local.downloads import ShowProgress, kafka_broker_jars, locked, silent
from processor.local.processes import PartsState
from processor.local.program import find_open_folder, remove_folder
from processor.stores.kinds import embedded_kind


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
            _start([name for name in missing if name != CONSOLE], home, state)
            _start([name for name in missing if name == CONSOLE], home, state)
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
        with ThreadPoolExecutor(len(part_functions())) as pool:
            list(pool.map(lambda part: part.process.stop(), parts.values()))
        state.clear()
        for name in part_functions():
            remove_folder(find_open_folder(home / name))
            remove_folder(home / name)
    return bool(parts)


def _start(names: list[str], home: Path, state: PartsState) -> None:
    with ThreadPoolExecutor(len(part_functions())) as pool:

        def start(name: str) -> None:
            before = state.parts.get(name)
            part = part_functions()[name](home / name, launch=state.launch(name), port=before.port if before else None)
            state.set_endpoint(name, part.endpoint)

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
