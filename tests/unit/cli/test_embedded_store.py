"""Where a verb with `--embedded` has its table, with and without `--store`."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from processor.cli.main import parsed
from processor.cli.options import reachable_settings
from processor.environment import embedded as parts
from processor.environment.embedded import Addresses
from processor.errors import PartError

POSTGRES = Addresses(bootstrap_servers="b:1", registry_url="postgresql+psycopg://h/postgres")
MOTO = Addresses(
    bootstrap_servers="b:1", registry_url="postgresql+psycopg://h/postgres", endpoints={"dynamodb": "http://e"}
)


def options(*words: str) -> argparse.Namespace:
    return parsed(["slots", "--embedded", *words])


def store_on(running: Addresses | None, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[str, str]:
    """The store and the endpoint of a verb, next to these parts of `local up`; None: it starts its own."""

    @contextmanager
    def start(progress: object, store: str) -> Iterator[Addresses]:
        yield MOTO if store == "dynamodb" else POSTGRES

    found = None if running is None else parts.PartsStatus(addresses=running, alive={"kafka": True})
    monkeypatch.setattr(parts, "status", lambda _: found)
    monkeypatch.setattr(parts, "embedded_parts", start)
    with reachable_settings(options(*words)) as settings:
        assert settings.store_url == settings.registry == POSTGRES.registry_url
        return settings.store, settings.endpoint


@pytest.mark.parametrize("running", [None, POSTGRES])
def test_the_table_is_in_postgres(running: Addresses | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_on(running, monkeypatch) == ("postgres", "")


def test_the_table_is_in_moto_where_local_up_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_on(MOTO, monkeypatch) == ("dynamodb", "http://e")
    assert store_on(MOTO, monkeypatch, "--store", "postgres") == ("postgres", "http://e")


def test_a_flag_or_a_variable_or_a_file_names_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert store_on(None, monkeypatch, "--store", "dynamodb") == ("dynamodb", "http://e")
    file = tmp_path / "settings.toml"
    file.write_text('store = "dynamodb"\n')
    assert store_on(None, monkeypatch, "--settings", str(file)) == ("dynamodb", "http://e")
    monkeypatch.setenv("STATESTORE_STORE", "dynamodb")
    assert store_on(None, monkeypatch) == ("dynamodb", "http://e")


def test_a_table_in_moto_without_moto_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PartError) as refused:
        store_on(POSTGRES, monkeypatch, "--store", "dynamodb")
    assert str(refused.value) == (
        "DynamoDB (moto): it does not run among the parts in .statestore/local. "
        "Start it with `statestore local up --store dynamodb`, or leave out --store."
    )
