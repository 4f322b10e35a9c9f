"""A tap before a server: passes all bytes on as they are, in both directions, and records the requests among them."""

import socket
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from urllib.parse import urlsplit

from tests.recorder.calls import record

_END = b"\r\n\r\n"


@contextmanager
def tap(upstream: str) -> Iterator[str]:
    """The endpoint of a tap before `upstream`, an address with http."""
    with _Server(upstream) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Requests:
    """Finds the requests in the bytes of one connection."""

    def __init__(self) -> None:
        self._read = b""

    def feed(self, more: bytes) -> Iterator[tuple[dict[str, str], bytes]]:
        """The requests that are complete now: their headers, names in lower case, and their bodies."""
        self._read += more
        while _END in self._read:
            head, _, rest = self._read.partition(_END)
            lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
            headers = {name.lower(): text.strip() for name, _, text in lines}
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            self._read = rest[length:]
            yield headers, rest[:length]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        address = urlsplit(upstream)
        self.upstream = (address.hostname, address.port)


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        with socket.create_connection(self.server.upstream) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = Thread(target=_pass_on, args=(server, self.request), daemon=True)
            back.start()
            requests = Requests()
            for data in _chunks(self.request):
                for headers, body in requests.feed(data):
                    record(headers, body)
                server.sendall(data)
            _finish(server)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        for data in _chunks(source):
            target.sendall(data)
    _finish(target)


def _chunks(source: socket.socket) -> Iterator[bytes]:
    while data := source.recv(65536):
        yield data


def _finish(target: socket.socket) -> None:
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
