"""The stores that keep the contract: memory, and the DynamoDB doorway before moto and before DynamoDB Local.

A test marked `moto_lies(reason)` is not run before moto, which answers there as DynamoDB does not.
"""

import os
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from statestore.dynamodb import DynamoStore
from statestore.memory import MemoryStore
from statestore.store import Store

SLOTS = 3
PARTS = Path(__file__).parents[2] / ".statestore"

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "moto_lies(reason): moto answers here as DynamoDB does not")


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    """Credentials that no AWS account knows."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The endpoint of a moto server."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The endpoint of DynamoDB Local; where it cannot be had, tests are skipped, but never on the build machine."""
    from processor.errors import PartError
    from processor.local.dynamodb import start_dynamodb_local

    try:
        part = start_dynamodb_local(PARTS)
    except PartError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no DynamoDB Local: {error}")
    yield part.endpoint
    part.stop()


def _endpoint(request: pytest.FixtureRequest) -> str:
    lie = request.node.get_closest_marker("moto_lies")
    if request.param == "moto" and lie:
        pytest.skip(f"moto lies: {lie.args[0]}")
    return str(request.getfixturevalue(request.param))


@pytest.fixture(scope="session")
def tables() -> Iterator[dict[str, DynamoStore]]:
    """One table with three slots for each API, by endpoint: making one for each test takes most of the time."""
    made: dict[str, DynamoStore] = {}
    yield made
    for store in made.values():
        store.close()


@pytest.fixture(params=["memory", "moto", "dynamodb_local"])
def store(request: pytest.FixtureRequest, tables: dict[str, DynamoStore]) -> Store:
    """An empty store with three slots."""
    if request.param == "memory":
        return MemoryStore(SLOTS)
    endpoint = _endpoint(request)
    if endpoint not in tables:
        tables[endpoint] = DynamoStore(table="contract", endpoint_url=endpoint, region="eu-west-1")
        tables[endpoint].create_table(SLOTS)
    _empty(endpoint, "contract")
    tables[endpoint].requests.clear()
    return tables[endpoint]


def _empty(endpoint: str, table: str) -> None:
    client = _client(endpoint)
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in page["Items"]:
            client.delete_item(TableName=table, Key={"PK": item["PK"], "SK": item["SK"]})


@cache
def _client(endpoint: str) -> Any:
    return boto3.client("dynamodb", endpoint_url=endpoint, region_name="eu-west-1")


class Doorway:
    """Makes stores over tables that no other test knows, and has a plain client of the same API."""

    def __init__(self, endpoint: str) -> None:
        self._where = {"endpoint_url": endpoint, "region": "eu-west-1"}
        self._prefix = f"doorway-{next(_numbers)}-"
        self._stores: list[DynamoStore] = []
        self.client = _client(endpoint)

    def __call__(self, name: str) -> DynamoStore:
        self._stores.append(DynamoStore(table=self._prefix + name, **self._where))
        return self._stores[-1]

    def close(self) -> None:
        for store in self._stores:
            store.close()


@pytest.fixture(params=["moto", "dynamodb_local"])
def doorway(request: pytest.FixtureRequest) -> Iterator[Doorway]:
    """The DynamoDB doorway before each API."""
    made = Doorway(_endpoint(request))
    yield made
    made.close()
