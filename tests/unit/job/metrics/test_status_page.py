"""The driver's page shows the report, loads nothing, and escapes all. Its server answers, refuses, and no client holds it up."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from html.parser import HTMLParser
from typing import Any

import pytest

from processor.errors import SettingError
from processor.job.metrics import status_page as module
from processor.job.metrics.status_page import CONTENT_POLICY, RunState, status_page, status_server
from tests.unit.job.metrics.run_report import run_report

REPORT = run_report()
EVIL = "<img src=x onerror=alert(1)>\"'&"
MISSING = {EVIL: {"entity": EVIL, "near": EVIL, "products": [EVIL]}}

WAIT = "68 dead letters wait, the oldest for 1 min: 60 of user: column-type at id"


def evil(value: Any) -> Any:
    """The value with a hostile text in the place of each text and of each name."""
    match value:
        case str():
            return EVIL
        case dict():
            return {f"{name}{EVIL}" if name in ("user", "star") else name: evil(one) for name, one in value.items()}
        case list():
            return [evil(one) for one in value] or [EVIL]
    return value


class Tags(HTMLParser):
    """The tags of a page, with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def test_the_page_shows_what_status_shows() -> None:
    text = re.sub(r"\s+", " ", Tags(status_page(REPORT, ["product profile stopped: too large"])).text)
    for part in (
        "job main: reads its topics",
        f"registry version {REPORT['registry_version']}",
        "product profile stopped: too large",
        "oldest unpublished 1 min",
        "user 7 records, 1 min",
        "open changes",
        "gate of badge: 2 documents wait, the oldest for 8 s; it waits for transaction 760 of topic app.transaction",
        "gates: 1 documents went out at `at_most`",
        "Query",
        "publish",
        "the last dead letter of this run: user/0 offset 2",
        f"{WAIT}, 8 of repo: not-json",
    ):
        assert part in text


def test_the_page_of_a_job_that_starts_and_of_a_job_in_good_health() -> None:
    assert "The job starts." in status_page(None, [])
    assert "Nothing needs a person." in status_page(REPORT, [])


def test_the_page_says_how_many_dead_letters_wait_or_that_it_is_unknown() -> None:
    shown = [
        Tags(status_page(REPORT | {"letters_waiting": groups}, [])).text
        for groups in (REPORT["letters_waiting"][:1], None)
    ]
    assert [re.findall(r"dead letters that wait\s+(\w+)", text) for text in shown] == [["60"], ["unknown"]]


def test_hostile_names_and_reasons_stay_text() -> None:
    hostile = {name: evil(value) for name, value in REPORT.items() if name not in ("counts", "last_batch")}
    page = status_page(
        REPORT | hostile | {"missing_topics": MISSING, "walks": [EVIL]},
        [EVIL],
    )
    plain, found = Tags(status_page(REPORT, ["x"])), Tags(page)
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in plain.tags}
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert found.text.count(EVIL) >= 6


def test_the_page_loads_nothing_from_elsewhere_and_its_policy_forbids_it() -> None:
    tags = Tags(status_page(REPORT, [])).tags
    links = [value for _, attributes in tags for name, value in attributes.items() if name in ("href", "src")]
    assert links == ["data:,", "metrics", "status.json", "health"]
    assert CONTENT_POLICY.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in CONTENT_POLICY


@pytest.fixture
def state() -> list[RunState]:
    """The state that the server shows: the only element."""
    return [RunState(REPORT, ())]


@pytest.fixture
def port(state: list[RunState]) -> Iterator[int]:
    with status_server("127.0.0.1", 0, lambda: state[0]) as port:
        yield port


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body, answer.headers


def test_the_paths_show_the_same_report_in_their_forms(port: int) -> None:
    assert json.loads(ask(port, "/status.json")[1]) == json.loads(json.dumps(REPORT))
    status, text, headers = ask(port, "/metrics")
    assert (status, headers["Content-Type"].split(";")[0]) == (200, "text/plain")
    assert 'statestore_lag_records{topic="user"} 7.0' in text
    status, text, headers = ask(port, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "job main: reads its topics" in text
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    status, text, _ = ask(port, "/health")
    assert (status, text.splitlines()) == (200, ["ok", f"{WAIT}, 8 of repo: not-json"])
    assert ask(port, "/other")[0] == 404


def test_health_is_503_with_the_reasons_when_a_person_must_act(port: int, state: list[RunState]) -> None:
    state[0] = RunState(REPORT, ("product profile stopped: too large",))
    status, text, _ = ask(port, "/health")
    assert (status, text.splitlines()[0]) == (503, "product profile stopped: too large")


def test_a_job_that_starts_is_well_and_has_no_metrics_yet(port: int, state: list[RunState]) -> None:
    state[0] = RunState(None, ())
    assert [ask(port, path)[0] for path in ("/", "/health", "/status.json", "/metrics")] == [200, 200, 200, 503]
    assert ask(port, "/health")[1] == "starts\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE"])
