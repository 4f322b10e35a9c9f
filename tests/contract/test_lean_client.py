"""The lean client behind the faulty proxy: what boto3 did for its caller, the lean client does too, and more."""

import os
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal

import pytest

from statestore.dynamodb.store import DynamoStore
from statestore.store import Done, Query, Transient, Write
from tests.contract.behind import REGION, USERS, WRITE, Behind
from tests.faulty.proxy import Answer, Relay, Request, proxy


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
            end = time.monotonic() + 300
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
