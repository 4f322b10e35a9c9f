"""Stores with the lean client, behind the faulty proxy."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.store import Write
from tests.faulty.proxy import Layer, proxy

USERS = [Key("TABLE#user", str(n)) for n in range(16)]
WRITE = Write(key=USERS[0], set={"n": 1})
REGION = "eu-west-1"
Behind = Callable[..., AbstractContextManager[DynamoStore]]


def lean_stores_behind(moto: str) -> Behind:
    """Makes a store behind layers, over a table with one slot."""
    DynamoStore(table="lean", endpoint_url=moto, region=REGION).create(1)

    @contextmanager
    def made(*layers: Layer, attempts: int = 1) -> Iterator[DynamoStore]:
        with proxy(moto, *layers) as endpoint:
            patience = Patience(attempts=attempts, read_s=60.0, backoff_s=0.001, throttled_s=0.001)
            store = DynamoStore(table="lean", endpoint_url=endpoint, region=REGION, patience=patience)
            try:
                yield store
            finally:
                store.close()

    return made
