"""Where a server may listen, and that no client keeps the others out. The tests open real sockets."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from select import select
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest
import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from processor.environment.listeners import ConnectionLimits, ConnectionTable
from processor.environment.programs.program import free_port
from processor.errors import SettingError
from processor.tools.web import server as module
from processor.tools.web.server import FewLines, Guard, GuardRules, Listener


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_nothing(host: str) -> None:
    assert Listener(host=host, port=1).is_local


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org"])
def test_another_address_needs_a_token_or_certificates_of_clients(host: str) -> None:
    with pytest.raises(SettingError, match="give --token REF, or --certificate, --key and --client-ca for mTLS"):
        Listener(host=host, port=1)
    with pytest.raises(SettingError, match="--client-ca for mTLS"):
        Listener(host=host, port=1, certificate="c.pem", key="k.pem")
    assert not Listener(host=host, port=1, token=True).is_local
    Listener(host=host, port=1, certificate="c.pem", key="k.pem", client_ca="ca.pem")


def test_mtls_needs_tls() -> None:
    with pytest.raises(SettingError, match="give --certificate and --key too"):
        Listener(host="127.0.0.1", port=1, client_ca="ca.pem")


def test_the_address_of_ipv6_has_brackets() -> None:
    assert Listener(host="::1", port=8280).address == "http://[::1]:8280"
    assert Listener(host="127.0.0.1", port=1, certificate="c.pem", key="k.pem").address == "https://127.0.0.1:1"


def test_a_busy_port_is_an_error_before_the_address_is_shown() -> None:
    shown: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        listener = Listener(host="127.0.0.1", port=other.getsockname()[1])
        with pytest.raises(SettingError, match="another program listens there; end that one, or give --port"):
            listener.run(echo, shown.append)
    assert shown == []


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the path and the length of the body."""
    await PlainTextResponse(f"{scope['path']} {len(await Request(scope, receive).body())}")(scope, receive, send)


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, app: ASGIApp = echo, **limits: Any) -> Iterator[int]:
    """The port of a listener in a thread of its own."""
    servers: list[uvicorn.Server] = []

    class Kept(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            servers.append(self)

    monkeypatch.setattr(uvicorn, "Server", Kept)
    rules = GuardRules(rate=100_000, at_once=4)
    limited = ConnectionLimits(**limits)
    listener, ready = Listener(host="127.0.0.1", port=free_port(), limits=limited), Event()
    thread = Thread(target=listener.run, args=(Guard(app, rules), lambda _: ready.set()))
    thread.start()
    try:
        assert ready.wait(60)
        yield listener.port
    finally:
        while not servers:
            thread.join(0.01)
        servers[0].should_exit = True
        thread.join(60)


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=300, source_address=(address, 0))


def answer(client: socket.socket, request: bytes) -> bytes:
    """The status line of the answer to a request."""
    client.sendall(request)
    with client.makefile("rb") as lines:
        return lines.readline()


