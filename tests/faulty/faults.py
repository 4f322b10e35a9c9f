"""A layer that fails requests as DynamoDB and networks do: before a request is applied, after it, or for a part of it.

throttled, failed, dropped, late                 nothing was applied (late: the client has given up waiting by then)
failed/dropped/late after                        applied, but the client never learns it; dropped: in the middle of the answer
unprocessed                                      a part of a batch is left over, now and then all of it
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
"""By operation, how often each kind of fault is met, compared with the others."""

BEFORE = {"throttled": 1, "failed": 4, "dropped": 4}
AFTER = {"failed after": 4, "dropped after": 4}
LATE = {"late": 1, "late after": 1}
LEFT = {"unprocessed": 8}

UNNOTICED: Weights = {
    **dict.fromkeys(WRITES, BEFORE),
    "Query": BEFORE | AFTER,
    "BatchGetItem": BEFORE | AFTER | LEFT,
    "BatchWriteItem": LEFT,
}
"""Faults that a client with enough patience must not let its caller notice."""

ALL: Weights = {
    **dict.fromkeys(WRITES, BEFORE | AFTER | LATE),
    "Query": BEFORE | AFTER | LATE,
    "BatchGetItem": BEFORE | AFTER | LATE | LEFT,
}
"""Lost answers of writes too: the second try meets what the first one wrote."""

THROTTLED = [
    Answer(status=400, body={"__type": f"x#{code}", "message": "too much at once"})
    for code in ("ProvisionedThroughputExceededException", "ThrottlingException")
]
FAILED = Answer(status=500, body={"__type": "x#InternalServerError", "message": "something broke"})


class Faults:
    """Faults of some kinds. rate: the share of requests that meet one, the same request three times in a row at most;
    late: in seconds, more than the client waits. `given` counts them."""

    def __init__(self, seed: int, kinds: Weights, *, rate: float, late: float = 0.0) -> None:
        self.given: Counter[str] = Counter()
        self._dice, self._kinds, self._rate, self._late, self._lock = Dice(seed), kinds, rate, late, Lock()

    def __call__(self, request: Request, relay: Relay) -> Answer:
        before, random = self._dice.throw(request)
        weights = self._kinds.get(request.operation)
        if weights is None or before % 4 == 3 or random.random() > self._rate:
            return relay(request)
        (kind,) = random.choices(list(weights), list(weights.values()))
        with self._lock:
            self.given[kind] += 1
        if kind == "unprocessed":
            return _in_part(request, relay, random)
        fault, _, after = kind.partition(" ")
        answer = relay(request) if after else None
        match fault:
            case "throttled":
                return random.choice(THROTTLED)
            case "failed":
                return FAILED
            case "late":
                time.sleep(self._late)
        raise Dropped(answer if fault == "dropped" else None)


def _in_part(request: Request, relay: Relay, random: Random) -> Answer:
    """A batch of which some is done, and the rest is handed back."""
    by_key = request.operation == "BatchGetItem"
    name = "UnprocessedKeys" if by_key else "UnprocessedItems"
    done: dict[str, Any] = {}
    left: dict[str, Any] = {}
    for table, asked in request.body["RequestItems"].items():
        whole = asked["Keys"] if by_key else asked
        n = random.randrange(len(whole))
        for part, some in ((done, whole[:n]), (left, whole[n:])):
            if some:
                part[table] = {**asked, "Keys": some} if by_key else some
    if not done:
        return Answer(body={"Responses": {}, name: left})
    answer = relay(replace(request, body={**request.body, "RequestItems": done}))
    return replace(answer, body={**answer.body, name: left}) if answer.status == 200 else answer
