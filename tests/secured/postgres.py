"""TLS before a Postgres server that has none, as a pooler does it: libpq asks for TLS, and the server gets plain bytes."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SSL_REQUEST_BYTES = 8


@contextmanager
def tls_before(host: str, port: int, certificate: Path, key: Path) -> Iterator[int]:
    """The port of a server with this certificate that hands all bytes on to the Postgres at `host` and `port`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening, context, (host, port)), daemon=True).start()
        yield listening.getsockname()[1]


def _accept(listening: socket.socket, context: ssl.SSLContext, upstream: tuple[str, int]) -> None:
    with suppress(OSError):  # the block has ended
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_serve, args=(client, context, upstream), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, upstream: tuple[str, int]) -> None:
    with suppress(OSError), client:
        client.recv(SSL_REQUEST_BYTES, socket.MSG_WAITALL)
        client.sendall(b"S")
        with context.wrap_socket(client, server_side=True) as inner, socket.create_connection(upstream) as server:
            back = threading.Thread(target=_pump, args=(server, inner), daemon=True)
            back.start()
            _pump(inner, server)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
