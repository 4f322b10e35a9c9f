"""The broker with a listener for each way to prove who a client is."""

from collections.abc import Iterator

import pytest

from tests.secured.broker import PASSWORD, VARIABLE, SecuredBroker, secured_broker


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
