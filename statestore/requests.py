"""Builds the requests to DynamoDB: the keyword arguments of boto3's client methods. Sends none.

A copy whose source is missing removes its target (`Write.copy`), but no DynamoDB expression can choose between set and remove. So
the request says `SET prev_1 = if_not_exists(GSI_1, "")`, and `item` drops a `prev_k` that holds the empty text. Nothing is lost:
the sources of copies, slots and `_edges`, are never empty. `limits` takes no other target and refuses to set one to the empty
text.
"""

from collections.abc import Collection, Mapping
from itertools import product
from string import ascii_lowercase, digits
from typing import Any

from statestore.attribute_values import canonical, decode, encode
from statestore.errors import Terminal
from statestore.keys import Key, index_row, index_rows
from statestore.limits import check_condition, check_key, check_query, is_copied, storable
from statestore.store import Absent, AbsentOrBelow, Condition, Delete, Equals, Item, Query, Write
from statestore.table import ROW

ClientCall = dict[str, Any]
"""The keyword arguments of one method of boto3's client."""

MAX_KEYS = 100
"""Keys that one BatchGetItem takes."""

_MISSING = ""
_DIGITS = digits + ascii_lowercase
_SHORT = (*_DIGITS, *map("".join, product(_DIGITS[1:], _DIGITS)))
"""The numbers below 1,296 in base 36."""
_RETURN = {"ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def update_item(table: str, write: Write) -> ClientCall:
    """The conditional update. Raises Terminal for a write that DynamoDB refuses over any item."""
    values = storable(write)
    expression = _Expression()
    sets = [
        f"{expression.name(target)}=if_not_exists({expression.name(source)},{expression.value(_MISSING)})"
        for target, source in write.copy.items()
    ]
    sets += [f"{expression.name(name)}={expression.value(value)}" for name, value in values.items()]
    removes = [expression.name(name) for name in write.remove]
    clauses = [
        *(["SET " + ",".join(sets)] if sets else []),
        *(["REMOVE " + ",".join(removes)] if removes else []),
    ]
    update = {"UpdateExpression": " ".join(clauses)} if clauses else {}
    condition = expression.condition(write.when)
    return {"TableName": table, "Key": _key(write.key), **update, **condition, **expression.attributes(), **_RETURN}


def delete_item(table: str, delete: Delete) -> ClientCall:
    """The conditional delete. Raises Terminal for a key that no item can have."""
    check_key(delete.key)
    check_condition(delete.key, delete.when)
    expression = _Expression()
    condition = expression.condition(delete.when)
    return {"TableName": table, "Key": _key(delete.key), **condition, **expression.attributes(), **_RETURN}


def batch_get_item(table: str, keys: Collection[Key]) -> list[ClientCall]:
    """Strongly consistent reads of all keys, each key once, 100 per request."""
    unique = list(dict.fromkeys(keys))
    for key in unique:
        check_key(key)
    chunks = [unique[start : start + MAX_KEYS] for start in range(0, len(unique), MAX_KEYS)]
    return [
        {"RequestItems": {table: {"Keys": [_key(key) for key in chunk], "ConsistentRead": True}}} for chunk in chunks
    ]


def query(table: str, query: Query, after: Key | None = None, limit: int | None = None) -> ClientCall:
    """A page of the query, of at most `limit` items: the first, or the next one when an earlier page ended at `after`.

    Raises Terminal for a query that DynamoDB refuses."""
    check_query(query)
    condition, values = f"{query.slot} = :v0", {":v0": encode(query.value)}
    if query.row is not None:
        condition, values[":v1"] = f"{condition} AND {ROW} = :v1", encode(index_row(query.row))
    elif query.entity is not None:
        condition, values[":v1"] = f"{condition} AND begins_with({ROW}, :v1)", encode(index_rows(query.entity))
    return {
        "TableName": table,
        "IndexName": query.slot,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        **({} if limit is None else {"Limit": limit}),
        **({} if after is None else {"ExclusiveStartKey": {**_key(after), **_index_key(query, after)}}),
    }


def partition(table: str, pk: str, after: Key | None = None, limit: int | None = None) -> ClientCall:
    """A page of a partition of the table, strongly consistent; `after` and `limit` as for `query`."""
    return {
        "TableName": table,
        "ConsistentRead": True,
        "KeyConditionExpression": "PK = :v0",
        "ExpressionAttributeValues": {":v0": encode(pk)},
        **({} if limit is None else {"Limit": limit}),
        **({} if after is None else {"ExclusiveStartKey": _key(after)}),
    }


def walk(table: str, source: Query | str, without: str) -> ClientCall:
    """The first page of the keys of a query's items, or of a partition's; not those with the attribute `without`.

    Raises Terminal for a query that DynamoDB refuses."""
    request = {**partition(table, source), "ConsistentRead": False} if isinstance(source, str) else query(table, source)
    return {
        **request,
        "ProjectionExpression": "PK,SK",
        "FilterExpression": "attribute_not_exists(#a0)",
        "ExpressionAttributeNames": {"#a0": without},
    }


def item(wire: Mapping[str, Any]) -> Item:
    """The item in an answer, without the targets of copies whose source was missing.

    Raises Terminal for an item that `update_item` cannot have written.
    """
    kept = {name: value for name, value in wire.items() if not (value.get("S") == _MISSING and is_copied(name))}
    try:
        return {name: decode(value) for name, value in kept.items()}
    except ValueError as error:
        raise Terminal(f"{wire.get('PK')} / {wire.get('SK')}: {error}: remove the item, or keep it elsewhere") from None


def _key(key: Key) -> dict[str, Any]:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def _index_key(query: Query, key: Key) -> dict[str, Any]:
    return {query.slot: encode(query.value), ROW: encode(index_row(key))}


class _Expression:
    """The placeholders of one request: `#a0` for names, `:v0` for values, so that no column name is a reserved word. Numbers are
    in base 36, which leaves room for more of them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[Any] = []

    def name(self, attribute: str) -> str:
        return self._names.setdefault(attribute, f"#a{_SHORT[len(self._names)]}")

    def value(self, value: Any) -> str:
        self._values.append(value)
        return f":v{_SHORT[len(self._values) - 1]}"

    def condition(self, when: Condition | None) -> ClientCall:
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

    def attributes(self) -> ClientCall:
        names = {placeholder: name for name, placeholder in self._names.items()}
        values = {f":v{_SHORT[number]}": encode(value) for number, value in enumerate(self._values)}
        return {
            **({"ExpressionAttributeNames": names} if names else {}),
            **({"ExpressionAttributeValues": values} if values else {}),
        }
