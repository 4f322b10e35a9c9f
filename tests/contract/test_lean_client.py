"""The lean client behind the faulty proxy: what boto3 did for its caller, the lean client does too, and more."""

import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Literal

import pytest

from statestore.dynamodb import DynamoStore, Patience
from statestore.errors import Terminal, Transient
from statestore.keys import Key
from statestore.store import Done, Query, Write
from tests.faulty.proxy import Answer, Layer, Relay, Request, proxy

USERS = [Key("TABLE#user", str(n)) for n in range(16)]
WRITE = Write(key=USERS[0], set={"n": 1})
REGION = "eu-west-1"
Behind = Callable[..., AbstractContextManager[DynamoStore]]


@pytest.fixture
def behind(moto: str) -> Behind:
    """Makes a store behind layers, over a table with one slot."""
    DynamoStore(table="lean", endpoint_url=moto, region=REGION).create(1)

    @contextmanager
    def made(*layers: Layer, attempts: int = 1) -> Iterator[DynamoStore]:
        with proxy(moto, *layers) as endpoint:
            patience = Patience(attempts=attempts, read_s=60.0, backoff_s=0.001, throttled_s=0.001)
            store = DynamoStore(table="lean", endpoint_url=endpoint, region=REGION, patience=patience)
            try:
                yield store
            finally:
                store.close()

    return made


class Ports:
    """Notes the port of the client for each request of live work."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if request.operation in ("UpdateItem", "Query", "BatchGetItem"):
            self.seen.append(request.port)
        return relay(request)


# Connections


def test_requests_share_an_open_connection(behind: Behind) -> None:
    ports = Ports()
    with behind(ports) as store:
        for n in range(5):
            store.write(Write(key=USERS[0], set={"n": n}))
        store.get(USERS)
        store.query(Query(slot="GSI_1", value="a"))
    assert len(ports.seen) == 7
    assert len(set(ports.seen)) == 1


def close_each(request: Request, relay: Relay) -> Answer:
    """Closes the connection after each answer, as a server does with an idle connection."""
    return replace(relay(request), last=request.operation == "UpdateItem")


def test_a_request_on_a_connection_that_the_server_closed_goes_out_again_and_counts_again(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statestore.dynamodb.connections.IDLE_S", 3600.0)
    with behind(close_each) as store:
        for key in USERS:
            assert isinstance(store.write(Write(key=key, set={"n": 1})), Done)
        assert store.requests == Counter(UpdateItem=2 * len(USERS) - 1)


def test_after_a_while_the_client_notices_a_closed_connection_before_it_sends(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statestore.dynamodb.connections.IDLE_S", 0.0)
    with behind(close_each) as store:
        for n in range(5):
            store.write(Write(key=USERS[0], set={"n": n}))
            (idle,) = store._client._connections._idle  # type: ignore[union-attr]
            end = time.monotonic() + 20
            while idle.is_open():
                assert time.monotonic() < end
                time.sleep(0.001)
        assert store.requests == Counter(UpdateItem=5)


def test_many_idle_connections_that_the_server_closed_at_once_fail_no_request(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statestore.dynamodb.connections.IDLE_S", 3600.0)
    with behind(close_each) as store, ThreadPoolExecutor(len(USERS)) as pool:
        for n in range(3):
            writes = [Write(key=key, set={"n": n}) for key in USERS]
            assert [type(outcome) for outcome in pool.map(store.write, writes)] == [Done] * len(USERS)


def test_a_forked_process_opens_connections_of_its_own(behind: Behind) -> None:
    ports = Ports()
    with behind(ports) as store:
        store.write(WRITE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the threads of the proxy stay with the parent
            child = os.fork()
        if child == 0:
            code = 1
            try:
                store.write(Write(key=USERS[1], set={"n": 2}))
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        store.write(WRITE)
    parent, forked, again = ports.seen
    assert parent == again != forked


# Answers


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_error_without_a_code_is_tried_again(behind: Behind, status: int) -> None:
    failures = [Answer(status=status, body={}), Answer(status=429, body={})]

    def fail(request: Request, relay: Relay) -> Answer:
        return failures.pop() if request.operation == "UpdateItem" and failures else relay(request)

    with behind(fail, attempts=3) as store:
        assert isinstance(store.write(WRITE), Done)
        assert store.requests == Counter(UpdateItem=3)


def test_an_answer_that_stays_corrupt_is_transient(behind: Behind) -> None:
    def corrupt(request: Request, relay: Relay) -> Answer:
        return replace(relay(request), corrupt=request.operation == "UpdateItem")

    with (
        behind(corrupt, attempts=2) as store,
        pytest.raises(Transient, match=r"writing TABLE#user / 0: Checksum crc32 failed, expected .*: try again"),
    ):
        store.write(WRITE)


# Credentials and the clock


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
    program = f"{sys.executable} -c \"print(open('{printed}').read())\""
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
    wrong = SimpleNamespace(
        time=lambda: time.time() + 3600 * hours, gmtime=time.gmtime, strftime=time.strftime, sleep=time.sleep
    )
    monkeypatch.setattr("statestore.dynamodb.lean_client.time", wrong)
    with behind(refuse_old_signatures) as store:
        assert isinstance(store.write(WRITE), Done)
        assert isinstance(store.write(WRITE), Done)
        assert store.requests == Counter(UpdateItem=3)


def test_a_clock_that_goes_wrong_fails_no_request_of_many_threads(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = SimpleNamespace(time=time.time, gmtime=time.gmtime, strftime=time.strftime, sleep=time.sleep)
    monkeypatch.setattr("statestore.dynamodb.lean_client.time", wrong)
    all_sent = Barrier(8)

    def meet(request: Request, relay: Relay) -> Answer:
        answer = refuse_old_signatures(request, relay)
        if answer.status == 400:
            all_sent.wait(timeout=60)  # all of them are signed with the wrong time
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


# Proxies


@pytest.mark.parametrize("client", ["lean", "boto3"])
def test_requests_go_through_the_proxy_of_the_environment(
    moto: str, monkeypatch: pytest.MonkeyPatch, client: Literal["lean", "boto3"]
) -> None:
    ports, address = Ports(), "http://dynamodb.invalid:8000"
    with proxy(moto, ports) as endpoint:
        monkeypatch.setenv("HTTP_PROXY", endpoint)
        monkeypatch.setenv("http_proxy", endpoint)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        store = DynamoStore(table="proxied", endpoint_url=address, region=REGION, client=client)
        store.create(1)
        assert isinstance(store.write(WRITE), Done)
        store.close()
    assert len(ports.seen) == 1


@pytest.mark.parametrize("client", ["lean", "boto3"])
def test_a_host_in_no_proxy_is_asked_directly(
    moto: str, monkeypatch: pytest.MonkeyPatch, client: Literal["lean", "boto3"]
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://proxy.invalid:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost,0.0.0.0")
    store = DynamoStore(table="proxied", endpoint_url=moto, region=REGION, client=client)
    store.create(1)
    assert isinstance(store.write(WRITE), Done)
    store.close()
