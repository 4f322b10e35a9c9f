"""Layers that answer queries as a busy DynamoDB does: in pages of unusual size, and late.

They follow rule 5 of docs/architecture.md. One index shows the writes of one row in their order, and drops the row's old key
when it shows the new one. Different rows and indexes have no common order. Reads of the table itself are never late.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from threading import Lock
from typing import Any

from statestore.limits import is_slot
from statestore.table import ROW, range_name
from tests.faulty.proxy import WRITES, Answer, Dice, Relay, Request, row_write

ApiItem = Mapping[str, Any]
"""An item as the API encodes it."""
ItemKey = tuple[str, str]
"""Partition key and sort key."""
LateRow = tuple[tuple[float, ...], ApiItem]
"""The time until which each replica shows the old row, and the old row."""


KEY_BEFORE_ALL = {"PK": {"S": "TABLE#!"}, "SK": {"S": "!"}}
"""The key of a row that sorts before all others."""


class Pages:
    """Answers a query with the asked page, with one row, or with no row and a key to continue from. `counts` counts the pages."""

    def __init__(self, seed: int) -> None:
        self.counts: Counter[str] = Counter()
        self._dice = Dice(seed)

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if request.operation != "Query":
            return relay(request)
        answer = _query_all(request, relay)
        if answer.status != 200:
            return answer
        start = request.body.get("ExclusiveStartKey", KEY_BEFORE_ALL)
        index = request.body.get("IndexName", "")
        rows = sorted(
            (row for row in answer.body["Items"] if _order(row, index) > _order(start, index)),
            key=lambda row: _order(row, index),
        )
        before, random = self._dice.throw(request)
        kind = random.choice(("whole", "whole", "one row", "empty"))
        if kind == "empty" and before % 4 < 3:
            self.counts[kind] += 1
            return Answer(body={"Items": [], "LastEvaluatedKey": start})
        page = rows[: 1 if kind == "one row" else request.body.get("Limit")]
        if len(page) == len(rows):
            return Answer(body={"Items": rows})
        self.counts[kind] += 1
        return Answer(body={"Items": page, "LastEvaluatedKey": {name: page[-1][name] for name in _key_names(index)}})


class LateIndexes:
    """Hides each write from each replica of each index for a time of its own. A query reads a random replica.

    lags: returns the times, one for each replica, in seconds of `clock`. `hidden` counts the newer rows that queries did not
    show.
    """

    def __init__(self, seed: int, lags: Callable[[Random], Sequence[float]], clock: Callable[[], float]) -> None:
        self.hidden = 0
        self._seed, self._lags, self._clock = seed, lags, clock
        self._dice, self._lock = Dice(seed), Lock()
        self._late: dict[tuple[str, str], dict[ItemKey, list[LateRow]]] = {}

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if request.operation in WRITES:
            with self._lock:
                return self._write(request, relay)
        if request.operation == "Query" and "IndexName" in request.body:
            with self._lock:
                return self._query(request, relay)
        return relay(request)

    def _write(self, request: Request, relay: Relay) -> Answer:
        row = row_write(request)
        before = _read_item(row, relay)
        answer = relay(request)
        after = _read_item(row, relay)
        if before != after:
            for slot in {name for name in (*before, *after) if is_slot(name)}:
                self._hide(row.body["TableName"], slot, _key(row.body["Key"]), before)
        return answer

    def _hide(self, table: str, slot: str, key: ItemKey, before: ApiItem) -> None:
        """From now on, each replica of the index shows the row of `before` for some time."""
        waiting = self._late.setdefault((table, slot), {}).setdefault(key, [])
        lags = self._lags(Random(f"{self._seed} {slot} {key} {len(waiting)}"))
        last = waiting[-1][0] if waiting else (0.0,) * len(lags)
        waiting.append((tuple(max(self._clock() + lag, t) for lag, t in zip(lags, last, strict=True)), before))

    def _query(self, request: Request, relay: Relay) -> Answer:
        answer = _query_all(request, relay)
        late = self._late.get((request.body["TableName"], request.body["IndexName"]))
        if answer.status != 200 or not late:
            return answer
        now, (_, random) = self._clock(), self._dice.throw(request)
        replica = random.randrange(len(next(iter(late.values()))[0][0]))
        old = {key: shown[0] for key, waits in late.items() if (shown := [row for t, row in waits if t[replica] > now])}
        rows = [row for row in answer.body["Items"] if _key(row) not in old]
        self.hidden += len(answer.body["Items"]) - len(rows)
        rows += [row for row in old.values() if _matches(row, request)]
        return Answer(body={"Items": sorted(rows, key=lambda row: _order(row, request.body["IndexName"]))})


def _query_all(request: Request, relay: Relay) -> Answer:
    """All rows of a query, from its first page to its last."""
    rows: list[ApiItem] = []
    body = {name: value for name, value in request.body.items() if name not in ("ExclusiveStartKey", "Limit")}
    while True:
        answer = relay(replace(request, body=body))
        if answer.status != 200:
            return answer
        rows += answer.body["Items"]
        if not (last := answer.body.get("LastEvaluatedKey")):
            return Answer(body={"Items": rows})
        body = {**body, "ExclusiveStartKey": last}


def _read_item(request: Request, relay: Relay) -> ApiItem:
    """The item with the key of a write; empty if there is none."""
    body = {"TableName": request.body["TableName"], "Key": request.body["Key"], "ConsistentRead": True}
    item: ApiItem = relay(replace(request, operation="GetItem", body=body)).body.get("Item", {})
    return item


def _matches(row: ApiItem, request: Request) -> bool:
    """Whether the row has what the store's spelling of a query asks: the slot's value, and a row or an entity's rows."""
    asked = request.body["ExpressionAttributeValues"]
    name = asked.get(":v1", {"S": ""})["S"]
    there = row.get(range_name(request.body["IndexName"]), {"S": ""})["S"]
    condition = request.body["KeyConditionExpression"]
    prefixed = "begins_with" in condition or ":v1" not in asked
    asked_for: bool = there.startswith(name) if prefixed else there == name
    if "BETWEEN" in condition:
        asked_for = name <= there <= asked[":v2"]["S"]
    return asked_for and row.get(request.body["IndexName"]) == asked[":v0"]


def _order(row: ApiItem, index: str) -> ItemKey:
    """The place of a row in an answer: by entity, then by sort key, or by its name in an index with an order."""
    if (name := range_name(index)) != ROW:
        return row.get(name, {"S": ""})["S"], ""
    pk, sk = _key(row)
    return pk.split("#")[1] if "#" in pk else pk, sk


def _key_names(index: str) -> tuple[str, ...]:
    return ("PK", "SK", *({range_name(index)} - {ROW}))


def _key(row: ApiItem) -> ItemKey:
    return row["PK"]["S"], row["SK"]["S"]
