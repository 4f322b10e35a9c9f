"""`statestore local up|status|down`: parts that stay between commands. Later commands find, restart and stop them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from processor.cli.main import parsed
from processor.environment.embedded import down, status, up
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from statestore.keys import Key
from statestore.store import Write

Processes = Callable[[Path], list[str]]
ALL = {"kafka": True, "postgres": True}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "a place" / "local"
    yield path
    down(path)


def kill(directory: Path, part: str) -> None:
    pid = json.loads((directory / "state.json").read_text())["parts"][part]["pid"]
    os.kill(pid, signal.SIGKILL)
    while (found := status(directory)) and found.alive[part]:
        time.sleep(0.02)


@pytest.mark.slow
def test_parts_and_their_data_stay_until_down(directory: Path, talk: SimpleNamespace, processes: Processes) -> None:
    assert status(directory) is None
    assert down(directory) is False

    command = [
        sys.executable,
        "-c",
        f"from pathlib import Path; from processor.environment.embedded import up; up(Path({str(directory)!r}))",
    ]
    subprocess.run(command, check=True)
    found = status(directory)
    assert found is not None
    assert found.alive == ALL
    talk.use(found.addresses)
    talk.postgres(found.addresses.registry_url, "create table t as select 7 as n")

    before = (directory / "state.json").read_text()
    assert up(directory) == found.addresses
    assert (directory / "state.json").read_text() == before

    assert down(directory) is True
    assert processes(directory) == []
    assert status(directory) is None

    tables = "select count(*) from pg_tables where tablename = 't'"
    assert talk.postgres(up(directory).registry_url, tables) == [(0,)]


@pytest.mark.slow
def test_the_console_starts_behind_the_parts_and_no_verb_needs_it(directory: Path, processes: Processes) -> None:
    address = up(directory, more=["console"]).endpoints["console"]
    with pytest.raises(HTTPError) as empty:
        urlopen(address, timeout=30)
    assert "run <code>statestore apply</code>" in empty.value.read().decode()
    kill(directory, "console")
    found = status(directory)
    assert found is not None
    assert (found.alive, found.all_alive, found.dead) == (ALL | {"console": False}, False, [])
    assert up(directory).endpoints["console"] == address
    assert down(directory) is True
    assert processes(directory) == []


@pytest.mark.slow
def test_a_part_that_died_is_reported_and_started_again_with_its_data(directory: Path, talk: SimpleNamespace) -> None:
    addresses = up(directory)
    talk.kafka(addresses.bootstrap_servers)
    talk.postgres(addresses.registry_url, "create table t (n int)", "insert into t values (7)")
    for part in ("kafka", "postgres"):
        kill(directory, part)
    found = status(directory)
    assert found is not None
    assert found.alive == {"kafka": False, "postgres": False}
    assert not found.all_alive

    assert up(directory) == addresses
    assert talk.kafka(addresses.bootstrap_servers, create=False) == [b"v"]
    assert talk.postgres(addresses.registry_url, "select n from t") == [(7,)]


@pytest.mark.slow
def test_the_table_in_postgres_is_synced_to_disk_and_stays_when_the_server_dies(
    directory: Path, talk: SimpleNamespace
) -> None:
    addresses = up(directory)
    assert talk.postgres(addresses.registry_url, "show fsync") == [("on",)]
    assert talk.postgres(addresses.registry_url, "show full_page_writes") == [("on",)]
    settings = Settings(store="postgres", store_url=addresses.registry_url)
    store = open_store(settings)
    store.create(1)
    store.write(Write(Key("a", "b"), {"n": 1}))
    store.close()
    kill(directory, "postgres")
    up(directory)
    again = open_store(settings)
    assert again.get([Key("a", "b")])[Key("a", "b")]["n"] == 1
    again.close()


@pytest.mark.slow
def test_a_directory_with_moto_keeps_moto_as_those_of_the_release_before_postgres_was_the_default(
    directory: Path, talk: SimpleNamespace
) -> None:
    before = up(directory, store="dynamodb")
    known = json.loads((directory / "state.json").read_text())
    assert (known["version"], set(known["parts"])) == (1, {"kafka", "postgres", "dynamodb"})  # as that release wrote it
    kill(directory, "dynamodb")

    assert up(directory) == before
    found = status(directory)
    assert found is not None
    assert found.alive == ALL | {"dynamodb": True}
    assert found.addresses.store == "dynamodb"
    talk.use(before)


@pytest.mark.slow
def test_moto_starts_next_to_the_parts_that_run(directory: Path) -> None:
    before = up(directory)
    args = parsed(["local", "up", "--store", "dynamodb", "--dir", str(directory)])
    assert args.run(args) == 0
    found = status(directory)
    assert found is not None
    assert found.addresses == replace(before, endpoints={"dynamodb": found.addresses.endpoints["dynamodb"]})
    assert found.addresses.store == "dynamodb"


@pytest.mark.rest
def test_the_command_prints_results_to_stdout_and_the_rest_to_stderr(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:

    def run(*words: str) -> tuple[int, str, str]:
        args = parsed(["local", *words, "--dir", str(directory)])
        return args.run(args), *capsys.readouterr()

    assert run("status") == (1, "no part is running; start them with `statestore local up`\n", "")
    code, out, err = run("up", "--json")
    assert code == 0
    assert set(json.loads(out)) == {"bootstrap_servers", "registry_url"}
    assert err == "starting kafka, postgres\n"
    code, out, err = run("status", "--json")
    assert (code, json.loads(out)["alive"], err) == (0, ALL, "")
    kill(directory, "kafka")
    code, out, err = run("status")
    assert code == 1
    assert "kafka              ended; `statestore local up` starts it again" in out
    assert "dynamodb" not in out
    assert run("down") == (0, "stopped\n", "")
    assert run("down", "--json") == (0, '{"stopped": false}\n', "")
