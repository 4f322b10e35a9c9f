"""The proxy of the outages hands on all bytes, refuses as a dead server does, and holds what comes while it is silent."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

import pytest

from tests.outages.cut_connections import CutConnections


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back what it gets."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client, suppress(ConnectionResetError):
            while data := client.recv(1_000):
                client.sendall(data)

    def accept() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            Thread(target=serve, args=(client,), daemon=True).start()

    Thread(target=accept, daemon=True).start()
    yield server.getsockname()
    server.shutdown(socket.SHUT_RDWR)
    server.close()


@pytest.fixture
def proxy(echo: tuple[str, int]) -> Iterator[CutConnections]:
    made = CutConnections(echo)
    yield made
    made.close()


def client(proxy: CutConnections) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), 300)


def answered(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text)
    return connection.recv(1_000)


def test_an_open_proxy_hands_on_all_bytes_both_ways(proxy: CutConnections) -> None:
    with client(proxy) as connection:
        assert answered(connection, b"one") == b"one"
        assert answered(connection, b"two") == b"two"


def test_a_cut_ends_connections_and_refuses_new_ones_until_the_proxy_opens_at_the_same_port(
    proxy: CutConnections,
) -> None:
    with client(proxy) as connection:
        assert answered(connection, b"one") == b"one"
        proxy.refuse()
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        client(proxy)
    proxy.open()
    with client(proxy) as connection:
        assert answered(connection, b"two") == b"two"


def test_a_silent_proxy_answers_nothing_and_later_hands_on_what_it_held(proxy: CutConnections) -> None:
    with client(proxy) as connection:
        assert answered(connection, b"one") == b"one"
        proxy.silence()
        connection.sendall(b"two")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(300)
        proxy.open()
        assert connection.recv(1_000) == b"two"


def test_a_server_that_is_gone_ends_the_connection_of_the_client() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = server.getsockname()
    proxy = CutConnections(gone)
    try:
        with (
            suppress(ConnectionResetError),
            client(proxy) as connection,
        ):  # the end may come before the client is connected
            assert connection.recv(1) == b""
    finally:
        proxy.close()
