"""The server of the driver's page: `/` for a person, `/metrics` for Prometheus, `/status.json`, and `/health`, whose status is
200 while all is well or the job waits for a part outside of it, and 503 when a person must act.

Promises: it answers from the last report of the monitor, so no request reaches the job, the table or Kafka. It holds up neither
the job nor its end: at most MOST_CONNECTIONS at once, each for at most CONNECTION_SECONDS, however slow the client is. A new
client takes the place of the oldest, so unfinished requests keep no probe out. It answers only GET. On a loopback address it
answers only requests for this machine, so that no site in a browser can read it under a name of its own. Does not: encrypt, or
ask who reads.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple

from processor.listeners.connections import ConnectionLimits, ConnectionTable, listen
from processor.listeners.host import LOCAL_NAMES, is_loopback, is_named, plain_name
from processor.metrics.prometheus_text import CONTENT_TYPE, prometheus_text
from processor.metrics.status_page import CONTENT_POLICY, status_page

MOST_CONNECTIONS = 32
MOST_OF_ONE = 8
"""Connections of an address."""
CONNECTION_SECONDS = 10.0
POLL_SECONDS = 0.1
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": CONTENT_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TEXT = "text/plain; charset=utf-8"


class RunState(NamedTuple):
    """The state that the server shows. `report`: of the monitor, None before the first; `wrong`: what a person must repair;
    `degraded`: what the job waits for."""

    report: Mapping[str, Any] | None
    wrong: tuple[str, ...]
    degraded: tuple[str, ...] = ()

    @property
    def health(self) -> tuple[HTTPStatus, str]:
        """The answer to a probe. A job that waits is well: a probe that ends it would only make its work begin again."""
        lines = (*self.wrong, *(f"degraded: {line}" for line in self.degraded))
        return HTTPStatus.SERVICE_UNAVAILABLE if self.wrong else HTTPStatus.OK, "\n".join(lines) or "ok"


class Pages(NamedTuple):
    """The texts that the server makes of a state: HTML for a person, and the metrics."""

    page: Callable[[Mapping[str, Any] | None, Sequence[str], Sequence[str]], str]
    metrics: Callable[[Mapping[str, Any]], bytes]


JOB_PAGES = Pages(status_page, prometheus_text)


@contextmanager
def status_server(host: str, port: int, read: Callable[[], RunState], pages: Pages = JOB_PAGES) -> Iterator[int]:
    """Serves the page within the block; yields the port. Raises SettingError where host and port cannot be had."""
    limits = ConnectionLimits(most=MOST_CONNECTIONS, most_of_one=MOST_OF_ONE, seconds=CONNECTION_SECONDS)
    server = _Server(host, port, read, pages, ConnectionTable(limits))
    thread = Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="status page", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, host: str, port: int, read: Callable[[], RunState], pages: Pages, connections: ConnectionTable
    ) -> None:
        self.read, self.pages, self._connections = read, pages, connections
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, *others = listen(("status_host", "status_port"), host, port, connections)
        for other in others:
            other.close()
        self.server_address = self.socket.getsockname()
        address = str(self.server_address[0])
        self.names = {*LOCAL_NAMES, plain_name(address)} if is_loopback(address) else None

    def service_actions(self) -> None:
        """Ends the connections that last too long. The server calls this after each poll."""
        self._connections.end_overdue()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the job."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = CONNECTION_SECONDS

    def do_GET(self) -> None:
        if self.server.names is not None and not is_named(self.headers.get("Host", ""), self.server.names):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, TEXT, b"the Host of the request is not this machine\n")
            return
        state = self.server.read()
        match self.path.partition("?")[0]:
            case "/":
                page = self.server.pages.page(state.report, state.wrong, state.degraded)
                self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.encode())
            case "/health":
                status, text = state.health
                self._answer(status, TEXT, f"{text}\n".encode())
            case "/status.json":
                self._answer(HTTPStatus.OK, "application/json", json.dumps(state.report).encode())
            case "/metrics" if state.report is not None:
                self._answer(HTTPStatus.OK, CONTENT_TYPE, self.server.pages.metrics(state.report))
            case "/metrics":
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, b"the job has yet to report\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, TEXT, b"paths: / /metrics /status.json /health\n")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers a request that is none, or another one than GET, without repeating any of it."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code = HTTPStatus.METHOD_NOT_ALLOWED
        self._answer(HTTPStatus(code), TEXT, b"")

    def version_string(self) -> str:
        return "statestore"

    def log_message(self, format: str, *_: Any) -> None:
        """Logs nothing: the log belongs to the job."""

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
