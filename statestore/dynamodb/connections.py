"""Connections to DynamoDB's endpoint, which stay open between requests: direct, or through a proxy.

Promises: each connection serves one thread at a time. A process that was forked opens connections of its own. Errors are those
that botocore raises. Does not: try again.
"""

import os
import select
import ssl
import time
from collections import deque
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from socket import SO_KEEPALIVE, SOL_SOCKET

from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)

from statestore.dynamodb.endpoint import Endpoint, connect, tls_context, without_password
from statestore.dynamodb.http_answer import HttpAnswer, read_answer
from statestore.dynamodb.retries import Patience

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
