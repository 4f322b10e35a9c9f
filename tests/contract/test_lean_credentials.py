"""The lean client signs with credentials that expire, and with a clock that differs from the server's."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

from statestore.store import Done, Terminal
from tests.contract.behind import WRITE, Behind
from tests.faulty.proxy import Answer, Relay, Request


class Accepts:
    """Refuses requests that are not signed with `key`, as DynamoDB refuses expired credentials."""

    def __init__(self, key: str, code: str = "ExpiredTokenException") -> None:
        self.key, self._code = key, code

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if request.operation != "UpdateItem" or request.signer == self.key:
            return relay(request)
        return Answer(status=400, body={"__type": f"x#{self._code}", "message": "the security token is invalid"})


@pytest.fixture
def write_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes the credentials that a process prints, which is the one source of credentials."""
    printed, config = tmp_path / "credentials.json", tmp_path / "config"
    program = f"'{sys.executable}' -c \"print(open('{printed}').read())\""
    config.write_text(f"[default]\ncredential_process = {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)

    def write(key: str, **more: str) -> None:
        made = {"Version": 1, "AccessKeyId": key, "SecretAccessKey": f"secret of {key}", "SessionToken": "t", **more}
        printed.write_text(json.dumps(made))

    return write


@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
def test_credentials_that_expired_early_are_found_again_and_fail_no_request(
    behind: Behind, write_credentials: Callable[..., None], code: str
) -> None:
    write_credentials("first")
    accepts = Accepts("first", code)
    with behind(accepts) as store, ThreadPoolExecutor(4) as pool:
        assert isinstance(store.write(WRITE), Done)
        write_credentials("second")
        accepts.key = "second"
        assert {type(outcome) for outcome in pool.map(store.write, [WRITE] * 8)} == {Done}


def test_credentials_near_their_end_are_renewed_before_a_request(
    behind: Behind, write_credentials: Callable[..., None]
) -> None:
    soon = datetime.fromtimestamp(time.time() + 120, UTC).isoformat()
    write_credentials("first", Expiration=soon)
    accepts = Accepts("first")
    with behind(accepts) as store:
        assert isinstance(store.write(WRITE), Done)
        write_credentials("second", Expiration=soon)
        accepts.key = "second"
        assert isinstance(store.write(WRITE), Done)
        assert store.requests == Counter(UpdateItem=2)


def test_credentials_that_stay_expired_are_terminal(behind: Behind, write_credentials: Callable[..., None]) -> None:
    write_credentials("first")
    with (
        behind(Accepts("second"), attempts=6) as store,
        pytest.raises(
            Terminal, match="ExpiredTokenException: the security token is invalid: renew the AWS credentials"
        ),
    ):
        store.write(WRITE)
    assert store.requests == Counter(UpdateItem=1)


def refuse_old_signatures(request: Request, relay: Relay) -> Answer:
    """Refuses signatures that differ by 5 minutes from the server's clock, as AWS does."""
    signed = datetime.strptime(request.moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    if request.operation != "UpdateItem" or abs(signed - time.time()) < 300:
        return relay(request)
    return Answer(status=400, body={"__type": "x#InvalidSignatureException", "message": "Signature expired"})


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wrong_clock_costs_one_request(behind: Behind, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    wrong = SimpleNamespace(**{**vars(time), "time": lambda: time.time() + 3600 * hours})
    monkeypatch.setattr("statestore.dynamodb.client.time", wrong)
    with behind(refuse_old_signatures) as store:
        assert isinstance(store.write(WRITE), Done)
        assert isinstance(store.write(WRITE), Done)
        assert store.requests == Counter(UpdateItem=3)


def test_a_clock_that_goes_wrong_fails_no_request_of_many_threads(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = SimpleNamespace(**vars(time))
    monkeypatch.setattr("statestore.dynamodb.client.time", wrong)
    all_sent = Barrier(8)

    def meet(request: Request, relay: Relay) -> Answer:
        answer = refuse_old_signatures(request, relay)
        if answer.status == 400:
            all_sent.wait(timeout=300)  # all of them are signed with the wrong time
        return answer

    with behind(meet) as store, ThreadPoolExecutor(8) as pool:
        assert isinstance(store.write(WRITE), Done)
        wrong.time = lambda: time.time() - 3600
        assert {type(outcome) for outcome in pool.map(store.write, [WRITE] * 8)} == {Done}
        assert store.requests == Counter(UpdateItem=17)


def test_a_wrong_signature_is_terminal(behind: Behind) -> None:
    with (
        behind(Accepts("nobody", "InvalidSignatureException"), attempts=6) as store,
        pytest.raises(Terminal, match="InvalidSignatureException"),
    ):
        store.write(WRITE)
