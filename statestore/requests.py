"""The low-level requests to DynamoDB, as keyword arguments of boto3's client methods; nothing is sent here.

A copy whose source is missing: `Write.copy` promises that the target is then removed, but one expression cannot set or
remove as the case may be. So `SET prev_1 = if_not_exists(GSI_1, "")` is sent, and on reading a `prev_k` that holds the
empty text is dropped. Nothing is lost by it: what is copied are slots, never empty, and `limits` takes no other target
and refuses to set one to the empty text.
"""

from collections.abc import Collection, Mapping
from itertools import product
from string import ascii_lowercase, digits
from typing import Any

from statestore.errors import Terminal
from statestore.keys import Key
from statestore.limits import check_condition, check_key, check_query, is_copied, storable
from statestore.store import Absent, AbsentOrBelow, Condition, Delete, Equals, Item, Query, Write
from statestore.values import canonical, decode, encode

Request = dict[str, Any]

MAX_KEYS = 100
"""Keys that one BatchGetItem takes."""

_MISSING = ""
_DIGITS = digits + ascii_lowercase
_SHORT = (*_DIGITS, *map("".join, product(_DIGITS[1:], _DIGITS)))
"""The numbers below 1,296 in base 36."""
_RETURN = {"ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def update_item(table: str, write: Write) -> Request:
    """The conditional update. Raises Terminal for a write that DynamoDB refuses whatever stands there."""
    values = storable(write)
    spelt = _Expression()
    sets = [
        f"{spelt.name(target)}=if_not_exists({spelt.name(source)},{spelt.value(_MISSING)})"
        for target, source in write.copy.items()
    ]
    sets += [f"{spelt.name(name)}={spelt.value(value)}" for name, value in values.items()]
    removes = [spelt.name(name) for name in write.remove]
    clauses = [
        *(["SET " + ",".join(sets)] if sets else []),
        *(["REMOVE " + ",".join(removes)] if removes else []),
    ]
    update = {"UpdateExpression": " ".join(clauses)} if clauses else {}
    condition = spelt.condition(write.when)
    return {"TableName": table, "Key": _key(write.key), **update, **condition, **spelt.attributes(), **_RETURN}


def delete_item(table: str, delete: Delete) -> Request:
    """The conditional delete. Raises Terminal for a key that no item can have."""
    check_key(delete.key)
    check_condition(delete.key, delete.when)
    spelt = _Expression()
    condition = spelt.condition(delete.when)
    return {"TableName": table, "Key": _key(delete.key), **condition, **spelt.attributes(), **_RETURN}


def batch_get_item(table: str, keys: Collection[Key]) -> list[Request]:
    """Strongly consistent reads of all the keys, each key once, 100 to a request."""
    unique = list(dict.fromkeys(keys))
    for key in unique:
        check_key(key)
    chunks = [unique[start : start + MAX_KEYS] for start in range(0, len(unique), MAX_KEYS)]
    return [
        {"RequestItems": {table: {"Keys": [_key(key) for key in chunk], "ConsistentRead": True}}} for chunk in chunks
    ]


def query(table: str, query: Query, after: Key | None = None, limit: int | None = None) -> Request:
    """A page of the query, the first unless an earlier one ended `after` some item, of at most `limit` items.

    Raises Terminal for a query that DynamoDB refuses."""
    check_query(query)
    condition, values = f"{query.slot} = :v0", {":v0": encode(query.value)}
    if query.pk is not None:
        condition, values[":v1"] = f"{condition} AND PK = :v1", encode(query.pk)
    elif query.pk_prefix is not None:
        condition, values[":v1"] = f"{condition} AND begins_with(PK, :v1)", encode(query.pk_prefix)
    return {
        "TableName": table,
        "IndexName": query.slot,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        **({} if limit is None else {"Limit": limit}),
        **({} if after is None else {"ExclusiveStartKey": {**_key(after), query.slot: encode(query.value)}}),
    }


def partition(table: str, pk: str, after: Key | None = None, limit: int | None = None) -> Request:
    """A page of a partition of the table, strongly consistent; `after` and `limit` as for `query`."""
    return {
        "TableName": table,
        "ConsistentRead": True,
        "KeyConditionExpression": "PK = :v0",
        "ExpressionAttributeValues": {":v0": encode(pk)},
        **({} if limit is None else {"Limit": limit}),
        **({} if after is None else {"ExclusiveStartKey": _key(after)}),
    }


def walk(table: str, of: Query | str, without: str) -> Request:
    """The first page of the keys of a query's items, or of a partition's, without those that have an attribute.

    Raises Terminal for a query that DynamoDB refuses."""
    asked = {**partition(table, of), "ConsistentRead": False} if isinstance(of, str) else query(table, of)
    return {
        **asked,
        "ProjectionExpression": "PK,SK",
        "FilterExpression": "attribute_not_exists(#a0)",
        "ExpressionAttributeNames": {"#a0": without},
    }


def item(wire: Mapping[str, Any]) -> Item:
    """The item that an answer holds, without the targets of copies that found nothing.

    Raises Terminal for an item that `update_item` cannot have written.
    """
    kept = {name: value for name, value in wire.items() if not (value.get("S") == _MISSING and is_copied(name))}
    try:
        return {name: decode(value) for name, value in kept.items()}
    except ValueError as error:
        raise Terminal(f"{wire.get('PK')} / {wire.get('SK')}: {error}: remove the item, or keep it elsewhere") from None


def _key(key: Key) -> dict[str, Any]:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


class _Expression:
    """Placeholders of one request: `#a0` for names, `:v0` for values, so that no column name is a reserved word; numbered in base
    36, which leaves room for more of them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[Any] = []

    def name(self, attribute: str) -> str:
        return self._names.setdefault(attribute, f"#a{_SHORT[len(self._names)]}")

    def value(self, value: Any) -> str:
        self._values.append(value)
        return f":v{_SHORT[len(self._values) - 1]}"

    def condition(self, when: Condition | None) -> Request:
        match when:
            case None:
                return {}
            case Absent():
                text = "attribute_not_exists(PK)"
            case AbsentOrBelow(attribute, value):
                text = f"attribute_not_exists(PK) OR {self.name(attribute)} < {self.value(canonical(value))}"
            case Equals(attribute, value):
                text = f"{self.name(attribute)} = {self.value(canonical(value))}"
        return {"ConditionExpression": text}

    def attributes(self) -> Request:
        names = {placeholder: name for name, placeholder in self._names.items()}
        values = {f":v{_SHORT[number]}": encode(value) for number, value in enumerate(self._values)}
        return {
            **({"ExpressionAttributeNames": names} if names else {}),
            **({"ExpressionAttributeValues": values} if values else {}),
        }
