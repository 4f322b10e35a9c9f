"""What a store over DynamoDB counts of its requests: retries, throttles and units, with both clients."""

from collections import Counter

from statestore.dynamodb.store import DynamoStore
from statestore.store import Query
from tests.unit.statestore.dynamodb.test_store import OTHER, USER, WRITE, Api, api, store, wire

__all__ = ["api", "store"]  # fixtures
THROTTLED = "ProvisionedThroughputExceededException"


def units(n: float) -> dict[str, object]:
    return {"TableName": "state", "CapacityUnits": n}


def test_every_request_asks_for_the_units_that_it_consumes_and_the_store_adds_them_up(
    api: Api, store: DynamoStore
) -> None:
    api.answers += [
        (200, {"ConsumedCapacity": units(3.0)}),
        (200, {"Items": [], "ConsumedCapacity": units(0.5)}),
        (200, {"Items": [], "ConsumedCapacity": units(2.0)}),
        (200, {"Responses": {"state": []}, "ConsumedCapacity": [units(4.0)]}),
    ]
    store.write(WRITE)
    store.query(Query(slot="GSI_1", value="octocat"))
    store.query(Query(slot="GSI_2", value="octocat"))
    store.get([USER, OTHER])
    assert {asked["ReturnConsumedCapacity"] for asked in api.asked} == {"TOTAL"}
    assert store.spent == {"half units UpdateItem": 6, "half units Query": 5, "half units BatchGetItem": 8}


def test_a_throttled_attempt_counts_as_throttle_and_the_next_attempt_as_retry(api: Api, store: DynamoStore) -> None:
    api.fail(THROTTLED)
    api.answers.append((200, {}))
    store.write(WRITE)
    api.fail("InternalServerError", 500)
    api.answers.append((200, {}))
    store.write(WRITE)
    assert store.spent == {"throttles UpdateItem": 1, "retries UpdateItem": 2}


def test_keys_that_stay_unprocessed_count_as_throttles(api: Api, store: DynamoStore) -> None:
    left = {"state": {"Keys": [wire(OTHER)]}}
    api.answers += [
        (200, {"Responses": {"state": [wire(USER)]}, "UnprocessedKeys": left}),
        (200, {"Responses": {"state": [wire(OTHER)]}}),
    ]
    store.get([USER, OTHER])
    assert store.spent == {"throttles BatchGetItem": 1}


def test_a_store_that_sent_nothing_has_spent_nothing(store: DynamoStore) -> None:
    assert store.spent == Counter()
