"""Connections to DynamoDB's endpoint, which stay open between requests: direct, or through a proxy.

Promises: each connection serves one thread at a time. A process that was forked opens connections of its own. Errors are those
that botocore raises. A body that ends too early, or does not match the checksum of DynamoDB, is an error and never a short
answer. A proxy carries requests with TLS in a tunnel, and reads the others. Does not: try again, or speak TLS with the proxy.
"""

import os
import select
import ssl
import time
from base64 import b64encode
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SO_KEEPALIVE, SOL_SOCKET
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit
from zlib import crc32

from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)

from statestore.dynamodb.retries import Patience


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where requests go. url: `https://host[:port][path]`; proxy: the URL of the proxy, or none; certificates: a file or a
    directory with the certificates of the authorities to trust."""

    url: str
    proxy: str | None = None
    certificates: str | None = None

    @property
    def host(self) -> str:
        """The value of the header `Host`."""
        parts = urlsplit(self.url)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        usual = {"http": 80, "https": 443}[parts.scheme]
        return name if parts.port in (None, usual) else f"{name}:{parts.port}"

    @property
    def path(self) -> str:
        """The path of the URL, at least `/`."""
        return urlsplit(self.url).path or "/"

    @property
    def head(self) -> str:
        """The first lines of each request. A proxy gets the whole URL of a server without TLS."""
        if self.proxy is None or self.url.startswith("https:"):
            return f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\n"
        target = f"http://{self.host}{self.path}"
        more = "".join(f"{name}: {value}\r\n" for name, value in _proxy_headers(self.proxy).items())
        return f"POST {target} HTTP/1.1\r\nHost: {self.host}\r\n{more}"


def connect(endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> HTTPConnection:
    """A connection that http.client has opened, with TLS and through the proxy's tunnel where necessary."""
    there = urlsplit(endpoint.url)
    first = urlsplit(endpoint.proxy) if endpoint.proxy else there
    host, port = first.hostname or "", first.port or (443 if first.scheme == "https" else 80)
    if tls is None:
        connection = HTTPConnection(host, port, timeout=timeout)
    else:
        connection = HTTPSConnection(host, port, timeout=timeout, context=tls)
        if endpoint.proxy:
            connection.set_tunnel(there.hostname or "", there.port or 443, _proxy_headers(endpoint.proxy))
    connection.connect()
    return connection


def tls_context(certificates: str | None) -> ssl.SSLContext:
    """Trusts these authorities only: a file or a directory."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if certificates is not None and os.path.isdir(certificates):
        context.load_verify_locations(capath=certificates)
    else:
        context.load_verify_locations(cafile=certificates)
    return context


def without_password(proxy: str) -> str:
    """The proxy's URL, as messages show it."""
    parts = urlsplit(proxy)
    return proxy.replace(f"{parts.username}:{parts.password}@", "***:***@", 1) if parts.username else proxy


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if not (parts.username and parts.password):
        return {}
    text = f"{unquote(parts.username)}:{unquote(parts.password)}"
    return {"Proxy-Authorization": "Basic " + b64encode(text.encode()).decode()}


_LINE = 65_536
"""The most bytes of a line. A longer line is no HTTP."""
_END = (b"\r\n", b"\n", b"")


