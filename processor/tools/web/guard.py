"""The doorkeeper of every application of this process: the token, the limits on requests and the headers of safety; and the
answer of HTTP to a problem.

Knows nothing of documents, so any ASGI application can be behind it. The application gets a request that is complete: a body that
still comes is no work, so slow clients keep nobody out. It gets the path as the client wrote it, with its escapes: after them, a
path would end at its last `\\n`, and a `/` of a key would look like one of the path.
"""

import hmac
from base64 import b64decode
from collections.abc import Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Final, NamedTuple

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from processor.environment.listeners import LOCAL_NAMES, is_named
from processor.tools.web.problem import LookUpProblem


class ShownCredentials(NamedTuple):
    """The token that a request shows, empty for none, and the name that its sender states."""

    token: str = ""
    name: str = ""


def read_credentials(header: str) -> ShownCredentials:
    """The credentials in the header `Authorization`; empty ones where nobody can read it."""
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
    """The problem as RFC 9457 has it."""
    title = HTTPStatus(problem.status).phrase
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": str(problem), **problem.more}
    return Response(
        orjson.dumps(body), problem.status, HEADERS_OF.get(problem.status), media_type="application/problem+json"
    )


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
    refuses: Callable[[Scope], LookUpProblem | None] = lambda _: None
    """A further rule of the application."""
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
        if refused := self._rules.refuses(scope):
            raise refused
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