def ends(client: socket.socket) -> bool:
    """Waits for the end of a connection. Whether it came without an answer."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: local"
SLOW_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nsome"
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "begins",
    [HALF, SLOW_BODY, b"", b"G", SLOW_BODY.replace(b"some", b"").replace(b"Content", b"Expect: 100-continue\r\nContent")],
)  # fmt: skip
def test_unfinished_requests_keep_no_other_client_out(monkeypatch: pytest.MonkeyPatch, begins: bytes) -> None:
    """As many as the listener takes, and more than it works on: none of them ends by time here."""
    with served(monkeypatch, most=40, seconds=3_600.0) as port, ExitStack() as opened:
        for _ in range(100):
            client = opened.enter_context(connect(port))
            with suppress(OSError):
                client.sendall(begins)
        with connect(port) as other:
            assert answer(other, WHOLE) == OK


def test_slow_bodies_are_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, seconds=3_600.0) as port, ExitStack() as opened:
        slow = [opened.enter_context(connect(port)) for _ in range(16)]
        for client in slow:
            client.sendall(SLOW_BODY)
        with connect(port) as other:
            assert answer(other, WHOLE) == OK
        assert answer(slow[0], b"x" * 96) == OK  # it still waits for its body


@pytest.mark.parametrize("begins", [HALF, SLOW_BODY, b""])
def test_an_unfinished_request_ends_after_its_time(monkeypatch: pytest.MonkeyPatch, begins: bytes) -> None:
    with served(monkeypatch, seconds=0.2) as port, connect(port) as client:
        client.sendall(begins)
        assert ends(client)


def test_drops_of_a_request_give_it_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, seconds=0.2) as port, connect(port) as client:
        client.sendall(WHOLE[:-4])
        with suppress(BrokenPipeError, ConnectionResetError):
            while not select([client], [], [], 0.05)[0]:
                client.sendall(b"\r\nX: y")
            assert ends(client)


def test_work_and_a_kept_connection_outlive_the_time_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, works, goes_on = [0.0], Event(), Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/work":
            works.set()
            await run_in_threadpool(goes_on.wait, 60)
        await echo(scope, receive, send)

    with served(monkeypatch, app, clock=lambda: clock[0]) as port, connect(port) as client, connect(port) as silent:
        client.sendall(WHOLE.replace(b"/ ", b"/work "))
        assert works.wait(60)
        clock[0] = 100.0
        assert ends(silent)
        goes_on.set()
        assert b" 200 OK" in client.recv(15)


def test_a_client_that_reads_no_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(b"x" * 20_000_000)(scope, receive, send)

    with served(monkeypatch, app, most=4, most_of_one=4, seconds=3_600.0) as port, ExitStack() as opened:
        for _ in range(8):  # pipelined: the second answer waits for the first
            opened.enter_context(connect(port)).sendall(WHOLE * 2)
        with connect(port) as other:
            assert answer(other, WHOLE) == OK


def test_an_address_keeps_no_other_address_out(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: Any = {"most": 40, "most_of_one": 5, "seconds": 3_600.0, "shared": frozenset()}
    with served(monkeypatch, **limits) as port, connect(port, "127.0.0.3") as early, ExitStack() as opened:
        early.sendall(WHOLE[:20])
        many = [opened.enter_context(connect(port, "127.0.0.2")) for _ in range(60)]
        assert all(map(ends, many[:55]))
        assert answer(early, WHOLE[20:]) == OK


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /a%0A HTTP/1.1\r\nHost: localhost", b"200"),
        (b"GET http://localhost/ HTTP/1.1\r\nHost: localhost", b"200"),  # the application has no such path
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example", b"421"),
        (b"GET / HTTP/1.1", b"400"),
        (b"GET / HTTP/1.0", b"421"),
        (b"GET / HTTP/1.1\r\nHost: [", b"421"),
        (b"GET / HTTP/1.1\r\nHost: localhost:x", b"421"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", b"400"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost", b"421"),
        (b"GET / HTTP/1.1\r\nHost: LOCALHOST.:1\r\nX-Forwarded-Host: evil.example", b"200"),
    ],
)
def test_the_host_of_a_request_decides(monkeypatch: pytest.MonkeyPatch, request_line: bytes, status: bytes) -> None:
    with served(monkeypatch) as port, connect(port) as client:
        assert answer(client, request_line + b"\r\n\r\n").split()[1] == status


def test_a_body_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch) as port, connect(port) as client:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n"
        assert answer(client, head + b"x" * 66_000).startswith(b"HTTP/1.1 413")


def test_nonsense_of_many_clients_makes_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]
    with served(monkeypatch, most=10) as port:
        logging.getLogger("uvicorn.error").addHandler(handler)
        try:
            for _ in range(50):
                with connect(port) as client:
                    assert answer(client, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
            monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
            with ExitStack() as opened:
                for _ in range(100):
                    opened.enter_context(connect(port))
                while not any("in the last minute" in line for line in written):
                    sleep(0.01)
        finally:
            logging.getLogger("uvicorn.error").removeHandler(handler)
    assert written[:5] == ["Invalid HTTP request received."] * 5
    assert "45 more of: Invalid HTTP request received." in written[5]


def test_a_summary_counts_what_the_table_ended() -> None:
    clock, table = [0.0], ConnectionTable(ConnectionLimits())
    lines = FewLines(lambda: clock[0])
    table.ended.update({"10.0.0.1": 1_500, "10.0.0.2": 3})
    written: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(handler)
    try:
        for clock[0] in (1.0, 60.0, 61.0, 120.0):
            lines.tell(table)
    finally:
        logging.getLogger("uvicorn.error").removeHandler(handler)
    assert written == [
        "in the last minute: 1,503 connections ended without a whole request, 1,500 of them of 10.0.0.1",
    ]