class HttpAnswer(NamedTuple):
    """An answer. headers: by lower-case name. `reusable`: the server keeps the connection open."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    reusable: bool


def read_answer(stream: BinaryIO) -> HttpAnswer:
    """The next answer, for a seventh of the CPU of `http.client`, which parses headers as those of an email.

    Raises ConnectionResetError when the server closed the connection before it, ValueError for bytes that are no HTTP,
    IncompleteReadError and ChecksumError for a broken body."""
    first = stream.readline(_LINE)
    if not first:
        raise ConnectionResetError
    version, status, *_ = first.split(None, 2)
    headers = _read_headers(stream)
    reusable = version == b"HTTP/1.1" and headers.get(b"connection", b"").lower() != b"close"
    length = headers.get(b"content-length")
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        body = _read_chunks(stream)
    elif length is not None:
        body = _read_exactly(stream, int(length))
    else:
        body, reusable = stream.read(), False
    checksum = headers.get(b"x-amz-crc32")
    if checksum is not None and crc32(body) != int(checksum):
        raise ChecksumError(checksum_type="crc32", expected_checksum=int(checksum), actual_checksum=crc32(body))
    return HttpAnswer(int(status), headers, body, reusable)


def _read_headers(stream: BinaryIO) -> dict[bytes, bytes]:
    headers = {}
    while (line := stream.readline(_LINE)) not in _END:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    return headers


def _read_chunks(stream: BinaryIO) -> bytes:
    chunks = []
    while size := int(stream.readline(_LINE).partition(b";")[0], 16):
        chunks.append(_read_exactly(stream, size))
        stream.readline(_LINE)
    _read_headers(stream)
    return b"".join(chunks)


def _read_exactly(stream: BinaryIO, length: int) -> bytes:
    body = stream.read(length)
    if len(body) != length:
        raise IncompleteReadError(actual_bytes=len(body), expected_bytes=length)
    return body


IDLE_S = 1.0
"""Seconds without a request after which the client looks whether the server closed the connection."""


class StaleConnection(ConnectionClosedError):  # type: ignore[misc]  # botocore has no types
    """The server closed a connection that served earlier requests, before it answered the next one."""


class Connections:
    """The open connections of a process to one endpoint. Raises SSLError when the certificates cannot be read."""

    def __init__(self, endpoint: Endpoint, patience: Patience) -> None:
        self._endpoint, self._patience = endpoint, patience
        self._url = f"{endpoint.url.rstrip('/')}/" if endpoint.path == "/" else endpoint.url
        try:
            self._tls = tls_context(endpoint.certificates) if endpoint.url.startswith("https:") else None
        except OSError as error:
            raise SSLError(endpoint_url=self._url, error=error) from error
        self._idle: deque[_Connection] = deque()
        self._process = os.getpid()

    def exchange(self, request: bytes) -> HttpAnswer:
        """Sends a request and reads its answer. Raises StaleConnection when the server had closed the connection, and the
        errors of botocore for all other failures."""
        connection = self._idle_connection()
        stale = ConnectionClosedError if connection is None else StaleConnection
        connection = connection or self._open()
        try:
            answer = connection.exchange(request)
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            raise stale(endpoint_url=self._url, error=error) from error
        except ValueError as error:
            raise ConnectionClosedError(endpoint_url=self._url, error=error) from error
        if answer.reusable and len(self._idle) < self._patience.connections:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Closes the connections that no thread uses."""
        with suppress(IndexError):  # empty, or another thread took the last
            while True:
                self._idle.pop().close()

    def _idle_connection(self) -> "_Connection | None":
        """An open connection that served a request before."""
        if self._process != os.getpid():  # after a fork the sockets belong to the parent
            self.close()
            self._process = os.getpid()
        with suppress(IndexError):
            while not (connection := self._idle.pop()).is_open():
                connection.close()
            return connection
        return None

    def _open(self) -> "_Connection":
        try:
            return _Connection(connect(self._endpoint, self._tls, self._patience.connect_s), self._patience.read_s)
        except (OSError, HTTPException) as error:
            raise self._unconnected(error) from error

    def _unconnected(self, error: Exception) -> BotoCoreError:
        if isinstance(error, ssl.SSLError):
            return SSLError(endpoint_url=self._url, error=error)
        if isinstance(error, TimeoutError):
            return ConnectTimeoutError(endpoint_url=self._url, error=error)
        if self._endpoint.proxy is not None:
            return ProxyConnectionError(proxy_url=without_password(self._endpoint.proxy), error=error)
        return EndpointConnectionError(endpoint_url=self._url, error=error)


class _Connection:
    """A connection that is open."""

    def __init__(self, connected: HTTPConnection, read_s: float) -> None:
        self._socket = connected.sock
        self._socket.settimeout(read_s)
        self._socket.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
        self._stream = self._socket.makefile("rb")
        self._used = time.monotonic()

    def exchange(self, request: bytes) -> HttpAnswer:
        """Sends a request and reads its answer. After a failure the connection is closed."""
        try:
            self._socket.sendall(request)
            answer = read_answer(self._stream)
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        return answer

    def is_open(self) -> bool:
        """Whether the server seems to keep the connection. Asks the system only after a while without requests."""
        if time.monotonic() - self._used < IDLE_S:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)  # between two requests there is only an end to read

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
