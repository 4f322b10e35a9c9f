"""The standing parts: started by one command, used by the next ones, stopped by a last one.

A directory holds their state file and their data, until `down`. A part that died comes back on its port, if that is still
free, Kafka and Postgres with their data; DynamoDB (moto) has its tables in memory only: they are gone with its process, and
must be made and filled again.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from processor.local.cache import Progress, locked
from processor.local.dynamodb import start_moto
from processor.local.jars import kafka_broker_jars, silent
from processor.local.kafka import start_kafka
from processor.local.parts import Addresses
from processor.local.postgres import start_postgres
from processor.local.program import Part
from processor.local.state import State

STARTS: dict[str, Callable[..., Part]] = {"kafka": start_kafka, "postgres": start_postgres, "dynamodb": start_moto}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Where the parts answer, and which of them live."""

    addresses: Addresses
    alive: dict[str, bool]

    @property
    def whole(self) -> bool:
        return all(self.alive.values())


def up(directory: Path, progress: Progress = silent) -> Addresses:
    """Start the parts that do not run; where all do, just say where. Raises PartError, and then starts none."""
    kafka_broker_jars(progress)
    with _state(directory, progress) as (home, state):
        dead = [name for name in STARTS if not _lives(state, name)]
        if dead:
            progress(f"starting {', '.join(dead)}")
            _start(dead, home, state)
        return _addresses(state)


def status(directory: Path) -> Status | None:
    """What is known of the parts of a directory; None if `up` was never run there, or `down` was since."""
    state = State(directory / "state.json")
    if any(name not in state.entries or state.entries[name].endpoint is None for name in STARTS):
        return None
    return Status(addresses=_addresses(state), alive={name: _lives(state, name) for name in STARTS})


def down(directory: Path, progress: Progress = silent) -> bool:
    """Stop the parts and remove what they kept: state lasts until here. Whether there were any."""
    if not (directory / "state.json").exists():
        return False
    with _state(directory, progress) as (home, state):
        entries = state.entries
        with ThreadPoolExecutor(len(STARTS)) as pool:
            list(pool.map(lambda entry: entry.process.stop(), entries.values()))
        state.clear()
        for name in STARTS:
            shutil.rmtree(home / name, ignore_errors=True)
    return bool(entries)


def _start(names: list[str], home: Path, state: State) -> None:
    with ThreadPoolExecutor(len(STARTS)) as pool:

        def one(name: str) -> None:
            before = state.entries.get(name)
            part = STARTS[name](home / name, launch=state.launch(name), port=before.port if before else None)
            state.answered(name, part.endpoint)

        futures = [pool.submit(one, name) for name in names]
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            state.call_off(names)  # the other threads see their parts end, and the pool can end too
            raise


@contextlib.contextmanager
def _state(directory: Path, progress: Progress) -> Iterator[tuple[Path, State]]:
    """The directory, made if need be, and its state, held against other commands."""
    directory.mkdir(parents=True, exist_ok=True)
    home = directory.resolve()
    with locked(home / "lock", lambda: progress("another command works on these parts, waiting")):
        yield home, State(home / "state.json")


def _lives(state: State, name: str) -> bool:
    entry = state.entries.get(name)
    return entry is not None and entry.endpoint is not None and entry.process.alive()


def _addresses(state: State) -> Addresses:
    endpoints = {name: state.entries[name].endpoint or "" for name in STARTS}
    return Addresses(
        bootstrap_servers=endpoints["kafka"],
        registry_url=endpoints["postgres"],
        dynamodb_endpoint=endpoints["dynamodb"],
    )
