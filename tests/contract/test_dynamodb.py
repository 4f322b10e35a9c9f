"""How the DynamoDB doorway makes, describes and checks its table, before an API that answers as DynamoDB does."""

from typing import Any, Protocol

import pytest

from statestore import table
from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.store import Done, Query, TableDescription, Terminal, Write

USER = Key("TABLE#user", "octocat")
INDEXED = {"PK": USER.pk, "SK": USER.sk, "GSI_1": "a", "GSI_SK": "user#octocat"}


class Doorway(Protocol):
    """Makes stores, and a plain client of the same API."""

    client: Any

    def __call__(self, name: str) -> DynamoStore: ...


def test_a_table_is_usable_and_expires_its_items_as_soon_as_it_is_made(doorway: Doorway) -> None:
    store = doorway("usable")
    store.create(1)

    assert store.write(Write(key=USER, set={"GSI_1": "a"})) == Done(None)
    ttl = doorway.client.describe_time_to_live(TableName=store.table)["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}


def test_a_table_of_another_program_is_described_as_it_is(doorway: Doorway) -> None:
    store = doorway("described")
    doorway.client.create_table(
        TableName=store.table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )

    assert store.describe() == TableDescription(name=store.table, slots=0, keys=("id",), expires=False)


def test_creating_a_table_again_changes_nothing(doorway: Doorway) -> None:
    doorway("again").create(2)
    doorway("again").write(Write(key=USER, set={"GSI_1": "a"}))
    doorway("again").create(2)

    assert doorway("again").query(Query(slot="GSI_1", value="a")) == [INDEXED]


def test_each_table_has_its_own_time_also_under_the_same_name(doorway: Doorway) -> None:
    first, again, restored = doorway("made"), doorway("made"), doorway("made")
    first.create(1)
    again.create(1)
    assert again.created == first.created is not None

    doorway.client.delete_table(TableName=first.table)
    restored.create(1)
    assert restored.created != first.created


def test_a_table_made_by_other_means_gets_its_ttl(doorway: Doorway) -> None:
    store = doorway("bare")
    doorway.client.create_table(**table.create_table(store.table, 2))
    store.create(2)

    ttl = doorway.client.describe_time_to_live(TableName=store.table)["TimeToLiveDescription"]
    assert ttl["AttributeName"] == "ttl"


def test_slots_are_added_to_a_table_while_others_use_it(doorway: Doorway) -> None:
    store = doorway("slots")
    store.create(2)
    doorway("slots").add_slots(4, print)

    store.write(Write(key=USER, set={"GSI_4": "a"}))
    assert [item["SK"] for item in store.query(Query(slot="GSI_4", value="a"))] == [USER.sk]


def test_an_interrupted_addition_of_slots_goes_on_with_the_index_that_is_made(doorway: Doorway) -> None:
    store = doorway("resumed")
    store.create(1)
    doorway.client.update_table(**table.add_index(store.table, "GSI_2"))
    store.add_slots(3, print)

    store.create(3)


def test_a_table_of_something_else_is_not_taken(doorway: Doorway) -> None:
    store = doorway("foreign")
    doorway.client.create_table(
        TableName=store.table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )

    message = r"its key is not PK \(hash\), SK \(range\): give another table name"
    with pytest.raises(Terminal, match=message):
        store.create(1)
    with pytest.raises(Terminal, match=message):
        store.add_slots(1, print)
    assert store.describe() == TableDescription(name=store.table, slots=0, keys=("id",), expires=False)


def test_a_table_that_expires_items_by_another_attribute_is_not_taken(doorway: Doorway) -> None:
    store = doorway("expires")
    doorway.client.create_table(**table.create_table(store.table, 1))
    doorway.client.update_time_to_live(
        TableName=store.table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"}
    )

    with pytest.raises(Terminal, match="expires items by 'until', not 'ttl': disable its TTL"):
        store.create(1)


def test_a_start_describes_its_table_once_because_dynamodb_local_counts_all_items_for_that(doorway: Doorway) -> None:
    doorway("looked").create(1)
    store, asked = doorway("looked"), list[str]()
    store._boto3.api.meta.events.register("before-call.dynamodb", lambda model, **_: asked.append(model.name))

    store.create(1)

    assert asked.count("DescribeTable") == 1


def test_an_error_names_the_missing_table_and_the_key_and_says_what_to_do(doorway: Doorway) -> None:
    store = doorway("missing")

    for ask, what in (
        (lambda: store.write(Write(key=USER, set={})), "writing TABLE#user / octocat"),
        (lambda: store.get([USER]), "reading TABLE#user / octocat"),
        (lambda: store.query(Query(slot="GSI_1", value="a")), "querying GSI_1 for 'a'"),
    ):
        with pytest.raises(Terminal, match=f"table {store.table}: {what}: ResourceNotFoundException: .*: create it"):
            ask()
