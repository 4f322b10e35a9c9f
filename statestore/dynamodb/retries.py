"""How long the store tries a request: which failures another attempt may outlast, how long to wait before it, and the errors of
a request that failed. Counts the requests of a store, and what they cost.

Both ways to send raise the errors of botocore. boto3 decides by its own rules ("standard"), which these follow for DynamoDB.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from threading import Lock
from time import monotonic
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
    WaiterError,
)

from statestore.dynamodb import requests
from statestore.store import (
    HALF_UNITS,
    RETRIES,
    THROTTLES,
    Item,
    NoTable,
    Refused,
    StoreError,
    Terminal,
    Throttled,
    TooLarge,
    Transient,
)

THROTTLED = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
BROKEN = (HTTPClientError, ConnectionError, IncompleteReadError, ChecksumError)
"""The errors of a request without a usable answer."""
_PASSING = {
    *("TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException"),
    *("RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"),
}
_RETRY_AFTER = "x-amz-retry-after"
_LONGEST_WISH = 5.0
"""The most seconds that the server's own wish (`x-amz-retry-after`) adds to a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The retry budget of a request; `_s`: in seconds. A pause is random, below a limit that doubles with each attempt."""

    attempts: int = 6
    """Of one request, with the first."""
    connect_s: float = 2.0
    read_s: float = 5.0
    backoff_s: float = 0.05
    """The first limit of a pause."""
    throttled_s: float = 1.0
    """The first limit of a pause after a throttle."""
    backoff_cap_s: float = 5.0
    """The highest limit of a pause."""
    connections: int = 16
    """Threads that can send at the same time (more than 16 per process gain nothing)."""
    slow_s: float = 0.0
    """After an answer that comes too late, the lean client sends the request again, however often, until these seconds have
    passed since the first attempt."""
    throttled_for_s: float = 0.0
    """The same after a throttle: a request that waits keeps its place, while a batch that is done again asks for all its requests
    again."""

    def tries_again(self, attempts: int, began: float, error: ClientError | BotoCoreError) -> bool:
        """Whether to send a request again after these attempts, which began at `began` (`time.monotonic()`). `error`: the failure
        of the last one."""
        waited = monotonic() - began
        slow = isinstance(error, ReadTimeoutError) and waited < self.slow_s
        throttled = is_throttle(error) and waited < self.throttled_for_s
        return slow or throttled or (attempts < self.attempts and may_pass(error))

    def pause(self, attempts: int, random: Random, error: ClientError | BotoCoreError | None = None) -> float:
        """The seconds to wait after this number of attempts. `error`: the failure of the last attempt."""
        first = self.throttled_s if error is not None and is_throttle(error) else self.backoff_s
        pause = random.uniform(0, min(self.backoff_cap_s, first * 2 ** (attempts - 1)))
        return max(pause, min(_asked_pause(error), pause + _LONGEST_WISH))


def is_throttle(error: ClientError | BotoCoreError) -> bool:
    """Whether DynamoDB refused the request because there are too many."""
    return isinstance(error, ClientError) and (error_code(error) in THROTTLED or _status(error) == 429)


def may_pass(error: ClientError | BotoCoreError) -> bool:
    """Whether another attempt may succeed."""
    if isinstance(error, ClientError):
        return is_throttle(error) or _status(error) >= 500 or error_code(error) in _PASSING
    return isinstance(error, BROKEN)


def error_code(error: ClientError) -> str:
    """DynamoDB's name of the error."""
    return str(error.response["Error"]["Code"])


def _status(error: ClientError) -> int:
    return int(error.response["ResponseMetadata"].get("HTTPStatusCode", 0))


def _asked_pause(error: ClientError | BotoCoreError | None) -> float:
    """The seconds that the server asks for, in a header in milliseconds."""
    if not isinstance(error, ClientError):
        return 0.0
    asked = error.response["ResponseMetadata"].get("HTTPHeaders", {}).get(_RETRY_AFTER, "")
    return int(asked) / 1000 if asked.isdecimal() else 0.0


_counting = Lock()
"""Held while a thread counts. A fork waits for it: no thread of the child could release it."""
os.register_at_fork(before=_counting.acquire, after_in_parent=_counting.release, after_in_child=_counting.release)


