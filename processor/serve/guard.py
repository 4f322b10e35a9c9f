"""The doorkeeper of every application of this process: the token, the limits on requests, and the headers of safety.

Knows nothing of documents, so any ASGI application can be behind it.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from processor.serve.credentials import read_credentials
from processor.serve.problem import LookUpProblem
from processor.serve.problem_answer import problem_answer

LOCAL_NAMES: Final = {"localhost", "127.0.0.1", "::1"}
HEADERS: Final = {
    "Cache-Control": "private, no-cache",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """The rules of a guard. `token`: that each request shows, empty for none; `local`: whether it takes only requests that name
    this machine, so that no site in a browser reads it under a name of its own; `refuses`: a further rule of the application;
    `rate`: requests a second; `at_once`: requests in work."""

    token: str = ""
    local: bool = True
    refuses: Callable[[Scope], LookUpProblem | None] = lambda _: None
    rate: int = 200
    at_once: int = 16
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

        refused = self._refusal(scope, Headers(scope=scope))
        if refused is not None:
            await problem_answer(refused)(scope, receive, send_safely)
            return
        self._working += 1
        try:
            await self._app(scope, receive, send_safely)
        finally:
            self._working -= 1

    def _refusal(self, scope: Scope, headers: Headers) -> LookUpProblem | None:
        if self._rules.local and urlsplit(f"//{headers.get('host', '')}").hostname not in LOCAL_NAMES:
            return LookUpProblem(421, "the Host of the request is not this machine")
        if self._rules.token and not self._shows_token(headers.get("authorization", "")):
            return LookUpProblem(
                401,
                "the request needs the header `Authorization: Bearer TOKEN`, or the token as the password of a user",
            )
        if refused := self._rules.refuses(scope):
            return refused
        if not self._allowed():  # after the token, so that a stranger takes none of the requests of others
            return LookUpProblem(429, f"more than {self._rules.rate} requests a second: ask again in a second")
        if self._working >= self._rules.at_once:
            return LookUpProblem(503, f"{self._rules.at_once} requests are in work: ask again in a second")
        return None

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
