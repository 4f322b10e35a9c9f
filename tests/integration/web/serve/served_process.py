"""`statestore serve` as a process, over a registry and a table in Postgres with one stored row."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from time import monotonic, sleep
from typing import Any

import httpx2

from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.identity import write_identity
from processor.engine.rounds.trial import Trial
from processor.environment.programs.program import free_port
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.language.definitions.load import load
from processor.values.record import Record
from registry.repository import Registry

ENTITIES = {"user": {"topic": "user", "key": ["id"], "columns": {"id": "int", "name": "string"}}}
PROFILE = {"product": "profile", "topic": "profile", "root": "user", "fields": ["id", "name"]}
USER = Record(topic="user", partition=0, offset=0, key=b'{"id":1}', value=b'{"id":1,"name":"ada"}')
COMMAND = [sys.executable, "-c", "from processor.cli.main import main; raise SystemExit(main())"]
TOKEN = "a-long-random-token"
SECONDS = 60.0


def definitions(**more: Any) -> Any:
    return load({"entities.yaml": json.dumps(ENTITIES), "profile.yaml": json.dumps(PROFILE | more)})


def stored_row(registry: Registry, registry_url: str, store_url: str, schema: str) -> dict[str, str]:
    """Stores a row, and its product. Returns the variables that lead there."""
    table = f"t_{schema}"
    settings = Settings(
        registry=registry_url, registry_schema=schema, store="postgres", store_url=store_url, table=table
    )
    registry.apply(requirements_of(definitions()), who="a test", why="a product")
    with closing(open_store(settings)) as store:
        bound = registry.binding()
        store.create(5)
        store.write(write_identity(bound.identity))
        trial = Trial(plan=plan_of(registry.snapshot()), settings=settings, other_store=store)
        trial.batch([USER])
        trial.finish()
    registry.bind(replace(bound, job="statestore", table=settings.place))
    names = {"REGISTRY": registry_url, "REGISTRY_SCHEMA": schema, "STORE": "postgres", "STORE_URL": store_url}
    return {f"STATESTORE_{name}": value for name, value in {**names, "TABLE": table}.items()} | {"TOKEN": TOKEN}


@contextmanager
def serving(environment: dict[str, str], *flags: str, before: Sequence[str] = ()) -> Iterator[int]:
    """The port of a server that listens. SIGTERM ends it with status 0, and it says little. `before`: of its command."""
    port = free_port()
    argv = [*before, *COMMAND, "serve", "--port", str(port), *flags]
    with subprocess.Popen(argv, env=os.environ | environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "look-ups at" in process.stderr.readline()
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) in (0, -signal.SIGTERM)
            assert process.stderr is not None
            assert len(written := process.stderr.read().splitlines()) < 5, written


def asked(ask: Callable[[], httpx2.Response], status: int = 200) -> httpx2.Response:
    """The answer, once it has this status."""
    until = monotonic() + SECONDS
    while True:
        answer = ask()
        if answer.status_code == status:
            return answer
        assert monotonic() < until, answer.text
        sleep(0.05)


@contextmanager
def answering(environment: dict[str, str], *flags: str) -> Iterator[Callable[..., Any]]:
    """Asks a server for a path: the values of the answer, once it has the given status, 200 by default."""
    with (
        serving(environment, *flags) as port,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS) as http,
    ):
        yield lambda path, status=200: asked(lambda: http.get(path), status).json()