class RequestCounts:
    """The counts of a store. `requests`: all attempts, by the name of the operation."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self._begun: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()

    @property
    def spent(self) -> Counter[str]:
        """The retries, throttles and half units of capacity so far, by the name of the operation (`retries Query`)."""
        with _counting:
            retries = self.requests - self._begun
            return self._spent + Counter({RETRIES + name: n for name, n in retries.items()})

    def begin(self, operation: str) -> None:
        """Counts a request before its first attempt."""
        with _counting:
            self._begun[operation] += 1

    def attempt(self, operation: str) -> None:
        """Counts an attempt."""
        with _counting:
            self.requests[operation] += 1

    def throttle(self, operation: str) -> None:
        """Counts a throttle: DynamoDB refused work because there was too much."""
        with _counting:
            self._spent[THROTTLES + operation] += 1

    def consume(self, operation: str, answer: Mapping[str, Any]) -> None:
        """Counts the units that an answer names. A refused write consumes units, too, but its answer names none."""
        used = answer.get("ConsumedCapacity") or []
        units = sum(one["CapacityUnits"] for one in (used if isinstance(used, list) else [used]))
        with _counting:
            self._spent[HALF_UNITS + operation] += round(2 * units)


_CANCELED, _CONDITION = "TransactionCanceledException", "ConditionalCheckFailed"
_CONFLICTS = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
"""Reasons of a cancelled transaction that pass, as the API reference of TransactWriteItems lists them (read, 2026-11-27)."""
_REFUSED = "ConditionalCheckFailedException"
_TOO_LARGE = "Item size"
_NO_TABLE = "ResourceNotFoundException"
_CURES = {
    _NO_TABLE: "create it, or set the table's name, region and endpoint",
    "AccessDeniedException": "allow this request on the table and its indexes in the role's policy",
    "UnrecognizedClientException": "give valid AWS credentials",
    "ExpiredTokenException": "renew the AWS credentials",
    "ValidationException": "the request does not fit the table: compare the table with its definition",
}


def failure(where: str, error: ClientError | BotoCoreError) -> StoreError:
    """The error that a caller of the store gets. `where`: the table, the request and its key."""
    match error:
        case ClientError() if is_throttle(error):
            return Throttled(f"{where}: throttled ({_message(error)}): wait, or write less at once")
        case ClientError() if error.response["ResponseMetadata"].get("HTTPStatusCode", 0) >= 500:
            return Transient(f"{where}: DynamoDB failed ({error_code(error)}: {_message(error)}): try again")
        case ClientError():
            cure = _CURES.get(error_code(error), "trying again does not help: see the cause")
            kind = NoTable if error_code(error) == _NO_TABLE else Terminal
            return kind(f"{where}: {error_code(error)}: {_message(error)}: {cure}")
        case NoCredentialsError():
            return Terminal(f"{where}: {error}: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role")
        case NoRegionError():
            return Terminal(f"{where}: {error}: set AWS_REGION")
        case WaiterError() if "Error" not in error.last_response:
            return Transient(f"{where}: {error}: it takes longer than 5 minutes; try again")
        case CredentialRetrievalError():
            return Transient(f"{where}: {error}: try again; is the endpoint right and reachable?")
    if isinstance(error, BROKEN):
        return Transient(f"{where}: {error}: try again; is the endpoint right and reachable?")
    return Terminal(f"{where}: {error}")


def is_refusal(error: ClientError) -> bool:
    """Whether the condition of a write or a delete did not hold."""
    return error_code(error) == _REFUSED


def unwritten(error: ClientError) -> Refused | TooLarge:
    """The outcome of a write that DynamoDB did not do for this reason. Raises any other error."""
    if is_refusal(error):
        return Refused(stored_item(error.response.get("Item")))
    if error_code(error) == "ValidationException" and _TOO_LARGE in _message(error):
        return TooLarge()
    raise error


def is_conflict(error: ClientError) -> bool:
    """Whether DynamoDB did not do a transaction because another request has one of its items, and its condition did not fail."""
    codes = _reason_codes(error)
    return error_code(error) == _CANCELED and _CONDITION not in codes and bool(codes & _CONFLICTS)


def untransacted(error: ClientError) -> Refused | TooLarge:
    """The outcome of a transaction that DynamoDB did not do for this reason. Raises any other error."""
    if error_code(error) != _CANCELED:
        return unwritten(error)
    reasons = error.response.get("CancellationReasons", [])
    if reasons and reasons[0].get("Code") == _CONDITION:
        return Refused(stored_item(reasons[0].get("Item")))
    if any(one.get("Code") == "ValidationError" and _TOO_LARGE in str(one.get("Message")) for one in reasons):
        return TooLarge()
    raise error


def _reason_codes(error: ClientError) -> set[str]:
    return {str(one.get("Code")) for one in error.response.get("CancellationReasons", [])}


def stored_item(wire: Mapping[str, Any] | None) -> Item | None:
    """The item in the answer to a write, None without an item. Raises Terminal, as `requests.item`."""
    return requests.item(wire) if wire else None


def _message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))
