"""A kind of store that a test adds: every verb takes it, although no other room knows its name."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main, parsed
from processor.cli.options import reachable_settings, set_embedded_credentials
from processor.engine.protocol.identity import check_binding
from processor.environment import embedded as parts
from processor.environment.embedded import Addresses, part_functions, parts_of
from processor.environment.settings.resolve import settings_at
from processor.environment.settings.settings import Settings, read_settings
from processor.environment.stores.kinds import KINDS, open_store
from processor.errors import OwnedByAnother, PartError, SettingError
from processor.job.run.outages import STORE, places
from processor.tools.doctor import context
from processor.tools.operate.erasure import make_certificate
from registry.model import Binding
from tests.unit.environment.stores.toy_kind import TABLES, TOY, ToyProbe
from tests.unit.tools.doctor.healthy import Healthy
from tests.unit.tools.operate.test_erasure import CONTEXT, REPORT


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(KINDS, "toy", TOY)
    yield
    TABLES.clear()


def test_the_settings_take_it_and_a_wrong_name_gets_its_name_too() -> None:
    assert read_settings({"store": "toy"}, {}).place == "toy:statestore"
    with pytest.raises(SettingError, match="store: there is no 'tox'; use dynamodb or postgres or toy"):
        read_settings({"store": "tox"}, {})


def test_its_store_is_opened() -> None:
    assert open_store(Settings(store="toy", table="t")) is TABLES["t"]


def test_copy_takes_its_name_and_its_addresses() -> None:
    assert settings_at("--to", "toy", Settings()) == Settings(store="toy")
    assert settings_at("--to", "toy://other", Settings()) == Settings(store="toy", table="other")
    with pytest.raises(SettingError, match="toy://TABLE, or only dynamodb or postgres or toy"):
        settings_at("--to", "tox://other", Settings())


@pytest.mark.parametrize("status", ["ACTIVE", None])
def test_doctor_runs_the_common_checks_and_its_own(
    status: str | None, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESTORE_STORE", "toy")
    settings = Settings(store="toy", bootstrap_servers="b1.example.org:9092", checkpoint="/nowhere")
    if status:
        TABLES["statestore"].create(20)
    probe: Any = ToyProbe(settings)
    made = Healthy(settings, table=probe, table_state=probe.state())
    monkeypatch.setattr(context, "CheckContext", lambda _, embedded, definitions: made)
    main(["doctor", "--json"])
    found = {one["check"]: one["text"] for one in json.loads(capsys.readouterr().out)["findings"]}
    assert (found["toy box"], found["colour"]) == ("the box is open", "the table is red")
    assert found["permissions"] == (
        "BatchGetItem, Query, Query of the indexes, UpdateItem, DeleteItem are allowed"
        if status
        else "there is no table"
    )
    assert not {"dynamodb", "credentials", "ttl", "store server", "log"} & set(found)


def test_local_up_and_a_verb_with_embedded_start_its_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert parsed(["local", "up", "--store", "toy"]).store == "toy"
    assert parsed(["demo", "--store", "toy"]).store == "toy"
    assert parts_of("toy") == {"kafka", "postgres", "toy"}
    assert part_functions()["toy"](tmp_path).endpoint == f"toy://{tmp_path.name}"
    running = Addresses(bootstrap_servers="b:1", registry_url="postgresql://h/d", endpoints={"toy": "toy://box"})
    assert running.named["toy_endpoint"] == "toy://box"
    monkeypatch.setattr(parts, "status", lambda _: None)

    @contextmanager
    def start(progress: object, store: str) -> Iterator[Addresses]:
        assert store == "toy"
        yield running

    monkeypatch.setattr(parts, "embedded_parts", start)
    monkeypatch.delenv("TOY_KEY", raising=False)
    with reachable_settings(parsed(["slots", "--embedded", "--store", "toy"])) as settings:
        assert (settings.store, settings.registry) == ("toy", "postgresql://h/d")
    assert os.environ["TOY_KEY"] == "embedded"


def test_a_verb_takes_the_store_whose_part_local_up_started(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Addresses(bootstrap_servers="b:1", registry_url="postgresql://h/d", endpoints={"toy": "toy://box"})
    for running, words, store in ((own, (), "toy"), (own, ("--store", "postgres"), "postgres")):
        status = parts.PartsStatus(addresses=running, alive={"toy": True})
        monkeypatch.setattr(parts, "status", lambda _, found=status: found)
        with reachable_settings(parsed(["slots", "--embedded", *words])) as settings:
            assert settings.store == store
    without = parts.PartsStatus(addresses=replace(own, endpoints={}), alive={"kafka": True})
    monkeypatch.setattr(parts, "status", lambda _: without)
    with pytest.raises(PartError, match=r"Toy \(embedded\): it does not run .*local up --store toy"):
        reachable_settings(parsed(["slots", "--embedded", "--store", "toy"])).__enter__()


def test_the_certificate_of_an_erasure_has_its_words() -> None:
    made = make_certificate(replace(CONTEXT, settings=Settings(store="toy")), REPORT)
    texts = json.dumps(made["remains"])
    assert "then the toy removes it at night" in texts
    assert "the former row in the box" in texts
    assert "DynamoDB" not in texts
    assert "Postgres" not in texts


def test_an_outage_and_a_foreign_table_name_it() -> None:
    assert places(Settings(store="toy"))[STORE] == "the toy box"
    registry = Binding(identity="id", job="statestore", table="toy:mine")
    with pytest.raises(OwnedByAnother, match="--store toy --table mine"):
        check_binding(registry, Binding(identity="", job="statestore", table="other"), table=None)


def test_the_credentials_of_embedded_parts_leave_those_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_KEY", "mine")
    set_embedded_credentials()
    assert os.environ["TOY_KEY"] == "mine"
