"""The stores of the contract tests: memory, and the DynamoDB doorway to moto and to DynamoDB Local, by the lean client and by
boto3, also behind a proxy. The proxy fails every fourth request and cuts the answers of queries into pages of unusual size.

A test with the marker `moto_lies(reason)` does not run on moto, whose answer there differs from DynamoDB's. A test with the
marker `counted` does not run behind the proxy, where a retried request counts again and pages differ.
"""

from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any, Literal

import boto3
import pytest

from statestore.dynamodb import DynamoStore
from statestore.memory import MemoryStore
from statestore.store import Store
from tests.contract.behind import Behind, lean_stores_behind
from tests.faulty.faults import UNNOTICED, Faults
from tests.faulty.indexes import Pages
from tests.faulty.proxy import proxy

SLOTS = 3
BY_BOTO3 = " by boto3"
STORES = ("memory", "moto", "moto by boto3", "dynamodb_local")
BEHIND_PROXY = ("faulty_moto", "faulty_dynamodb_local")
SLOW = ("dynamodb_local by boto3",)
SLOW_BEHIND_PROXY = ("faulty_moto by boto3", "faulty_dynamodb_local by boto3")
"""boto3 again, for `make test-all`: the lean client is the default."""

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "moto_lies(reason): moto's answer differs from DynamoDB's here")
    config.addinivalue_line("markers", "counted: counts requests or rows of a page, which faults change")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        counted = metafunc.definition.get_closest_marker("counted")
        often = STORES if counted else STORES + BEHIND_PROXY
        rarely = SLOW if counted else SLOW + SLOW_BEHIND_PROXY
        slow = [pytest.param(name, marks=pytest.mark.slow) for name in rarely]
        metafunc.parametrize("store", [*often, *slow], indirect=True)


@pytest.fixture(scope="session", autouse=True)
def _credentials(credentials: None) -> None:
    """Every test here sends requests to an API."""


@pytest.fixture(scope="session")
def faulty_moto(moto: str) -> Iterator[str]:
    yield from _faulty(moto)


@pytest.fixture(scope="session")
def faulty_dynamodb_local(dynamodb_local: str) -> Iterator[str]:
    yield from _faulty(dynamodb_local)


def _faulty(endpoint: str) -> Iterator[str]:
    with proxy(endpoint, Faults(1, UNNOTICED, rate=0.25), Pages(1)) as faulty:
        yield faulty


def _endpoint(request: pytest.FixtureRequest) -> str:
    lie = request.node.get_closest_marker("moto_lies")
    api = request.param.removesuffix(BY_BOTO3)
    if api.endswith("moto") and lie:
        pytest.skip(f"moto lies: {lie.args[0]}")
    return str(request.getfixturevalue(api))


@pytest.fixture(scope="session")
def tables() -> Iterator[dict[str, DynamoStore]]:
    """One table with three slots for each parameter of `store`. A new table for each test would take most of the time."""
    made: dict[str, DynamoStore] = {}
    yield made
    for store in made.values():
        store.close()


@pytest.fixture
def store(request: pytest.FixtureRequest, tables: dict[str, DynamoStore]) -> Store:
    """An empty store with three slots."""
    if request.param == "memory":
        return MemoryStore(SLOTS)
    endpoint, way = _endpoint(request), request.param
    if way not in tables:
        client: Literal["lean", "boto3"] = "boto3" if way.endswith(BY_BOTO3) else "lean"
        tables[way] = DynamoStore(table="contract", endpoint_url=endpoint, region="eu-west-1", client=client)
        tables[way].create(SLOTS)
    _empty(endpoint, "contract")
    tables[way].requests.clear()
    return tables[way]


def _empty(endpoint: str, table: str) -> None:
    client = _client(endpoint)
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in page["Items"]:
            client.delete_item(TableName=table, Key={"PK": item["PK"], "SK": item["SK"]})


@cache
def _client(endpoint: str) -> Any:
    return boto3.client("dynamodb", endpoint_url=endpoint, region_name="eu-west-1")


class Doorway:
    """Makes stores with tables that no other test uses. `client` is a plain client of the same API."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._prefix = f"doorway-{next(_numbers)}-"
        self._stores: list[DynamoStore] = []
        self.client = _client(endpoint)

    def __call__(self, name: str) -> DynamoStore:
        self._stores.append(DynamoStore(table=self._prefix + name, endpoint_url=self._endpoint, region="eu-west-1"))
        return self._stores[-1]

    def close(self) -> None:
        for store in self._stores:
            store.close()


@pytest.fixture(params=["moto", "dynamodb_local"])
def doorway(request: pytest.FixtureRequest) -> Iterator[Doorway]:
    """The DynamoDB doorway to each API."""
    made = Doorway(_endpoint(request))
    yield made
    made.close()


@pytest.fixture
def behind(moto: str) -> Behind:
    """Makes a store behind layers, over a table with one slot."""
    return lean_stores_behind(moto)
