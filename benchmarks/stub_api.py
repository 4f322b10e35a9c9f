"""A DynamoDB API that always gives the same answers, for as little CPU as possible: `python -m benchmarks.stub_api`.

Prints its port. Answers UpdateItem and DeleteItem with a former row, Query and BatchGetItem with ten rows, and every answer has
the headers that DynamoDB sends. Ends with its standard input. Does not: check signatures, or keep anything.
"""

import json
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from subprocess import PIPE, Popen
from typing import Any
from zlib import crc32

from statestore.items import Image, encode_version
from statestore.keys import row_key
from statestore.values import encode
from statestore.writes import write_image

ROWS = 10
TABLE = "stub"


@contextmanager
def stub_api() -> Iterator[str]:
    """The endpoint of a stub in a process of its own."""
    with Popen([sys.executable, "-m", "benchmarks.stub_api"], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def star(number: int) -> Image:
    """A star of the demo, which has two slots."""
    columns = {"username": "octocat", "repo_name": f"repo{number}", "repo_owner": "owner", "created_at": "2015-01-01"}
    return Image(
        key=row_key("star", 1, f"octocat#repo{number}#owner"),
        version=encode_version(0, 0, number),
        columns=columns,
        more={},
        declared=tuple(columns),
        slots={1: "octocat", 2: f"owner#repo{number}"},
    )


@dataclass(slots=True)
class _Caller:
    """A connection, and the bytes of a request that is not complete."""

    socket: socket.socket
    received: bytes = b""

    def serve(self, answers: dict[bytes, bytes]) -> bool:
        """Reads, and answers a complete request. Returns whether the connection is still open."""
        data = self.socket.recv(65_536)
        self.received += data
        head, _, body = self.received.partition(b"\r\n\r\n")
        lower = head.lower()
        if data and len(body) == _number(lower, b"content-length: "):
            self.socket.sendall(answers[_word(lower, b"dynamodb_20120810.")])
            self.received = b""
        return bool(data)


def _serve(server: socket.socket, answers: dict[bytes, bytes]) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        selector.register(server, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.data is None:
                    connection, _ = server.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    selector.register(connection, selectors.EVENT_READ, _Caller(connection))
                elif not key.data.serve(answers):
                    selector.unregister(key.fileobj)
                    key.data.socket.close()


def _answers() -> dict[bytes, bytes]:
    rows = [_stored(star(number)) for number in range(ROWS)]
    used = {"TableName": TABLE, "CapacityUnits": 3.0}
    return {
        b"updateitem": _http({"Attributes": rows[0], "ConsumedCapacity": used}),
        b"deleteitem": _http({"Attributes": rows[0], "ConsumedCapacity": used}),
        b"query": _http({"Items": rows, "Count": ROWS, "ScannedCount": ROWS, "ConsumedCapacity": used}),
        b"batchgetitem": _http({"Responses": {TABLE: rows}, "UnprocessedKeys": {}, "ConsumedCapacity": [used]}),
    }


def _stored(image: Image) -> dict[str, Any]:
    """The row's item in DynamoDB's JSON, as it is after a first write: without former keys."""
    write = write_image(image, below=image.version)
    item = {"PK": image.key.pk, "SK": image.key.sk, **write.set, **dict.fromkeys(write.copy, "")}
    return {name: encode(value) for name, value in item.items()}


def _http(answer: dict[str, Any]) -> bytes:
    body = json.dumps(answer).encode()
    head = (
        "HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Sun, 22 Nov 2026 08:00:00 GMT\r\nConnection: keep-alive\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n"
        f"x-amzn-RequestId: {'A' * 52}\r\nx-amz-crc32: {crc32(body)}\r\n\r\n"
    )
    return head.encode() + body


def _number(head: bytes, after: bytes) -> int:
    return int(_word(head, after)) if after in head else -1


def _word(head: bytes, after: bytes) -> bytes:
    return head.partition(after)[2].partition(b"\r\n")[0]


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        print(listening.getsockname()[1], flush=True)
        _serve(listening, _answers())
