"""Verbs over a kind of store that only this test knows, with a real registry: get, status, slots and copy."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.cli.main import main
from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.identity import write_identity
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import KINDS
from processor.language.definitions.load import load
from processor.values.record import Record
from registry.repository import Registry
from tests.unit.environment.stores.toy_kind import TABLES, TOY

DEFINITIONS = {
    "entities.yaml": json.dumps(
        {"user": {"topic": "user", "key": ["id"], "columns": {"id": "int", "name": "string"}}},
    ),
    "profile.yaml": json.dumps({"product": "profile", "topic": "profile", "root": "user", "fields": ["id", "name"]}),
}
USER = Record(topic="user", partition=0, offset=0, key=b'{"id":1}', value=b'{"id":1,"name":"ada"}')


@pytest.fixture
def _job_on_the_toy(registry: Registry, postgres_url: str, schema: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The job of a registry with one stored row in the toy's table `first`."""
    monkeypatch.setitem(KINDS, "toy", TOY)
    for name, value in {"REGISTRY": postgres_url, "REGISTRY_SCHEMA": schema, "STORE": "toy", "TABLE": "first"}.items():
        monkeypatch.setenv(f"STATESTORE_{name}", value)
    registry.apply(requirements_of(load(DEFINITIONS)), who="a test", why="a toy")
    store, bound = TABLES["first"], registry.binding()
    store.create(5)
    store.write(write_identity(bound.identity))
    registry.bind(replace(bound, job="statestore", table="toy:first"))
    trial = Trial(plan=plan_of(registry.snapshot()), settings=Settings(store="toy"), other_store=store)
    trial.batch([USER])
    trial.finish()
    yield
    TABLES.clear()


@pytest.mark.usefixtures("_job_on_the_toy")
def test_the_verbs_read_the_toy_and_copy_moves_the_state_to_another_of_its_tables(
    registry: Registry, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["get", "profile", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": 1, "name": "ada"}
    assert main(["slots"]) == 0
    assert main(["copy", "--from", "toy", "--to", "toy://second"]) == 0
    assert "start the job with --store toy --table second" in capsys.readouterr().out
    assert registry.binding().table == "toy:second"
    monkeypatch.setenv("STATESTORE_TABLE", "second")
    assert main(["get", "profile", "1"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": 1, "name": "ada"}
    assert main(["status", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["version"] == 1
