"""Which failures another attempt may outlast, and the pause before it."""

from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError

from statestore.dynamodb import retries
from statestore.dynamodb.retries import Patience, may_pass

PATIENCE = Patience(backoff_s=0.1, throttled_s=1.0, backoff_cap_s=3.0)


def refused(code: str, status: int = 400, retry_after: str = "") -> ClientError:
    headers = {"x-amz-retry-after": retry_after} if retry_after else {}
    metadata: dict[str, Any] = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": metadata}, "Query")


THROTTLE = refused("ThrottlingException")


@pytest.mark.parametrize(
    ("error", "limits"),
    [
        (None, [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]),
        (refused("InternalServerError", 500), [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]),
        (THROTTLE, [1.0, 2.0, 3.0, 3.0]),
        (refused("429", 429), [1.0, 2.0, 3.0, 3.0]),
    ],
)
def test_pauses_are_spread_below_a_limit_that_doubles_up_to_the_cap(
    error: ClientError | None, limits: list[float]
) -> None:
    random = Random(1)
    for attempts, limit in enumerate(limits, start=1):
        pauses = [PATIENCE.pause(attempts, random, error) for _ in range(400)]
        assert 0 <= min(pauses) < 0.1 * limit
        assert 0.9 * limit < max(pauses) <= limit


@pytest.mark.parametrize(("asked", "seconds"), [("2500", 2.5), ("60000", 5.0), ("0", 0.0), ("-1", 0.0), ("soon", 0.0)])
def test_a_pause_that_the_server_asks_for_is_kept_but_bounded(asked: str, seconds: float) -> None:
    error = refused("ThrottlingException", retry_after=asked)
    assert seconds <= Patience(throttled_s=0.001).pause(1, Random(1), error) <= seconds + 0.001


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (THROTTLE, True),
        (refused("503", 503), True),
        (refused("ReplicatedWriteConflictException"), True),
        (ReadTimeoutError(endpoint_url="http://x"), True),
        (refused("ValidationException"), False),
        (refused("ConditionalCheckFailedException"), False),
        (NoCredentialsError(), False),
    ],
)
def test_only_failures_that_may_pass_are_tried_again(error: Any, passes: bool) -> None:
    assert may_pass(error) is passes


def test_a_late_answer_is_waited_for_until_the_budget_ends_and_other_failures_only_for_the_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, patience = ReadTimeoutError(endpoint_url="x"), Patience(attempts=2, slow_s=180.0)
    failed = refused("InternalServerError", 500)
    monkeypatch.setattr(retries, "monotonic", lambda: 1_179.0)
    assert patience.tries_again(30, 1_000.0, late)
    assert not patience.tries_again(2, 1_000.0, failed)
    assert patience.tries_again(1, 1_000.0, failed)
    monkeypatch.setattr(retries, "monotonic", lambda: 1_181.0)
    assert not patience.tries_again(30, 1_000.0, late)
    assert patience.tries_again(1, 1_000.0, late)  # attempts last as long as without a budget


def test_a_job_goes_on_with_a_throttled_request_for_as_long_as_its_patience_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patient = Patience(attempts=2, throttled_for_s=60.0)
    for passed, tries in ((0.0, True), (59.0, True), (61.0, False)):
        monkeypatch.setattr(retries, "monotonic", lambda now=passed: now)
        assert patient.tries_again(9, 0.0, THROTTLE) is tries
        assert not patient.tries_again(9, 0.0, refused("InternalServerError", 500))
