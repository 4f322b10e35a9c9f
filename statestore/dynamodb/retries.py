"""How long the store tries a request: which failures another attempt may outlast, and how long to wait before it.

Both ways to send raise the errors of botocore. boto3 decides by its own rules ("standard"), which these follow for DynamoDB.
"""

from dataclasses import dataclass
from random import Random
from time import monotonic

from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
)

THROTTLED = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
BROKEN = (HTTPClientError, ConnectionError, IncompleteReadError, ChecksumError)
"""The errors of a request without a usable answer."""
_PASSING = {"ReplicatedWriteConflictException", "RequestTimeout", "RequestTimeoutException", "PriorRequestNotComplete"}
_RETRY_AFTER = "x-amz-retry-after"
_LONGEST_WISH = 5.0
"""The most seconds that the server's own wish (`x-amz-retry-after`) adds to a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the store tries a request. attempts: of one request, with the first; `_s`: in seconds; connections: threads that
    can send at the same time (more than 16 per process gain nothing).

    A pause is random, between 0 and a limit. The limit begins with `backoff_s`, or with `throttled_s` after a throttle, doubles
    with each attempt, and is at most `backoff_cap_s`.

    slow_s: after an answer that comes too late, the lean client sends the request again, however often, until so many seconds
    have passed since the first attempt. throttled_for_s: the same after a throttle: a request that waits keeps its place, while
    a batch that is done again asks for all its requests again."""

    attempts: int = 6
    connect_s: float = 2.0
    read_s: float = 5.0
    backoff_s: float = 0.05
    throttled_s: float = 1.0
    backoff_cap_s: float = 5.0
    connections: int = 16
    slow_s: float = 0.0
    throttled_for_s: float = 0.0

    def tries_again(self, attempts: int, began: float, error: ClientError | BotoCoreError) -> bool:
        """Whether to send a request again, after so many attempts since `began` (`time.monotonic()`). `error`: the failure of the
        last attempt."""
        waited = monotonic() - began
        slow = isinstance(error, ReadTimeoutError) and waited < self.slow_s
        throttled = is_throttle(error) and waited < self.throttled_for_s
        return slow or throttled or (attempts < self.attempts and may_pass(error))

    def pause(self, attempts: int, random: Random, error: ClientError | BotoCoreError | None = None) -> float:
        """The seconds to wait after so many attempts. `error`: the failure of the last attempt."""
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
