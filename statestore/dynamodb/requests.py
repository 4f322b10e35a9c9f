"""Builds the requests to DynamoDB: the keyword arguments of boto3's client methods. Sends none.

A copy whose source is missing removes its target (`Write.copy`), but no DynamoDB expression can choose between set and remove. So
the request says `SET prev_1 = if_not_exists(GSI_1, "")`, and `item` drops a `prev_k` that holds the empty text. Nothing is lost:
the sources of copies, slots and `_edges`, are never empty. `limits` takes no other target and refuses to set one to the empty
text.
"""

from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import product
from string import ascii_lowercase, digits
from types import NoneType
from typing import Any, NamedTuple

import orjson

from statestore.items import check_format
from statestore.keys import Key, behind_rows, index_row, index_rows
from statestore.limits import MAX_KEYS, check_condition, check_key, check_query, is_copied, storable
from statestore.store import (
    Absent,
    AbsentOrBelow,
    AbsentOrWithin,
    Condition,
    Delete,
    Equals,
    Item,
    Query,
    Terminal,
    Write,
)
from statestore.table import range_name
from statestore.values import canonical, decode, encode

ClientCall = dict[str, Any]
"""The keyword arguments of one method of boto3's client."""


def import_file(items: Iterable[Item]) -> bytes:
    """A file of these items for ImportTable. AWS bills its bytes, before compression."""
    wire = ({"Item": {name: encode(value) for name, value in item.items()}} for item in items)
    return b"\n".join(orjson.dumps(one, default=_base64) for one in wire)


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


