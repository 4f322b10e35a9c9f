"""Layers that answer queries as a busy DynamoDB does: in odd pages, and late.

As rule 5 of the design has it: one index shows the writes of one row in their order, and drops its old key and shows its new
one together; different rows and indexes owe each other nothing. Reads of the table itself are never late.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from threading import Lock
from typing import Any

from tests.faulty.proxy import WRITES, Answer, Dice, Relay, Request

Wire = Mapping[str, Any]
"""An item as the API spells it."""
Place = tuple[str, str]
"""Partition key and sort key."""
Late = tuple[tuple[float, ...], Wire]
"""Until when each replica shows a row as it was, and how it was."""


FIRST = {"PK": {"S": "!"}, "SK": {"S": "!"}}
"""A key before all others."""


class Pages:
    """Gives a query's answer as it was asked for, one row at a time, or empty with a key to go on from. `given` counts pages."""

    def __init__(self, seed: int) -> None:
        self.given: Counter[str] = Counter()
        self._dice = Dice(seed)

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if request.operation != "Query":
            return relay(request)
        answer = _whole(request, relay)
        if answer.status != 200:
            return answer
        start = request.body.get("ExclusiveStartKey", FIRST)
        rows = sorted((row for row in answer.body["Items"] if _place(row) > _place(start)), key=_place)
        before, random = self._dice.throw(request)
        kind = random.choice(("whole", "whole", "one row", "empty"))
        if kind == "empty" and before % 4 < 3:
            self.given[kind] += 1
            return Answer(body={"Items": [], "LastEvaluatedKey": start})
        page = rows[: 1 if kind == "one row" else request.body.get("Limit")]
        if len(page) == len(rows):
            return Answer(body={"Items": rows})
        self.given[kind] += 1
        return Answer(body={"Items": page, "LastEvaluatedKey": {name: page[-1][name] for name in ("PK", "SK")}})


class LateIndexes:
    """Hides each write from each replica of each index for a while of its own; a query meets any replica. lags: draws how long,
    one number for each replica, in seconds of `clock`. `hidden` counts the rows that a query should have shown otherwise."""

    def __init__(self, seed: int, lags: Callable[[Random], Sequence[float]], clock: Callable[[], float]) -> None:
        self.hidden = 0
        self._seed, self._lags, self._clock = seed, lags, clock
        self._dice, self._lock = Dice(seed), Lock()
        self._late: dict[tuple[str, str], dict[Place, list[Late]]] = {}

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if request.operation in WRITES:
            with self._lock:
                return self._write(request, relay)
        if request.operation == "Query" and "IndexName" in request.body:
            with self._lock:
                return self._query(request, relay)
        return relay(request)

    def _write(self, request: Request, relay: Relay) -> Answer:
        before = _stands(request, relay)
        answer = relay(request)
        after = _stands(request, relay)
        if before != after:
            for slot in {name for name in (*before, *after) if name.startswith("GSI_")}:
                self._hide(request.body["TableName"], slot, _place(request.body["Key"]), before)
        return answer

    def _hide(self, table: str, slot: str, place: Place, before: Wire) -> None:
        """From now on, and for a while, the index shows the row as it was."""
        waiting = self._late.setdefault((table, slot), {}).setdefault(place, [])
        lags = self._lags(Random(f"{self._seed} {slot} {place} {len(waiting)}"))
        last = waiting[-1][0] if waiting else (0.0,) * len(lags)
        waiting.append((tuple(max(self._clock() + lag, t) for lag, t in zip(lags, last, strict=True)), before))

    def _query(self, request: Request, relay: Relay) -> Answer:
        answer = _whole(request, relay)
        late = self._late.get((request.body["TableName"], request.body["IndexName"]))
        if answer.status != 200 or not late:
            return answer
        now, (_, random) = self._clock(), self._dice.throw(request)
        replica = random.randrange(len(next(iter(late.values()))[0][0]))
        old = {
            place: shown[0] for place, waits in late.items() if (shown := [row for t, row in waits if t[replica] > now])
        }
        rows = [row for row in answer.body["Items"] if _place(row) not in old]
        self.hidden += len(answer.body["Items"]) - len(rows)
        return Answer(body={"Items": rows + [row for row in old.values() if _answers(row, request)]})


def _whole(request: Request, relay: Relay) -> Answer:
    """All pages of a query as one, from its beginning."""
    rows: list[Wire] = []
    body = {name: value for name, value in request.body.items() if name not in ("ExclusiveStartKey", "Limit")}
    while True:
        answer = relay(replace(request, body=body))
        if answer.status != 200:
            return answer
        rows += answer.body["Items"]
        if not (last := answer.body.get("LastEvaluatedKey")):
            return Answer(body={"Items": rows})
        body = {**body, "ExclusiveStartKey": last}


def _stands(request: Request, relay: Relay) -> Wire:
    """The item of a write's key as it stands; empty without one."""
    body = {"TableName": request.body["TableName"], "Key": request.body["Key"], "ConsistentRead": True}
    item: Wire = relay(replace(request, operation="GetItem", body=body)).body.get("Item", {})
    return item


def _answers(row: Wire, request: Request) -> bool:
    """Whether the row has what the store's spelling of a query asks: the slot's value, and a partition or its prefix."""
    asked = request.body["ExpressionAttributeValues"]
    pk = asked.get(":v1", {"S": ""})["S"]
    there = row.get("PK", {"S": ""})["S"]
    prefixed = "begins_with" in request.body["KeyConditionExpression"] or ":v1" not in asked
    in_partition: bool = there.startswith(pk) if prefixed else there == pk
    return in_partition and row.get(request.body["IndexName"]) == asked[":v0"]


def _place(row: Wire) -> Place:
    return row["PK"]["S"], row["SK"]["S"]
