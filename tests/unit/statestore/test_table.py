"""The table definition, and the errors for a table that does not fit it."""

from typing import Any

import pytest

from statestore import table
from statestore.store import TableDescription, Terminal


def described(slots: int, **changed: Any) -> dict[str, Any]:
    """What DescribeTable says of a table that `create_table` made."""
    return {**table.create_table("state", slots), "TableStatus": "ACTIVE", **changed}


def test_a_table_is_made_on_demand_with_all_its_indexes() -> None:
    assert table.create_table("state", 2) == {
        "TableName": "state",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        "AttributeDefinitions": [
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
            {"AttributeName": "GSI_SK", "AttributeType": "S"},
            {"AttributeName": "GSI_1", "AttributeType": "S"},
            {"AttributeName": "GSI_2", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "GSI_1",
                "KeySchema": [
                    {"AttributeName": "GSI_1", "KeyType": "HASH"},
                    {"AttributeName": "GSI_SK", "KeyType": "RANGE"},
                ],
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["_f", "_indexed", "_indexed_v", "_deleted"],
                },
            },
            {
                "IndexName": "GSI_2",
                "KeySchema": [
                    {"AttributeName": "GSI_2", "KeyType": "HASH"},
                    {"AttributeName": "GSI_SK", "KeyType": "RANGE"},
                ],
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": ["_f", "_indexed", "_indexed_v", "_deleted"],
                },
            },
        ],
    }


def test_items_expire_by_their_ttl() -> None:
    assert table.enable_ttl("state") == {
        "TableName": "state",
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"},
    }


@pytest.mark.parametrize("slots", [1, 20])
def test_a_table_has_1_to_20_slots(slots: int) -> None:
    assert len(table.create_table("state", slots)["GlobalSecondaryIndexes"]) == slots


@pytest.mark.parametrize("slots", [0, 21, -1])
def test_no_other_number_of_slots_is_taken(slots: int) -> None:
    with pytest.raises(Terminal, match=f"a table has 1 to 20 slots, not {slots}"):
        table.create_table("state", slots)


@pytest.mark.parametrize("name", ["abc", "my-state_2.test", "x" * 255])
def test_a_table_name_that_dynamodb_takes_is_taken(name: str) -> None:
    assert table.table_name(name) == name


@pytest.mark.parametrize("name", ["", "ab", "x" * 256, "my table", "tête", "state\n"])
def test_a_table_name_that_dynamodb_refuses_is_refused(name: str) -> None:
    with pytest.raises(Terminal, match="cannot name a table: give 3 to 255 letters, digits"):
        table.create_table(name, 1)


def test_a_table_fits_its_own_definition_whatever_else_dynamodb_answers() -> None:
    description = described(3)
    names = ["_deleted", "_indexed_v", "_indexed", "_f"]
    description["GlobalSecondaryIndexes"] = [
        {
            **index,
            "IndexStatus": "ACTIVE",
            "ItemCount": 7,
            "KeySchema": index["KeySchema"][::-1],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": names},
        }
        for index in reversed(description["GlobalSecondaryIndexes"])
    ]

    assert table.slots_of(description) == 3
    assert table.misfits(description, 3) == []


def test_a_table_without_indexes_has_no_slots() -> None:
    assert table.slots_of({"TableName": "other"}) == 0


@pytest.mark.parametrize(
    ("ttl", "expires"),
    [
        ({"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}, True),
        ({"TimeToLiveStatus": "ENABLING", "AttributeName": "ttl"}, True),
        ({"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}, False),
        ({"TimeToLiveStatus": "DISABLED"}, False),
    ],
)
def test_a_description_holds_what_dynamodb_says_of_the_table(ttl: dict[str, str], expires: bool) -> None:
    description = TableDescription(name="state", slots=3, keys=("PK", "SK"), expires=expires)

    assert table.table_description(described(3), ttl) == description


def test_a_table_has_the_items_that_dynamodb_counted_last_and_before_that_nobody_knows() -> None:
    ttl = {"TimeToLiveStatus": "DISABLED"}
    assert table.table_description(described(3) | {"ItemCount": 7}, ttl).items == 7
    assert table.table_description(described(3) | {"ItemCount": 0}, ttl).items is None


def test_a_table_needs_the_slots_of_the_registry_and_may_have_more() -> None:
    assert table.misfits(described(3), 5) == [
        "it has 3 slots, not 5: `statestore add-slots 5` adds the missing indexes"
    ]
    assert table.misfits(described(5), 3) == []


def test_an_added_index_is_one_that_a_new_table_would_have() -> None:
    assert table.add_index("state", "GSI_3") == {
        "TableName": "state",
        "AttributeDefinitions": [
            {"AttributeName": "GSI_3", "AttributeType": "S"},
            {"AttributeName": "GSI_SK", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": table.create_table("state", 3)["GlobalSecondaryIndexes"][2]}],
    }


def test_another_key_is_named() -> None:
    keys = [{"AttributeName": "id", "KeyType": "HASH"}]

    assert table.misfits(described(1, KeySchema=keys), 1) == [
        "its key is not PK (hash), SK (range): give another table name"
    ]


def test_a_key_of_another_type_is_named() -> None:
    kinds = [{"AttributeName": "PK", "AttributeType": "S"}, {"AttributeName": "SK", "AttributeType": "N"}]

    assert table.misfits(described(1, AttributeDefinitions=kinds), 1) == [
        "SK is of type N, not S: give another table name"
    ]


def test_all_indexes_together_name_at_most_100_attributes() -> None:
    indexes = table.create_table("state", table.MAX_SLOTS)["GlobalSecondaryIndexes"]
    assert sum(len(index["Projection"]["NonKeyAttributes"]) for index in indexes) <= 100


@pytest.mark.parametrize(
    "projection",
    [
        {"ProjectionType": "KEYS_ONLY"},
        {"ProjectionType": "ALL"},
        {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["_f", "_indexed"]},
    ],
)
def test_an_index_that_shows_other_attributes_is_named(projection: dict[str, Any]) -> None:
    description = described(1)
    description["GlobalSecondaryIndexes"][0]["Projection"] = projection

    assert table.misfits(description, 1) == [
        "index GSI_1 is not GSI_1 (hash), GSI_SK (range), projection _f, _indexed, _indexed_v, _deleted: delete it and create it "
        "again"
    ]
