"""How the DynamoDB doorway sends the requests of a turn: side by side."""

from collections.abc import Iterator, Mapping
from threading import Barrier
from typing import Any

import pytest

from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.store import Delete, Done, Page, Query, Read, Write

USERS = [Key(f"TABLE#user#{n % 2}", f"{n:03d}") for n in range(150)]
"""Too few of one partition for a range."""


class Sent:
    """Takes the requests of a store. No answer comes before `together` requests wait for theirs."""

    def __init__(self, together: int) -> None:
        self.meeting = Barrier(together, timeout=60)
        self.operations: list[str] = []

    def __call__(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.operations.append(operation)
        self.meeting.wait()
        match operation:
            case "Query":
                return {"Items": [{"PK": {"S": "TABLE#star"}, "SK": request["ExpressionAttributeValues"][":v0"]}]}
            case "BatchGetItem":
                return {"Responses": {"state": request["RequestItems"]["state"]["Keys"]}}
        return {}


@pytest.fixture
def sent() -> Sent:
    return Sent(together=2)


@pytest.fixture
def store(sent: Sent, credentials: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoStore]:
    made = DynamoStore(table="state", endpoint_url="http://127.0.0.1:1", region="eu-west-1", threads=2)
    monkeypatch.setattr(made, "_send", sent)
    yield made
    made.close()


def test_reads_go_out_side_by_side(store: DynamoStore, sent: Sent) -> None:
    ice, sun = Read(Query("GSI_1", "ice")), Read("sun", None, 9)
    assert store.read([ice, sun]) == [Page([{"PK": "TABLE#star", "SK": name}], None) for name in ("ice", "sun")]
    assert sent.operations == ["Query", "Query"]


def test_batches_of_keys_go_out_side_by_side(store: DynamoStore, sent: Sent) -> None:
    assert store.get(USERS) == {key: {"PK": key.pk, "SK": key.sk} for key in USERS}
    assert sent.operations == ["BatchGetItem", "BatchGetItem"]


def test_writes_and_deletes_go_out_side_by_side(store: DynamoStore, sent: Sent) -> None:
    requests: list[Write | Delete] = [Write(USERS[90], {"a": 1}), Delete(key=USERS[91])]
    assert store.write_all(requests) == [Done(None)] * 2
    assert sorted(sent.operations) == ["DeleteItem", "UpdateItem"]
