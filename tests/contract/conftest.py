"""The stores of the contract tests: memory, Postgres of the newest release and of an older one, and the DynamoDB doorway to moto
and to DynamoDB Local, by the lean client and by boto3, also behind a proxy. The proxy fails every fourth request and cuts the
answers of queries into pages of unusual size.

A test with the marker `moto_lies(reason)` does not run on moto, whose answer there differs from DynamoDB's. A test with the
marker `counted` does not run behind the proxy, where a retried request counts again and pages differ. A test with the marker
`bundled` does not run on Postgres, where a request takes more keys and writes than DynamoDB's. A test with the marker
`long_on(store)` takes seconds on that store, and only `make test-rest` runs it there.
"""

from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any, Literal

import boto3
import pytest

from statestore.dynamodb.store import DynamoStore
from statestore.memory import MemoryStore
from statestore.postgres import PostgresStore
from statestore.store import Store
from tests.contract.behind import Behind, lean_stores_behind
from tests.contract.postgres_servers import execute, running_postgres
from tests.faulty.faults import UNNOTICED, Faults
from tests.faulty.indexes import Pages
from tests.faulty.proxy import proxy
from tests.support.required import required_older_postgres

SLOTS = 3
BY_BOTO3 = " by boto3"
STORES = ("memory", "dynamodb_local")
ON_POSTGRES = ("postgres", "older_postgres")
BEHIND_PROXY = ("faulty_dynamodb_local",)
REST = ("moto", "moto by boto3")
REST_BEHIND_PROXY = ("faulty_moto",)
"""Moto is the weaker witness: `make test` asks DynamoDB Local, and `make test-rest` moto, too."""
SLOW = ("dynamodb_local by boto3",)
SLOW_BEHIND_PROXY = ("faulty_moto by boto3", "faulty_dynamodb_local by boto3")
"""boto3 again, for `make test-all`: the lean client is the default."""

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "moto_lies(reason): moto's answer differs from DynamoDB's here")
    config.addinivalue_line("markers", "bundled: counts requests of DynamoDB's sizes")
    config.addinivalue_line("markers", "long_on(store): takes seconds on this store; `make test-rest` runs it there")
    config.addinivalue_line("markers", "counted: counts requests or rows of a page, which faults change")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames:
        counted = metafunc.definition.get_closest_marker("counted")
        long_on = {name for mark in metafunc.definition.iter_markers("long_on") for name in mark.args}
        usual = STORES if counted else STORES + BEHIND_PROXY
        often = [name for name in usual if name not in long_on]
        rest = (*sorted(long_on), *(REST if counted else REST + REST_BEHIND_PROXY))
        slow = SLOW if counted else SLOW + SLOW_BEHIND_PROXY
        rarely = [pytest.param(name, marks=pytest.mark.rest) for name in rest]
        rarely += [pytest.param(name, marks=pytest.mark.slow) for name in slow]
        postgres = [] if metafunc.definition.get_closest_marker("bundled") else params_on_postgres()
        metafunc.parametrize("store", [*often, *postgres, *rarely], indirect=True)


def params_on_postgres() -> list[Any]:
    """The names of the Postgres servers, as parameters of tests. `make test` asks the newest one."""
    return ["postgres", pytest.param("older_postgres", marks=(pytest.mark.older_postgres, pytest.mark.rest))]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of an embedded Postgres."""
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def older_postgres() -> Iterator[str]:
    """The address of a Postgres of an older release."""
    with running_postgres(required_older_postgres()) as url:
        yield url


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
def tables() -> Iterator[dict[str, DynamoStore | PostgresStore]]:
    """One table with three slots for each parameter of `store`. A new table for each test would take most of the time."""
    made: dict[str, DynamoStore | PostgresStore] = {}
    yield made
    for store in made.values():
        store.close()


@pytest.fixture
def store(request: pytest.FixtureRequest, tables: dict[str, DynamoStore | PostgresStore]) -> Store:
    """An empty store with three slots."""
    if request.param == "memory":
        return MemoryStore(SLOTS)
    if request.param in ON_POSTGRES:
        return _on_postgres(request, tables)
    endpoint, way = _endpoint(request), request.param
    if way not in tables:
        client: Literal["lean", "boto3"] = "boto3" if way.endswith(BY_BOTO3) else "lean"
        tables[way] = DynamoStore(table="contract", endpoint_url=endpoint, region="eu-west-1", client=client)
        tables[way].create(SLOTS)
    _empty(endpoint, "contract")
    tables[way].requests.clear()
    return tables[way]


def _on_postgres(request: pytest.FixtureRequest, tables: dict[str, DynamoStore | PostgresStore]) -> Store:
    url = str(request.getfixturevalue(request.param))
    if request.param not in tables:
        tables[request.param] = PostgresStore(url=url, table="contract")
        tables[request.param].create(SLOTS)
    execute(url, "TRUNCATE state_contract.items")
    tables[request.param].requests.clear()
    return tables[request.param]


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


@pytest.fixture(params=[pytest.param("moto", marks=pytest.mark.rest), "dynamodb_local"])
def doorway(request: pytest.FixtureRequest) -> Iterator[Doorway]:
    """The DynamoDB doorway to each API."""
    made = Doorway(_endpoint(request))
    yield made
    made.close()


@pytest.fixture
def behind(moto: str) -> Behind:
    """Makes a store behind layers, over a table with one slot."""
    return lean_stores_behind(moto)
