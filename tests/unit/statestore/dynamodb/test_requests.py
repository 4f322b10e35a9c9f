"""The requests to DynamoDB, compared whole."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.dynamodb import requests
from statestore.items import FORMAT, Image, PendingKey, Row
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, AbsentOrBelow, Delete, Equals, Query, Terminal, Write
from statestore.values import MAX_COLUMNS, decode
from statestore.writes import merge_image, write_image

STAR = Key("TABLE#star", "octocat#hello#world")


def test_a_change_is_one_update_that_keeps_the_previous_join_keys() -> None:
    write = Write(
        key=STAR,
        set={"_v": "000001.7", "username": "octocat", "stars": 42, "GSI_1": "octocat", "GSI_2": "world#hello"},
        copy={"prev_1": "GSI_1", "prev_2": "GSI_2"},
        remove=("_deleted", "ttl"),
        when=AbsentOrBelow("_v", "000001.5"),
    )

    assert requests.update_item("state", write) == {
        "TableName": "state",
        "Key": {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
        "UpdateExpression": "SET #a0=if_not_exists(#a1,:v0),#a2=if_not_exists(#a3,:v1),"
        "#a4=:v2,#a5=:v3,#a6=:v4,#a1=:v5,#a3=:v6,#a7=:v7 REMOVE #a8,#a9",
        "ConditionExpression": "attribute_not_exists(PK) OR #a4 < :v8",
        "ExpressionAttributeNames": {
            "#a0": "prev_1",
            "#a1": "GSI_1",
            "#a2": "prev_2",
            "#a3": "GSI_2",
            "#a4": "_v",
            "#a5": "username",
            "#a6": "stars",
            "#a7": "GSI_SK",
            "#a8": "_deleted",
            "#a9": "ttl",
        },
        "ExpressionAttributeValues": {
            ":v0": {"S": ""},
            ":v1": {"S": ""},
            ":v2": {"S": "000001.7"},
            ":v3": {"S": "octocat"},
            ":v4": {"N": "42"},
            ":v5": {"S": "octocat"},
            ":v6": {"S": "world#hello"},
            ":v7": {"S": "star#octocat#hello#world"},
            ":v8": {"S": "000001.5"},
        },
        "ReturnValues": "ALL_OLD",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_a_row_goes_out_in_one_transaction_with_its_totals() -> None:
    total = Write(Key("TOTAL#7#star#username=octocat", "3"), {"_f": 1}, add={"n": 1, "s": Decimal("-1.5")})
    write = Write(key=STAR, set={"_v": "000001.7"}, when=Equals("_v", "000001.5"), also=(total,))

    assert requests.transact_write_items("state", write) == {
        "TransactItems": [
            {
                "Update": {
                    "TableName": "state",
                    "Key": {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
                    "UpdateExpression": "SET #a0=:v0",
                    "ConditionExpression": "#a0 = :v1",
                    "ExpressionAttributeNames": {"#a0": "_v"},
                    "ExpressionAttributeValues": {":v0": {"S": "000001.7"}, ":v1": {"S": "000001.5"}},
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
            {
                "Update": {
                    "TableName": "state",
                    "Key": {"PK": {"S": "TOTAL#7#star#username=octocat"}, "SK": {"S": "3"}},
                    "UpdateExpression": "SET #a0=:v0 ADD #a1 :v1,#a2 :v2",
                    "ExpressionAttributeNames": {"#a0": "_f", "#a1": "n", "#a2": "s"},
                    "ExpressionAttributeValues": {":v0": {"N": "1"}, ":v1": {"N": "1"}, ":v2": {"N": "-1.5"}},
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
        ]
    }


def test_a_write_that_only_removes_sends_no_values() -> None:
    assert requests.update_item("state", Write(key=STAR, set={}, remove=("a",), when=Absent())) == {
        "TableName": "state",
        "Key": {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
        "UpdateExpression": "REMOVE #a0",
        "ConditionExpression": "attribute_not_exists(PK)",
        "ExpressionAttributeNames": {"#a0": "a"},
        "ReturnValues": "ALL_OLD",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_a_write_of_nothing_sends_no_expression() -> None:
    assert requests.update_item("state", Write(key=STAR, set={})) == {
        "TableName": "state",
        "Key": {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
        "ReturnValues": "ALL_OLD",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_the_widest_write_fits_into_the_4_kb_of_an_expression() -> None:
    copies = {f"prev_{k}": f"GSI_{k}" for k in range(1, 21)}
    write = Write(key=STAR, set={f"column_{number}": number for number in range(330)}, copy=copies)

    assert len(requests.update_item("state", write)["UpdateExpression"]) <= 4096


@pytest.mark.parametrize("deleted", [False, True])
def test_a_row_of_as_many_columns_as_may_be_declared_fits(deleted: bool) -> None:
    names = tuple(f"column_{number}" for number in range(MAX_COLUMNS))
    columns = None if deleted else dict.fromkeys(names, 1)
    slots = dict.fromkeys(range(1, 21), "new")
    more = {} if deleted else {"more": 1}
    image = Image(key=STAR, version="2", columns=columns, more=more, declared=names, slots=slots)
    pending = (PendingKey(1, "older", "0"),)
    seen = Row(key=STAR, version="1", columns={}, more={}, slots=dict.fromkeys(slots, "old"), pending=pending)

    for write in (write_image(image, below="2"), merge_image(image, seen)):
        assert len(requests.update_item("state", write)["UpdateExpression"]) <= 4096


def test_a_delete_asks_for_the_former_item() -> None:
    assert requests.delete_item("state", Delete(key=STAR, when=Equals("_v", "000001.7"))) == {
        "TableName": "state",
        "Key": {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
        "ConditionExpression": "#a0 = :v0",
        "ExpressionAttributeNames": {"#a0": "_v"},
        "ExpressionAttributeValues": {":v0": {"S": "000001.7"}},
        "ReturnValues": "ALL_OLD",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_a_delete_without_a_condition_sends_none() -> None:
    assert requests.delete_item("state", Delete(key=STAR)) == {
        "TableName": "state",
        "Key": {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
        "ReturnValues": "ALL_OLD",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def test_keys_are_read_consistently_and_each_once() -> None:
    assert requests.batch_get_item("state", [STAR, Key("TABLE#user", "a@b.c"), STAR]) == [
        {
            "RequestItems": {
                "state": {
                    "Keys": [
                        {"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}},
                        {"PK": {"S": "TABLE#user"}, "SK": {"S": "a@b.c"}},
                    ],
                    "ConsistentRead": True,
                }
            }
        }
    ]


def test_a_weak_read_of_keys_asks_for_no_consistency() -> None:
    asked = {"Keys": [{"PK": {"S": "TABLE#star"}, "SK": {"S": "octocat#hello#world"}}]}
    assert requests.weak_batch_get_item("state", [STAR, STAR]) == [{"RequestItems": {"state": asked}}]


def test_keys_are_read_a_hundred_to_a_request() -> None:
    keys = [Key("TABLE#user", str(number)) for number in range(201)]
    chunks = [request["RequestItems"]["state"]["Keys"] for request in requests.batch_get_item("state", keys * 2)]

    assert [len(chunk) for chunk in chunks] == [100, 100, 1]
    assert [key["SK"]["S"] for chunk in chunks for key in chunk] == [key.sk for key in keys]
    assert requests.batch_get_item("state", []) == []


def test_a_query_of_a_slot_reads_every_partition() -> None:
    assert requests.query("state", Query(slot="GSI_2", value="42")) == {
        "TableName": "state",
        "IndexName": "GSI_2",
        "KeyConditionExpression": "GSI_2 = :v0",
        "ExpressionAttributeValues": {":v0": {"S": "42"}},
    }


def test_a_pinned_query_reads_the_rows_of_one_entity_in_all_its_shards() -> None:
    assert requests.query("state", Query(slot="GSI_2", value="42", entity="star")) == {
        "TableName": "state",
        "IndexName": "GSI_2",
        "KeyConditionExpression": "GSI_2 = :v0 AND begins_with(GSI_SK, :v1)",
        "ExpressionAttributeValues": {":v0": {"S": "42"}, ":v1": {"S": "star#"}},
    }


def test_the_next_page_of_a_query_starts_behind_a_row() -> None:
    assert requests.query("state", Query(slot="GSI_2", value="42"), STAR, 10) == {
        **requests.query("state", Query(slot="GSI_2", value="42")),
        "Limit": 10,
        "ExclusiveStartKey": {
            "PK": {"S": STAR.pk},
            "SK": {"S": STAR.sk},
            "GSI_2": {"S": "42"},
            "GSI_SK": {"S": "star#octocat#hello#world"},
        },
    }


def test_a_query_of_one_row_names_it() -> None:
    row = Key("TABLE#star#07", "octocat#hello#world")
    assert requests.query("state", Query(slot="GSI_2", value="42", row=row)) == {
        "TableName": "state",
        "IndexName": "GSI_2",
        "KeyConditionExpression": "GSI_2 = :v0 AND GSI_SK = :v1",
        "ExpressionAttributeValues": {":v0": {"S": "42"}, ":v1": {"S": "star#octocat#hello#world"}},
    }


def test_a_walk_asks_for_keys_only_and_leaves_marked_items_out() -> None:
    marked = {
        "ProjectionExpression": "PK,SK",
        "FilterExpression": "attribute_not_exists(#a0)",
        "ExpressionAttributeNames": {"#a0": "_deleted"},
    }
    query = Query(slot="GSI_2", value="42", entity="star")
    assert requests.walk("state", query, "_deleted") == requests.query("state", query) | marked
    partition = requests.partition("state", "TABLE#star") | {"ConsistentRead": False}
    assert requests.walk("state", "TABLE#star", "_deleted") == partition | marked


def test_reading_drops_exactly_the_copies_whose_source_was_missing() -> None:
    wire = {
        "prev_1": {"S": ""},
        "prev_2": {"S": "x"},
        "prev_name": {"S": ""},
        "name": {"S": ""},
        "gone": {"NULL": True},
    }

    assert requests.item(wire) == {"prev_2": "x", "prev_name": "", "name": "", "gone": None}


def test_an_item_that_another_program_wrote_is_named() -> None:
    with pytest.raises(Terminal, match=r"TABLE#a.* / .*b.*: an attribute of type SS was not written by statestore"):
        requests.item({"PK": {"S": "TABLE#a"}, "SK": {"S": "b"}, "tags": {"SS": ["x"]}})


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (Write(key=STAR, set={"PK": "a"}), "names an attribute twice, PK, SK, GSI_SK, or none"),
        (Write(key=STAR, set={"a": 1}, remove=("a",)), "names an attribute twice, PK, SK, GSI_SK, or none"),
        (Write(key=STAR, set={"": 1}), "names an attribute twice, PK, SK, GSI_SK, or none"),
        (Write(key=STAR, set={str(n): n for n in range(356)}), "356 attributes in a write, 355 at most: nest them"),
        (
            Write(key=STAR, set={}, copy={"former": "GSI_1"}),
            "GSI_1 cannot be copied to former: copy a GSI_k to a prev_k",
        ),
        (Write(key=STAR, set={}, copy={"prev_1": "name"}), "name cannot be copied to prev_1: copy a GSI_k to a prev_k"),
        (Write(key=STAR, set={"prev_1": ""}), "attribute prev_1: an empty text means missing there; remove it"),
        (Write(key=STAR, set={}, when=AbsentOrBelow("_v", [])), "_v has no order against a list"),
        (Write(key=STAR, set={}, when=Equals("_v", 1.5)), "attribute _v: a float cannot be stored exactly"),
        (Write(key=Key("TABLE#a", ""), set={}), "SK is '': a key is a non-empty text"),
        (Write(key=Key("TABLE#a", "é" * 513), set={}), "SK has 1026 bytes, at most 1024 are possible"),
    ],
)
def test_a_write_that_dynamodb_refuses_is_not_sent(write: Write, complaint: str) -> None:
    with pytest.raises(Terminal, match=complaint) as raised:
        requests.update_item("state", write)

    assert str(raised.value).startswith(f"{write.key.pk} / {write.key.sk}"[:200])


NAMES = st.sampled_from(["a", "size", "#a0", ":v0", "with space", "ttl", "GSI_1", "GSI_2", "_v"])
TEXTS = st.text(min_size=1, max_size=3)


@st.composite
def writes(draw: st.DrawFn) -> Write:
    sets = draw(st.dictionaries(NAMES, TEXTS, min_size=1))
    removes = tuple(name for name in draw(st.lists(NAMES, unique=True)) if name not in sets)
    copies = {f"prev_{k}": f"GSI_{k}" for k in draw(st.sets(st.sampled_from([1, 2])))}
    return Write(key=STAR, set=sets, copy=copies, remove=removes)


def done(request: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """What an update expression makes of an item, by its words alone."""
    names, values = request["ExpressionAttributeNames"], request.get("ExpressionAttributeValues", {})
    sets, _, removes = request["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
    after = dict(item)
    for target, copied, default, value in re.findall(r"(#\w+)=(?:if_not_exists\((#\w+),(:\w+)\)|(:\w+))", sets):
        given_ = decode(values[default or value])
        after[names[target]] = item.get(names[copied], given_) if copied else given_
    for name in filter(None, removes.split(",")):
        after.pop(names[name], None)
    return requests.item({name: {"S": value} for name, value in after.items()})  # type: ignore[return-value]


@given(st.lists(writes(), min_size=1, max_size=4))
def test_an_update_request_means_what_the_memory_store_does(writes: list[Write]) -> None:
    store, item = MemoryStore(2), {"PK": STAR.pk, "SK": STAR.sk}
    for write in writes:
        store.write(write)
        item = done(requests.update_item("state", write), item)
    assert store.get([STAR])[STAR] == item


KEY = {"PK": {"S": "LEDGER#profile"}, "SK": {"S": "7"}}


def test_an_item_of_a_newer_release_is_refused_with_its_key_and_the_cure() -> None:
    newer = {**KEY, "_f": {"N": f"{FORMAT + 1}"}, "seq": {"N": "1"}}
    message = (
        rf"LEDGER#profile / 7: the item has format {FORMAT + 1}, .* formats up to {FORMAT}: .* install that release"
    )
    with pytest.raises(Terminal, match=message):
        requests.item(newer)


@pytest.mark.parametrize("found", [{"N": f"{FORMAT}"}, {"N": "0"}, None])
def test_items_of_this_release_and_of_earlier_ones_are_read(found: dict[str, str] | None) -> None:
    wire = {**KEY, "_f": found} if found else KEY
    assert requests.item(wire)["SK"] == "7"
