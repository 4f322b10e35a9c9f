"""An HTTP proxy before a DynamoDB API, for tests. It has layers, each of which may change or delay a request or its answer. A
client uses the endpoint of the proxy like any other.

The proxy calls a layer with each request and with a function that passes the request on. Many threads call layers at once.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Lock, Thread
from typing import Any, Protocol
from zlib import crc32

import urllib3

WRITES = ("UpdateItem", "DeleteItem", "PutItem", "TransactWriteItems")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. operation: the API's name; body: its JSON; port, proxy_port: the two ends of the connection, which identify
    the client's process; signer: the access key; moment: when the client signed it (`20261122T080000Z`)."""

    operation: str
    body: Mapping[str, Any]
    port: int
    proxy_port: int
    signer: str = ""
    moment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer: HTTP status and JSON. corrupt: bytes of it change on the way. last: the server then closes the connection, and
    says nothing about it."""

    status: int = 200
    body: Mapping[str, Any]
    corrupt: bool = False
    last: bool = False


def row_write(request: Request) -> Request:
    """The write of a row: the first of a transaction, or the request itself."""
    if request.operation != "TransactWriteItems":
        return request
    return replace(request, body=request.body["TransactItems"][0]["Update"])


class Dropped(Exception):
    """The connection ends without an answer, or in the middle of `answer`."""

    def __init__(self, answer: Answer | None = None) -> None:
        super().__init__()
        self.answer = answer


Relay = Callable[[Request], Answer]


class Layer(Protocol):
    """Answers a request itself, or passes it on by `relay`."""

    def __call__(self, request: Request, relay: Relay) -> Answer: ...


class Dice:
    """Random numbers from a seed, the same for any order of threads: they depend on the request and on how often it came
    before."""

    def __init__(self, seed: int) -> None:
        self._seed, self._asked, self._lock = seed, Counter[str](), Lock()

    def throw(self, request: Request) -> tuple[int, Random]:
        """How often the same request came before, and the random generator for this time."""
        asked = {name: value for name, value in request.body.items() if name != "ReturnConsumedCapacity"}
        text = f"{request.operation} {json.dumps(asked)}"  # what a request asks to know of its cost changes no history
        with self._lock:
            self._asked[text] += 1
            before = self._asked[text] - 1
        return before, Random(f"{self._seed} {before} {text}")


@contextmanager
def proxy(upstream: str, *layers: Layer) -> Iterator[str]:
    """The endpoint of a proxy before `upstream`. The first layer gets the requests of the client first."""
    with urllib3.PoolManager(maxsize=64, retries=False) as pool, _Server(upstream, layers, pool) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream: str, layers: tuple[Layer, ...], pool: urllib3.PoolManager) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._upstream, self._layers, self._pool = upstream, layers, pool

    def answer(self, request: Request, headers: Mapping[str, str]) -> Answer:
        relay: Relay = partial(self._relay, request.operation, headers)
        for layer in reversed(self._layers):
            relay = partial(layer, relay=relay)
        return relay(request)

    def _relay(self, asked: str, headers: Mapping[str, str], request: Request) -> Answer:
        named = {**headers, "X-Amz-Target": f"DynamoDB_20120810.{request.operation}"}
        if request.operation != asked:  # a request of a layer is none of the product's (tests/recorder)
            named["User-Agent"] = "a layer of the proxy"
        answer = self._pool.request("POST", self._upstream, body=json.dumps(request.body), headers=named)
        return Answer(status=answer.status, body=json.loads(answer.data))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores that a client closed its connection; shows other errors."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        signed = {"signer": _access_key(self.headers["Authorization"]), "moment": self.headers["X-Amz-Date"]}
        ends = self.client_address[1], self.server.server_port
        request = Request(operation=operation, body=body, port=ends[0], proxy_port=ends[1], **signed)
        names = ("Content-Type", "Authorization", "X-Amz-Date", "User-Agent")
        try:
            answer = self.server.answer(request, {name: self.headers[name] for name in names})
            self._send(answer, share=1.0)
        except Dropped as dropped:
            if dropped.answer is not None:
                self._send(dropped.answer, share=0.5)
            self.close_connection = True

    def _send(self, answer: Answer, share: float) -> None:
        """Sends an answer, or the first part of it."""
        data = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-amz-crc32", str(crc32(data)))  # shows a client that an answer was cut, as DynamoDB does
        self.end_headers()
        if answer.corrupt:
            data = bytes(reversed(data))
        self.wfile.write(data[: int(len(data) * share)])
        self.close_connection = self.close_connection or answer.last

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


def _access_key(authorization: str) -> str:
    return authorization.partition("Credential=")[2].partition("/")[0]
