"""The doorkeeper of every application of this process: the token, the limits on requests and the headers of safety; and the
answer of HTTP to a problem.

Knows nothing of documents, so any ASGI application can be behind it. The application gets a request that is complete: a body that
still comes is no work, so slow clients keep nobody out. It gets the path as the client wrote it, with its escapes: after them, a
path would end at its last `\\n`, and a `/` of a key would look like one of the path.

Runs an ASGI application: on loopback, or elsewhere with a token or with certificates of its clients.

uvicorn has no time-out for a request that never becomes complete, and no limit by address. So the table of connections
(`listeners.connections`) has both, and the application says when work begins and ends. Lines about requests are
few, however many clients send nonsense.
"""

import hmac
import logging
import ssl
from base64 import b64decode
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic
from typing import Final, NamedTuple

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from processor.environment.listeners import (
    BACKLOG,
    LOCAL_NAMES,
    ConnectionLimits,
    ConnectionTable,
    Peer,
    is_loopback,
    is_named,
    listen,
)
from processor.errors import SettingError
from processor.tools.web.answers import LookUpProblem
from processor.values import canonical_json


class ShownCredentials(NamedTuple):
    """The token that a request shows, empty for none, and the name that its sender states."""

    token: str = ""
    name: str = ""


def read_credentials(header: str) -> ShownCredentials:
    """The credentials in the header `Authorization`; empty ones where it is unreadable."""
    scheme, _, given = header.partition(" ")
    match scheme.lower():
        case "bearer":
            return ShownCredentials(token=given.strip())
        case "basic":
            try:
                name, _, token = b64decode(given.strip(), validate=True).decode().partition(":")
            except ValueError:
                return ShownCredentials()
            return ShownCredentials(token=token, name=name)
    return ShownCredentials()


HEADERS_OF: Final = {
    401: {"WWW-Authenticate": 'Bearer, Basic realm="statestore", charset="UTF-8"'},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "1"},
}
"""The headers that go with a status."""


def problem_answer(problem: LookUpProblem) -> Response:
    """The problem as in RFC 9457."""
    title = HTTPStatus(problem.status).phrase
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": str(problem), **problem.more}
    return Response(
        orjson.dumps(body), problem.status, HEADERS_OF.get(problem.status), media_type="application/problem+json"
    )


def json_answer(value: object) -> Response:
    """JSON values, with each digit of their numbers."""
    return Response(canonical_json.dumps(value), media_type="application/json")


RefuseRoute = Callable[[Request, Exception], Awaitable[Response]]


def guarded(routes: Sequence[Route], rules: "GuardRules", refuse: RefuseRoute) -> "Guard":
    """The application of these routes behind the rules. `refuse`: answers a path that there is not, and another method."""
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False  # it leads to the Host of the request, and a key may end with a slash
    app.add_exception_handler(HTTPException, refuse)
    return Guard(app, rules)


def route_problem(error: Exception) -> LookUpProblem:
    """The problem of a path that there is not, or of a method that it does not take."""
    assert isinstance(error, HTTPException)
    return LookUpProblem(error.status_code, error.detail)


MOST_BODY_BYTES: Final = 64 * 1024
HEADERS: Final = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """The rules of a guard."""

    token: str = ""
    """Each request shows it; empty for none."""
    names: Collection[str] = LOCAL_NAMES
    """The Host of a request has one of them, so no site in a browser reads it under a name of its own; empty for every Host."""
    other_name: str = "the Host of the request is not this machine"
    """The problem of another Host."""
    check: Callable[[Scope], object] = lambda _: None
    """A further rule of the application. Raises LookUpProblem."""
    rate: int = 200
    """Requests a second."""
    at_once: int = 16
    """Requests in work."""
    clock: Callable[[], float] = monotonic


class Guard:
    """The application behind the rules."""

    def __init__(self, app: ASGIApp, rules: GuardRules) -> None:
        self._app, self._rules, self._working = app, rules, 0
        self._left, self._seen = float(rules.rate), rules.clock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope, Headers(scope=scope))
            body = await _body(receive)
            if body is None:
                return
            if self._working >= self._rules.at_once:
                raise LookUpProblem(503, f"{self._rules.at_once} requests are in work: ask again in a second")
        except LookUpProblem as problem:
            await problem_answer(problem)(scope, receive, send_safely)
            return
        written = scope.get("raw_path")
        self._working += 1
        try:
            path = scope["path"] if written is None else written.decode("ascii", "replace")
            await self._app({**scope, "path": path}, _received(body, receive), send_safely)
        finally:
            self._working -= 1

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Raises LookUpProblem for a request that the rules refuse."""
        if self._rules.names and not is_named(headers.get("host", ""), self._rules.names):
            raise LookUpProblem(421, self._rules.other_name)
        if self._rules.token and not self._shows_token(headers.get("authorization", "")):
            raise LookUpProblem(
                401,
                "the request needs the header `Authorization: Bearer TOKEN`, or the token as the password of a user",
            )
        self._rules.check(scope)
        if not self._allowed():  # after the token, so that a stranger takes none of the requests of others
            raise LookUpProblem(429, f"more than {self._rules.rate} requests a second: ask again in a second")

    def _allowed(self) -> bool:
        now = self._rules.clock()
        self._left = min(float(self._rules.rate), self._left + (now - self._seen) * self._rules.rate)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _shows_token(self, header: str) -> bool:
        return hmac.compare_digest(read_credentials(header).token.encode(), self._rules.token.encode())


async def _body(receive: Receive) -> bytes | None:
    """The whole body of a request; None where its client leaves before that. Raises LookUpProblem for one that is too large."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MOST_BODY_BYTES:
            raise LookUpProblem(413, f"the body has more than {MOST_BODY_BYTES:,} bytes")
        if not message.get("more_body", False):
            return body


