"""Connections to DynamoDB's endpoint, which stay open between requests: direct, or through a proxy.

Promises: each connection serves one thread at a time. A process that was forked opens connections of its own. Errors are those
that botocore raises. Does not: try again.
"""

import os
import ssl
from collections import deque
from http.client import HTTPConnection, HTTPException
from io import BufferedReader
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


class StaleConnection(ConnectionClosedError):  # type: ignore[misc]  # botocore has no types
    """The server closed a connection that served earlier requests, before it answered the next one."""


class Connections:
    """The open connections of a process to one endpoint."""

    def __init__(self, endpoint: Endpoint, patience: Patience) -> None:
        self._endpoint, self._patience = endpoint, patience
        self._url = f"{endpoint.url.rstrip('/')}/" if endpoint.path == "/" else endpoint.url
        self._tls = tls_context(endpoint.certificates) if endpoint.url.startswith("https:") else None
        self._idle: deque[_Connection] = deque()
        self._process = os.getpid()

    def exchange(self, request: bytes) -> HttpAnswer:
        """Sends a request and reads its answer. Raises StaleConnection when the server had closed the connection, and the
        errors of botocore for all other failures."""
        connection, used = self._take()
        done = False
        try:
            answer = connection.exchange(request)
            done = True
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            kind = StaleConnection if used else ConnectionClosedError
            raise kind(endpoint_url=self._url, error=error) from error
        except ValueError as error:
            raise ConnectionClosedError(endpoint_url=self._url, error=error) from error
        finally:
            if not done:
                connection.close()
        if answer.reusable and len(self._idle) < self._patience.connections:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        """Closes the connections that no thread uses."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> "tuple[_Connection, bool]":
        """A connection, and whether it served a request before."""
        if self._process != os.getpid():  # the sockets belong to the process before the fork
            self._idle, self._process = deque(), os.getpid()
        try:
            return self._idle.pop(), True
        except IndexError:
            return self._open(), False

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
        self._stream: BufferedReader = self._socket.makefile("rb")

    def exchange(self, request: bytes) -> HttpAnswer:
        self._socket.sendall(request)
        return read_answer(self._stream)

    def close(self) -> None:
        self._stream.close()
        self._socket.close()
