"""The recorder knows the product's calls, and tells where they and the policies differ."""

import json
from pathlib import Path

import pytest

from tests.recorder.calls import FOLDER, actions, allowed, differences, record, recorded
from tests.recorder.tap import Requests

SIGNED = "AWS4-HMAC-SHA256 Credential=KEY/20261122/eu-west-1/{}/aws4_request, SignedHeaders=host, Signature=00"


def head(operation: str, agent: str = "statestore", service: str = "dynamodb") -> dict[str, str]:
    target = f"{service}_20120810.{operation}"
    return {"user-agent": agent, "x-amz-target": target, "authorization": SIGNED.format(service)}


@pytest.mark.parametrize(
    ("operation", "body", "needs"),
    [
        ("UpdateItem", {"TableName": "t"}, {"dynamodb:UpdateItem"}),
        ("Query", {"TableName": "t"}, {"dynamodb:Query"}),
        ("Query", {"TableName": "t", "IndexName": "GSI_1"}, {"dynamodb:Query index"}),
    ],
)
def test_a_request_needs_the_actions_of_iam(operation: str, body: object, needs: set[str]) -> None:
    assert actions(head(operation), json.dumps(body).encode()) == needs


def test_a_call_of_another_service_has_its_name() -> None:
    assert actions(head("GetSecretValue", service="secretsmanager"), b"{}") == {"secretsmanager:GetSecretValue"}


def test_only_calls_of_the_product_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    record(head("Query"), b"{}")
    record(head("UpdateTable", agent="Boto3/1.40 md/Botocore#1.40 statestore"), b"{}")
    record(head("Scan", agent="Boto3/1.40 md/Botocore#1.40"), b"{}")
    assert recorded(tmp_path) == {"dynamodb:Query", "dynamodb:UpdateTable"}


def test_a_call_that_no_policy_allows_is_a_difference() -> None:
    called = {*allowed(), "dynamodb:PutItem"}
    assert differences(called, allowed(), unused=True) == ["the code asks for dynamodb:PutItem, which no policy allows"]


def test_an_action_that_nothing_asks_for_is_a_difference_of_a_whole_run_only() -> None:
    called = allowed() - {"dynamodb:DeleteItem"}
    assert differences(called, allowed(), unused=False) == []
    assert differences(called, allowed(), unused=True) == [
        "a policy allows dynamodb:DeleteItem, which no test asks for"
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_tap_finds_requests_however_their_bytes_arrive(size: int) -> None:
    one = b"POST / HTTP/1.1\r\nX-Amz-Target: a.B\r\nContent-Length: 6\r\n\r\n{\r\n\r\n}"
    other = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    text, requests = one + other + one, Requests()
    found = [request for at in range(0, len(text), size) for request in requests.feed(text[at : at + size])]
    target = {"x-amz-target": "a.B", "content-length": "6"}
    assert found == [(target, b"{\r\n\r\n}"), ({"host": "h"}, b""), (target, b"{\r\n\r\n}")]