def _received(body: bytes, receive: Receive) -> Receive:
    """Gives a body that is complete, and then what comes after it."""
    left = [body]

    async def received() -> Message:
        return {"type": "http.request", "body": left.pop()} if left else await receive()

    return received


LOGGERS: Final = ("uvicorn.error", "asyncio")
LINE_SECONDS: Final = 60.0
MOST_LINES: Final = 5
"""Of a kind in LINE_SECONDS."""
MOST_KINDS: Final = 50
MANY_ENDED: Final = 20
"""Connections that the table ends in LINE_SECONDS without a line: browsers open some before they need them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where a server listens, and the limits of its connections."""

    host: str
    port: int
    token: bool = False
    """Whether the guard asks for one."""
    certificate: str = ""
    key: str = ""
    """The files of its TLS."""
    client_ca: str = ""
    """The file of the authority of its clients, for mTLS."""
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    def __post_init__(self) -> None:
        if self.client_ca and not self.certificate:
            raise SettingError("--client-ca needs TLS: give --certificate and --key too")
        if not (self.is_local or self.token or self.client_ca):
            raise SettingError(
                f"--host {self.host} is reachable from other machines: give --token REF, or --certificate, --key and "
                "--client-ca for mTLS, or leave --host out"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

    @property
    def address(self) -> str:
        """The beginning of its URLs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def run(self, app: ASGIApp, ready: Callable[[str], None]) -> None:
        """Serves until SIGTERM or Ctrl-C. Calls `ready` with the address once clients reach it. Raises SettingError for files
        that are no certificates, and for an address that it cannot have."""
        connections, lines = ConnectionTable(self.limits), FewLines()

        async def tick() -> None:
            connections.end_overdue()
            lines.tell(connections)

        config = uvicorn.Config(
            _CountedApp(app, connections),
            ssl_certfile=self.certificate or None,
            ssl_keyfile=self.key or None,
            ssl_ca_certs=self.client_ca or None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if self.client_ca else ssl.CERT_NONE,
            http="h11",
            loop="asyncio",  # another loop takes clients without our sockets
            backlog=BACKLOG,
            lifespan="off",
            ws="none",
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
            timeout_notify=0,
            callback_notify=tick,
        )
        try:
            config.load()
        except OSError as error:  # ssl.SSLError is one
            raise SettingError(
                f"--certificate, --key or --client-ca cannot be used: {error.strerror or error}"
            ) from None
        with ExitStack() as opened:
            sockets = [opened.enter_context(one) for one in listen(("host", "port"), self.host, self.port, connections)]
            for name in LOGGERS:
                logging.getLogger(name).addFilter(lines)
                opened.callback(logging.getLogger(name).removeFilter, lines)
            ready(self.address)
            uvicorn.Server(config).run(list(sockets))


class _CountedApp:
    """An application that tells the table of connections when the work on a request begins, and when its answer does."""

    def __init__(self, app: ASGIApp, connections: ConnectionTable) -> None:
        self._app, self._connections = app, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer: Peer = scope.get("client") or ("", 0)

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                self._connections.begin(peer)
            return message

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._connections.done(peer)
            await send(message)

        try:
            await self._app(scope, received, answered)
        finally:
            self._connections.done(peer)


class FewLines(logging.Filter):
    """Lets MOST_LINES lines of each kind through in LINE_SECONDS, and then tells how many there were more."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock, self._since, self._lines = clock, clock(), Counter[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is one of the first of its kind: of those with the same first line before any values."""
        kind = str(record.msg).partition("\n")[0][:200]
        if kind not in self._lines and len(self._lines) >= MOST_KINDS:
            kind = "other lines"
        self._lines[kind] += 1
        return self._lines[kind] <= MOST_LINES

    def tell(self, connections: ConnectionTable) -> None:
        """Once in LINE_SECONDS: what there was more, and how many connections the table ended."""
        if self._clock() - self._since < LINE_SECONDS:
            return
        more = [f"{count - MOST_LINES:,} more of: {kind}" for kind, count in self._lines.items() if count > MOST_LINES]
        self._since, ended = self._clock(), connections.ended.copy()
        self._lines.clear()
        connections.ended.clear()
        if ended.total() > MANY_ENDED:
            address, count = ended.most_common(1)[0]
            more.append(f"{ended.total():,} connections ended without a whole request, {count:,} of them of {address}")
        if more:
            logging.getLogger(LOGGERS[0]).warning("in the last minute: %s", "; ".join(more))
