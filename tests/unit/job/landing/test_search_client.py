"""What a client makes of the answers of a server, over real HTTP."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from processor.environment.programs.program import free_port
from processor.job.landing.search import IndexAnswer, IndexWrite, SearchClient
from processor.job.landing.target import LandingError, TargetAway


class Server(ThreadingHTTPServer):
    """Answers each request with the next of `answers`: status and body. `asked`: path, login and body of each."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, str]] = []
        self.asked: list[tuple[str, str | None, str]] = []

    @property
    def url(self) -> str:
        return f"http://ada:p%40ss@127.0.0.1:{self.server_address[1]}/es"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        status, text = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def writes(*sources: bytes | None) -> list[IndexWrite]:
    return [IndexWrite(f"id-{n}", n + 1, source) for n, source in enumerate(sources)]


def items(*statuses: int) -> str:
    return json.dumps({"items": [{"index": {"status": status}} for status in statuses]})


def test_a_bulk_request_in_full(server: Server) -> None:
    server.answers = [(200, items(201, 404))]
    with closing(SearchClient(server.url)) as client:
        assert client.bulk("person-v1-write", writes(b'{"a":1}', None)) == [IndexAnswer(201), IndexAnswer(404)]
    ((path, login, body),) = server.asked
    assert path == "/es/person-v1-write/_bulk?require_alias=true&filter_path=items.*.status,items.*.error"
    assert login == "Basic YWRhOnBAc3M="
    assert body == (
        '{"index":{"_id":"id-0","version":1,"version_type":"external_gte"}}\n{"a":1}\n'
        '{"delete":{"_id":"id-1","version":2,"version_type":"external_gte"}}\n'
    )


def test_a_bulk_request_has_a_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.job.landing.search.BULK_BYTES", 10)
    server.answers = [(200, items(200)), (200, items(409, 201)), (200, items(201))]
    with closing(SearchClient(server.url)) as client:
        answers = client.bulk("a", writes(b"{12345678}", b"{}", b"{}", b"{1234567}"))
    assert [one.status for one in answers] == [200, 409, 201, 201]


def test_a_proxy_that_takes_only_small_requests(server: Server) -> None:
    server.answers = [(413, "<html>"), (200, items(201)), (413, "<html>")]
    with closing(SearchClient(server.url)) as client:
        answers = client.bulk("a", writes(b"{}", b"{}"))
    assert answers[0] == IndexAnswer(201)
    assert answers[1].reason == "the server takes no request of 70 bytes"


@pytest.mark.parametrize(
    ("status", "text", "error", "says"),
    [
        (
            429,
            '{"error": {"type": "circuit_breaking_exception", "reason": "Data too large"}}',
            TargetAway,
            "Data too large",
        ),
        (502, "<html>Bad Gateway</html>", TargetAway, "502: <html>Bad Gateway</html>"),
        (403, '{"error": {"type": "cluster_block_exception", "reason": "disk is full"}}', TargetAway, "disk is full"),
        (401, "Unauthorized", LandingError, "refuses the landing: 401: Unauthorized"),
        (400, "[]", LandingError, "refuses the landing: 400: \\[\\]"),
    ],
)
def test_an_answer_that_is_an_error(server: Server, status: int, text: str, error: type[Exception], says: str) -> None:
    server.answers = [(status, text), (status, text)]
    with closing(SearchClient(server.url)) as client:
        with pytest.raises(error, match=says):
            client.bulk("a", writes(b"{}"))
        with pytest.raises(error, match=says):
            client.send("POST", "/a")


def test_an_error_of_one_write(server: Server) -> None:
    cause = {"type": "number_format_exception", "reason": "x"}
    refused = {"index": {"status": 400, "error": {"type": "mapper", "reason": "bad", "caused_by": cause}}}
    full = {"index": {"status": 429, "error": {"type": "rejected", "reason": "queue is full"}}}
    gone = {"index": {"status": 404, "error": {"type": "index_not_found_exception", "reason": "no such index"}}}
    server.answers = [(200, json.dumps({"items": [one]})) for one in (refused, full, gone)]
    with closing(SearchClient(server.url)) as client:
        assert client.bulk("a", writes(b"{}")) == [IndexAnswer(400, "mapper: bad (number_format_exception: x)")]
        with pytest.raises(TargetAway, match="takes no documents: 429: rejected: queue is full"):
            client.bulk("a", writes(b"{}"))
        with pytest.raises(LandingError, match="is gone"):
            client.bulk("a", writes(b"{}"))


def test_nobody_listens() -> None:
    url = f"http://ada:p%40ss@127.0.0.1:{free_port()}"
    with closing(SearchClient(url)) as client, pytest.raises(TargetAway, match="Connection refused") as caught:
        client.find("/a")
    assert "p@ss" not in str(caught.value)
    assert "p%40ss" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://", "https://host:port", "https://u:secret@[host", "http://host/?a=b"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(LandingError, match="--to is no address of OpenSearch") as caught:
        SearchClient(url)
    assert "secret" not in str(caught.value)
