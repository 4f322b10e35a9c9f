"""The addresses that `statestore copy` takes."""

from dataclasses import replace

import pytest

from processor.environment.settings.resolve import settings_at
from processor.environment.settings.settings import Settings
from processor.errors import SettingError

HERE = Settings(
    store="postgres", store_url="postgresql://db/own", table="own", region="eu-west-1", endpoint="http://own:1"
)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgres", HERE),
        ("dynamodb", replace(HERE, store="dynamodb")),
        ("dynamodb://", replace(HERE, store="dynamodb")),
        (
            "dynamodb://us-east-1/other",
            replace(HERE, store="dynamodb", region="us-east-1", table="other", endpoint=""),
        ),
        (
            "dynamodb://us-east-1?endpoint=http://other:2",
            replace(HERE, store="dynamodb", region="us-east-1", endpoint="http://other:2"),
        ),
        (
            "postgresql://app@db:5433/state?sslmode=verify-full&table=other",
            replace(HERE, store_url="postgresql://app@db:5433/state?sslmode=verify-full", table="other"),
        ),
        ("postgresql://app@db/state", replace(HERE, store_url="postgresql://app@db/state")),
    ],
)
def test_a_part_that_an_address_leaves_out_comes_from_the_settings(address: str, expected: Settings) -> None:
    assert settings_at("--to", address, HERE) == expected


def test_a_reference_may_name_the_place_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE", "postgresql://app:secret@db/state?table=other")
    found = settings_at("--to", "env:STATE", HERE)
    assert (found.store_url, found.table) == ("postgresql://app:secret@db/state", "other")
    assert "app:secret" not in repr(found)


def test_the_password_of_the_settings_belongs_to_an_address_of_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "a b")
    found = settings_at("--to", "postgresql://app@db/state", replace(HERE, store_password="env:PASSWORD"))
    assert found.store_url == "postgresql://app@db/state?password=a%20b"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://app:secret@db/state", "--to: the address holds a password; leave it out"),
        ("mysql://db/state", "--to: there is no store at 'mysql://db/state': give dynamodb://REGION/TABLE"),
        ("dynamodb://eu-west-1/a?tabel=b", "--to: there is no store at"),
        ("http://[::1", "--to: the address is no URL"),
        ("state", "--to: there is no store at 'state'"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_with_its_cure(address: str, said: str) -> None:
    with pytest.raises(SettingError) as refused:
        settings_at("--to", address, HERE)
    assert str(refused.value).startswith(said)
    assert "secret" not in str(refused.value)