def test_only_get_is_answered(port: int, method: str) -> None:
    status, body, headers = ask(port, "/", method)
    assert (status, body, headers["Allow"]) == (405, "", "GET")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "", "[", "localhost@evil"]
)
def test_a_request_under_another_name_than_this_machine_gets_nothing(port: int, host: str) -> None:
    status, body, _ = ask(port, "/status.json", Host=host)
    assert (status, body) == (421, "the Host of the request is not this machine\n")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9", "127.0.0.1:9464", "[::1]:9464", "LOCALHOST", "localhost."]
)
def test_a_request_for_this_machine_is_answered(port: int, host: str) -> None:
    assert ask(port, "/health", Host=host)[0] == 200


def test_an_open_address_answers_under_every_name(state: list[RunState]) -> None:
    with status_server("0.0.0.0", 0, lambda: state[0]) as port:
        assert ask(port, "/health", Host="driver.internal")[0] == 200


def test_bytes_that_are_no_request_get_an_error_without_an_echo(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as client:
        client.sendall(b"<script>alert(1)</script> / HTTP/1.1\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.0 4")
    assert b"script>" not in answer


def test_a_taken_port_is_a_clear_error(port: int) -> None:
    message = (
        rf"status_port: cannot listen at 127.0.0.1, port {port}: another program listens there; end that one, or give "
        r"--status-port \d+"
    )
    with pytest.raises(SettingError, match=message), status_server("127.0.0.1", port, lambda: RunState(None, ())):
        pass


def test_an_address_that_is_not_of_this_machine_is_a_clear_error() -> None:
    with pytest.raises(SettingError, match=r"cannot listen at 192\.0\.2\.1"), status_server("192.0.2.1", 0, RunState):  # type: ignore[arg-type]
        pass


def test_clients_that_say_nothing_are_dropped_and_others_are_answered(
    state: list[RunState], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECTION_SECONDS", 0.5)
    with status_server("127.0.0.1", 0, lambda: state[0]) as port, half_requests(port, 32) as silent:
        assert all(map(ends, silent))
        assert ask(port, "/health")[0] == 200


def test_a_probe_is_answered_while_half_requests_have_all_places(port: int) -> None:
    """They wait here for 10 s each, and the probe takes the place of the oldest."""
    with half_requests(port, 300) as silent:
        assert ask(port, "/health")[0] == 200
        assert ends(silent[0])
        silent[-1].sendall(b"TP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[-1].recv(12) == b"HTTP/1.0 404"


def ends(client: socket.socket) -> bool:
    """Waits for the end of a connection. Whether it came without an answer."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


@contextmanager
def half_requests(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Clients that send the beginning of a request."""
    with ExitStack() as opened:
        clients = []
        for _ in range(count):
            clients.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=300)))
            with suppress(OSError):  # a later one may have its place already
                clients[-1].sendall(b"GET /x HT")
        yield clients


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET http://evil.example/status.json HTTP/1.1", b"404"),
        (b"GET //evil.example/status.json HTTP/1.1", b"404"),
        (b"GET /health%0A HTTP/1.1", b"404"),
        (b"GET /health?x=/status.json HTTP/1.1", b"200"),
    ],
)
def test_a_target_is_a_path_and_nothing_else(port: int, line: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as client:
        client.sendall(line + b"\r\nHost: localhost\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.0 " + status


def test_the_address_of_the_server_is_a_name_of_it(state: list[RunState]) -> None:
    with status_server("127.0.0.9", 0, lambda: state[0]) as port:
        connection = http.client.HTTPConnection("127.0.0.9", port, timeout=300)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()


def test_the_end_of_the_server_does_not_wait_for_its_clients(state: list[RunState]) -> None:
    with status_server("127.0.0.1", 0, lambda: state[0]) as port:
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET / HT")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    client.close()
