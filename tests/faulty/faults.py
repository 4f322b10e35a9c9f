"""A layer that makes requests fail as DynamoDB and networks do: before the API applies a request, after it, or for a part of it.

throttled, failed, dropped, late                 the API applies nothing (late: the answer comes after the client's timeout)
failed/dropped/corrupt/late after                the API applies the request, but the client gets no complete answer
                                                 (dropped after: the connection ends in the middle of the answer;
                                                 corrupt after: the answer differs from its checksum)
unprocessed                                      the API hands back a part of a batch unprocessed, sometimes all of it
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from threading import Lock
from typing import Any

from tests.faulty.proxy import WRITES, Answer, Dice, Dropped, Relay, Request

Weights = Mapping[str, Mapping[str, int]]
"""By operation: the weight of each kind of fault."""

BEFORE = {"throttled": 1, "failed": 4, "dropped": 4}
AFTER = {"failed after": 4, "dropped after": 4, "corrupt after": 2}
LATE = {"late": 1, "late after": 1}
UNPROCESSED = {"unprocessed": 8}

UNNOTICED: Weights = {
    **dict.fromkeys(WRITES, BEFORE),
    "Query": BEFORE | AFTER,
    "BatchGetItem": BEFORE | AFTER | UNPROCESSED,
    "BatchWriteItem": UNPROCESSED,
}
"""Faults that a client must hide from its caller by trying again."""

ALL: Weights = {
    **dict.fromkeys(WRITES, BEFORE | AFTER | LATE),
    "Query": BEFORE | AFTER | LATE,
    "BatchGetItem": BEFORE | AFTER | LATE | UNPROCESSED,
}
"""Also lost answers of writes: the second attempt of a client finds the write of the first."""

THROTTLED = [
    Answer(status=400, body={"__type": f"x#{code}", "message": "too much at once"})
    for code in ("ProvisionedThroughputExceededException", "ThrottlingException")
]
FAILED = Answer(status=500, body={"__type": "x#InternalServerError", "message": "something broke"})


class Faults:
    """Makes faults of the given kinds.

    rate: the share of requests that fail; the same request fails three times in a row at most. late: the delay in seconds,
    more than the client's timeout. `counts` counts the faults by kind.
    """

    def __init__(self, seed: int, kinds: Weights, *, rate: float, late: float = 0.0) -> None:
        self.counts: Counter[str] = Counter()
        self._dice, self._kinds, self._rate, self._late, self._lock = Dice(seed), kinds, rate, late, Lock()

    def __call__(self, request: Request, relay: Relay) -> Answer:
        before, random = self._dice.throw(request)
        weights = self._kinds.get(request.operation)
        if weights is None or before % 4 == 3 or random.random() > self._rate:
            return relay(request)
        (kind,) = random.choices(list(weights), list(weights.values()))
        with self._lock:
            self.counts[kind] += 1
        if kind == "unprocessed":
            return _process_part(request, relay, random)
        fault, _, after = kind.partition(" ")
        answer = relay(request) if after else None
        match fault:
            case "throttled":
                return random.choice(THROTTLED)
            case "failed":
                return FAILED
            case "late":
                time.sleep(self._late)
        if fault == "corrupt" and answer is not None:
            return replace(answer, corrupt=True)
        raise Dropped(answer if fault == "dropped" else None)


def _process_part(request: Request, relay: Relay, random: Random) -> Answer:
    """Processes a random part of a batch and hands back the rest."""
    by_key = request.operation == "BatchGetItem"
    name = "UnprocessedKeys" if by_key else "UnprocessedItems"
    done: dict[str, Any] = {}
    unprocessed: dict[str, Any] = {}
    for table, asked in request.body["RequestItems"].items():
        whole = asked["Keys"] if by_key else asked
        n = random.randrange(len(whole))
        for part, some in ((done, whole[:n]), (unprocessed, whole[n:])):
            if some:
                part[table] = {**asked, "Keys": some} if by_key else some
    if not done:
        return Answer(body={"Responses": {}, name: unprocessed})
    answer = relay(replace(request, body={**request.body, "RequestItems": done}))
    return replace(answer, body={**answer.body, name: unprocessed}) if answer.status == 200 else answer
