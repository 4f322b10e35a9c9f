"""Runs an ASGI application: on loopback, or elsewhere with a token or with certificates of its clients.

uvicorn has no time-out for a request that never becomes complete, and no limit by address. So the table of connections
(`listeners.connections`) has both, and the application says when work begins and ends. Lines about requests are
few, however many clients send nonsense.
"""

import logging
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from processor.environment.listeners import BACKLOG, ConnectionLimits, ConnectionTable, Peer, is_loopback, listen
from processor.errors import SettingError

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
