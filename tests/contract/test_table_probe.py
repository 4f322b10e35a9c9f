"""How a person who checks a set-up sees a table, over moto and over DynamoDB Local."""

from collections.abc import Iterator
from itertools import count
from time import time

import pytest

from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore

_numbers = count(1)


@pytest.fixture(params=["moto", "dynamodb_local"])
def probed(request: pytest.FixtureRequest, credentials: None) -> Iterator[DynamoStore]:
    """A store whose table does not exist yet."""
    endpoint = request.getfixturevalue(request.param)
    name, patience = f"probed-{next(_numbers)}", Patience(attempts=1)
    made = DynamoStore(table=name, endpoint_url=endpoint, region="eu-west-1", patience=patience)
    yield made
    made.close()


def test_a_created_table_has_the_keys_the_indexes_and_the_ttl_of_this_release(probed: DynamoStore) -> None:
    assert probed.probe().state() is None
    probed.create(3)
    state = probed.probe().state()
    assert state is not None
    assert (state.status, state.slots, state.misfits, state.expires, state.on_demand) == ("ACTIVE", 3, (), True, True)
    assert state.indexes == {"GSI_1": "ACTIVE", "GSI_2": "ACTIVE", "GSI_3": "ACTIVE"}
    assert not state.protected
    assert not state.recoverable


def test_the_endpoint_gives_its_time_without_credentials(probed: DynamoStore) -> None:
    server = probed.probe().server_time(5.0)
    assert server is not None
    assert abs(server.timestamp() - time()) < 60


def test_the_credentials_have_a_source(probed: DynamoStore) -> None:
    assert probed.probe().credentials_source() == "env"