_MISSING = {"S": ""}
_DIGITS = digits + ascii_lowercase
_SHORT = (*_DIGITS, *map("".join, product(_DIGITS[1:], _DIGITS)))
"""The numbers below 1,296 in base 36."""
_Comparison = tuple[type, str, str]
"""The kind of a condition, its attribute, and the one that the item must lack."""
_CONDITIONS: dict[type, tuple[str, tuple[str, ...]]] = {
    NoneType: ("", ()),
    Absent: ("attribute_not_exists(PK)", ()),
    AbsentOrBelow: ("attribute_not_exists(PK) OR {0} < {1}", ("value",)),
    AbsentOrWithin: ("attribute_not_exists(PK) OR ({0} >= {1} AND {0} < {2}{3})", ("start", "end")),
    Equals: ("{0} = {1}", ("value",)),
}
"""The expression of each kind of condition over its attribute, and the values that it compares."""
_RETURN = {"ReturnValues": "ALL_OLD", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def update_item(table: str, write: Write) -> ClientCall:
    """The conditional update. Raises Terminal for a write that DynamoDB refuses over any item."""
    values, when = storable(write), write.when
    template = _update(tuple(write.copy.items()), tuple(values), write.remove, tuple(write.add), _comparison(when))
    wire = [_MISSING] * len(write.copy)
    wire += [{"S": value} if type(value) is str else encode(value) for value in values.values()]
    wire += [encode(canonical(number)) for number in write.add.values()]
    return template.request(table, write.key, wire + _compared(when))


def transact_write_items(table: str, write: Write) -> ClientCall:
    """The transaction of a write and of those that go with it. A refusal returns the item of the first."""
    updates = [update_item(table, one) for one in (write, *write.also)]
    for update in updates:
        del update["ReturnValues"]
    return {"TransactItems": [{"Update": update} for update in updates]}


def delete_item(table: str, delete: Delete) -> ClientCall:
    """The conditional delete. Raises Terminal for a key that no item can have."""
    check_key(delete.key)
    check_condition(delete.key, delete.when)
    template = _delete(_comparison(delete.when))
    return template.request(table, delete.key, _compared(delete.when))


def batch_get_item(table: str, keys: Collection[Key]) -> list[ClientCall]:
    """Strongly consistent reads of all keys, each key once, 100 per request."""
    return [{"RequestItems": {table: {"Keys": chunk, "ConsistentRead": True}}} for chunk in _chunks(keys)]


def weak_batch_get_item(table: str, keys: Collection[Key]) -> list[ClientCall]:
    """The same reads, eventually consistent."""
    return [{"RequestItems": {table: {"Keys": chunk}}} for chunk in _chunks(keys)]


def query(table: str, query: Query, after: Key | None = None, limit: int | None = None) -> ClientCall:
    """A page of the query, of at most `limit` items: the first, or the next one when an earlier page ended at `after`.

    Raises Terminal for a query that DynamoDB refuses."""
    check_query(query)
    name = range_name(query.slot)
    condition, values = f"{query.slot} = :v0", {":v0": encode(query.value)}
    if query.row is not None:
        condition, values[":v1"] = f"{condition} AND {name} = :v1", encode(query.name or index_row(query.row))
    elif query.start and query.entity is not None:
        condition = f"{condition} AND {name} BETWEEN :v1 AND :v2"
        values |= {":v1": encode(query.start), ":v2": encode(behind_rows(query.entity))}
    elif query.entity is not None:
        condition, values[":v1"] = f"{condition} AND begins_with({name}, :v1)", encode(index_rows(query.entity))
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


def key_range(table: str, pk: str, first: str, last: str, limit: int, *, consistent: bool) -> ClientCall:
    """A page of the items of a partition of the table whose sort keys are in this range, both ends included."""
    return {
        "TableName": table,
        "ConsistentRead": consistent,
        "KeyConditionExpression": "PK = :v0 AND SK BETWEEN :v1 AND :v2",
        "ExpressionAttributeValues": {":v0": encode(pk), ":v1": encode(first), ":v2": encode(last)},
        "Limit": limit,
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


def scan(table: str, after: Key | None, limit: int) -> ClientCall:
    """A page of the whole table, strongly consistent, of at most `limit` items, behind an earlier page that ended at `after`."""
    start = {} if after is None else {"ExclusiveStartKey": _key(after)}
    return {"TableName": table, "ConsistentRead": True, "Limit": limit, **start}


def item(wire: Mapping[str, Any]) -> Item:
    """The item in an answer, without the targets of copies whose source was missing.

    Raises Terminal for an item that `update_item` cannot have written, and for an item of a newer release.
    """
    found: dict[str, Any] = {}
    try:
        for name, value in wire.items():
            text = value.get("S")
            if text:  # as most are
                found[name] = text
            elif text is None:
                found[name] = decode(value)
            elif not is_copied(name):
                found[name] = text
    except ValueError as error:
        raise Terminal(f"{wire.get('PK')} / {wire.get('SK')}: {error}: remove the item, or keep it elsewhere") from None
    check_format(found)
    return found


def _chunks(keys: Collection[Key]) -> list[list[dict[str, Any]]]:
    """The different keys of these, as many together as one request takes."""
    unique = list(dict.fromkeys(keys))
    for key in unique:
        check_key(key)
    wire = list(map(_key, unique))
    return [wire[start : start + MAX_KEYS] for start in range(0, len(wire), MAX_KEYS)]


def _key(key: Key) -> dict[str, Any]:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def _index_key(query: Query, key: Key) -> dict[str, Any]:
    return {query.slot: encode(query.value), range_name(query.slot): encode(index_row(key))}


def _comparison(when: Condition | None) -> _Comparison:
    return type(when), getattr(when, "attribute", ""), getattr(when, "lacks", "")


def _compared(when: Condition | None) -> list[dict[str, Any]]:
    """The values of a condition, as DynamoDB's JSON."""
    _, values = _CONDITIONS[type(when)]
    return [encode(canonical(getattr(when, name))) for name in values]


class _Template(NamedTuple):
    """The part that the requests of one shape share. values: the placeholders of its values, in order."""

    shared: ClientCall
    values: tuple[str, ...]

    def request(self, table: str, key: Key, values: list[dict[str, Any]]) -> ClientCall:
        request = {"TableName": table, "Key": _key(key), **self.shared}
        if values:
            request["ExpressionAttributeValues"] = dict(zip(self.values, values, strict=True))
        return request


@lru_cache(maxsize=4096)
def _update(
    copies: tuple[tuple[str, str], ...],
    sets: tuple[str, ...],
    removes: tuple[str, ...],
    adds: tuple[str, ...],
    when: _Comparison,
) -> _Template:
    """The updates of one shape: the writes of an entity have few different ones."""
    expression = _Expression()
    name, value = expression.name, expression.value
    changes = [f"{name(target)}=if_not_exists({name(source)},{value()})" for target, source in copies]
    changes += [f"{name(attribute)}={value()}" for attribute in sets]
    clauses = [
        *(["SET " + ",".join(changes)] if changes else []),
        *(["REMOVE " + ",".join(map(name, removes))] if removes else []),
        *(["ADD " + ",".join(f"{name(attribute)} {value()}" for attribute in adds)] if adds else []),
    ]
    update = {"UpdateExpression": " ".join(clauses)} if clauses else {}
    return expression.template({**update, **expression.condition(*when)})


@lru_cache(maxsize=16)
def _delete(when: _Comparison) -> _Template:
    expression = _Expression()
    return expression.template(expression.condition(*when))


class _Expression:
    """The placeholders of one request: `#a0` for names, `:v0` for values, so that no column name is a reserved word. Numbers are
    in base 36, which leaves room for more of them."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[str] = []

    def name(self, attribute: str) -> str:
        return self._names.setdefault(attribute, f"#a{_SHORT[len(self._names)]}")

    def value(self) -> str:
        self._values.append(f":v{_SHORT[len(self._values)]}")
        return self._values[-1]

    def condition(self, kind: type, attribute: str, lacks: str) -> ClientCall:
        form, values = _CONDITIONS[kind]
        name = self.name(attribute) if attribute else ""
        lacking = f" AND attribute_not_exists({self.name(lacks)})" if lacks else ""
        return {"ConditionExpression": form.format(name, *(self.value() for _ in values), lacking)} if form else {}

    def template(self, expressions: ClientCall) -> _Template:
        names = {placeholder: name for name, placeholder in self._names.items()}
        used = {"ExpressionAttributeNames": names} if names else {}
        return _Template({**expressions, **used, **_RETURN}, tuple(self._values))
