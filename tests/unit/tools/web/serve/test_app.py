"""What a client of `statestore serve` gets."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any
from urllib.parse import quote

import pytest
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from processor.tools.web.serve import reader as look_ups
from processor.tools.web.serve.app import document_app
from processor.tools.web.serve.reader import StorePool
from processor.tools.web.server import GuardRules
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Transient
from tests.unit.tools.web.serve.scene import PRODUCTS, ServedState

LOCAL = "http://127.0.0.1"
TOKEN = "a-long-random-token"


@pytest.fixture
def state() -> ServedState:
    state = ServedState()
    for name in ("ada", "a/b", "Zoë ☃", "50%"):
        state.takes("user", {"name": name, "city": "Oslo"})
    state.takes("order", {"user": "ada", "number": 7, "status": "open"})
    return state


@pytest.fixture
def client(state: ServedState, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.setattr(look_ups, "LOOK_SECONDS", 0.0)
    return TestClient(document_app(state.reader(), GuardRules()), base_url=LOCAL)


def problem(answer: Any) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["detail"]


def test_a_document_with_its_sequence_and_its_tag(client: TestClient) -> None:
    answer = client.get("/documents/person/ada")
    orders = [{"user": "ada", "number": 7, "status": "open"}]
    assert answer.json() == {"name": "ada", "city": "Oslo", "orders": orders}
    assert answer.headers["statestore-sequence"] == "2"
    assert answer.headers["statestore-published"] == "true"
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = client.get("/documents/person/ada", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/documents/person/ada", headers={"If-None-Match": '"other"'}).status_code == 200
    assert client.get("/documents/person/ada?as=published").content == answer.content


def test_a_document_that_waits_at_its_gate_says_so(client: TestClient, state: ServedState) -> None:
    assert client.get("/documents/person/ada").headers["statestore-waits"] == "false"
    state.works_by({"person.yaml": PRODUCTS["person.yaml"] + "publish: {quiet: 1 h, at_most: 2 h}\n"})
    state.takes("user", {"name": "ada", "city": "Rome"})
    answer = client.get("/documents/person/ada")
    assert (answer.json()["city"], answer.headers["statestore-published"]) == ("Rome", "false")
    assert answer.headers["statestore-waits"] == "true"
    status, detail = problem(client.get("/documents/person/ada?as=published"))
    assert (status, "a newer state waits at the gate of the product" in detail) == (409, True)
    assert client.get("/documents/person/Zoë ☃").headers["statestore-waits"] == "false"


def test_another_state_has_another_tag(client: TestClient, state: ServedState) -> None:
    tag = client.get("/documents/person/ada").headers["etag"]
    state.takes("user", {"name": "ada", "city": "Rome"})
    answer = client.get("/documents/person/ada", headers={"If-None-Match": tag})
    assert (answer.status_code, answer.json()["city"]) == (200, "Rome")


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/b", "a/b"), ("a%2Fb", "a/b"), ("Zo%C3%AB%20%E2%98%83", "Zoë ☃"), ("50%25", "50%"), ('{"name":"ada"}', "ada")],
)
def test_keys_with_any_characters(client: TestClient, path: str, name: str) -> None:
    assert client.get(f"/documents/person/{path}").json()["name"] == name


KEYS = ["plain", "plain\n", "\nplain", "a\nb", "\n", "plain\r", "\r\n", "a\x00b", " blank ",
        "\t", "..", "a/../b", "//", "/", "a/", "a+b", "%2F",
        "%0A", "?as=published", "#", ";", "Zo\u00eb", "\u2603\u2028", "\U0001f600", "\\", "'\"", "."]  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_each_key_has_its_own_document_and_row(state: ServedState, name: str) -> None:
    for one in KEYS:
        state.takes("user", {"name": one, "city": f"of {one!r}"})
    client = TestClient(document_app(state.reader(), GuardRules()), base_url=LOCAL)
    written = quote(name, safe="").replace(".", "%2E")
    assert client.get(f"/documents/person/{written}").json() == {"name": name, "city": f"of {name!r}", "orders": []}
    assert client.get(f"/rows/user/{written}").json()["columns"]["city"] == f"of {name!r}"


@pytest.mark.parametrize("path", ["/documents/person/%FF", "/documents/person/a%C3", "/rows/user/%ED%A0%80"])
def test_a_key_that_is_not_utf8_is_no_other_key(client: TestClient, path: str) -> None:
    status, detail = problem(client.get(path))
    assert (status, "is not UTF-8 in the escapes of a URL" in detail) == (400, True)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/health%0A", 404), ("/products/person%0A/schema", 404), ("/documents/person%0A/ada", 404), ("/rows/user%0A/ada", 404),
     ("/documents/person%2Fada", 404), ("/health/", 404), ("/products/", 404), ("/products/person/schema/", 404)],
)  # fmt: skip
def test_no_path_is_nearly_another_and_none_leads_to_the_host(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path, headers={"Host": "localhost"}, follow_redirects=False)
    assert problem(answer)[0] == status
    assert "location" not in answer.headers


def test_a_key_of_several_columns(client: TestClient) -> None:
    answer = client.get('/documents/purchase/{"user":"ada","number":7}')
    assert answer.json() == {"user": "ada", "number": 7, "status": "open"}
    row = client.get('/rows/order/{"user":"ada","number":7}').json()
    assert (row["columns"]["status"], row["origin"]["offset"]) == ("open", 4)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/documents/persn/ada", 404, "there is no product `persn`; there are person, purchase, spending"),
        ("/documents/person/eve", 404, "person has no document for eve"),
        ("/documents/purchase/7", 400, "the key of order has 2 parts"),
        ("/documents/purchase/%7B%22user%22", 400, "the key"),
        ("/documents/person/ada?as=before", 400, "use as=now or as=published"),
        ("/rows/usr/ada", 404, "there is no entity `usr`; there are order, user"),
        ("/rows/user/eve", 404, "the table has no row user eve"),
        ("/products/persn/schema", 404, "there is no product `persn`"),
        ("/secret", 404, "Not Found"),
    ],
)
def test_a_problem_in_place_of_an_answer(client: TestClient, path: str, status: int, text: str) -> None:
    found, detail = problem(client.get(path))
    assert found == status
    assert text in detail


def test_a_deleted_row_is_no_document_and_its_marker_a_row(client: TestClient, state: ServedState) -> None:
    state.takes("user", {"name": "ada"}, deleted=True)
    assert problem(client.get("/documents/person/ada"))[0] == 404
    assert client.get("/rows/user/ada").json()["columns"] is None


def test_only_reads(client: TestClient) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = client.request(method, "/documents/person/ada")
        assert problem(answer) == (405, "Method Not Allowed")
        assert "GET" in answer.headers["allow"]
    head = client.head("/documents/person/ada")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["etag"]


def test_the_description_is_valid_and_has_each_product(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    validate(described)
    assert {"/documents/person/{key}", "/documents/purchase/{key}"} <= described["paths"].keys()
    assert described["components"]["schemas"]["person"] == client.get("/products/person/schema").json()
    assert [one["product"] for one in client.get("/products").json()] == ["person", "purchase", "spending"]


def test_an_edit_of_the_definitions_counts_at_once(client: TestClient, state: ServedState) -> None:
    state.edits(**{"person.yaml": "product: person\nroot: user\nfields: [city]\n"})
    assert client.get("/documents/person/ada").json() == {"city": "Oslo"}
    assert problem(client.get("/documents/person/ada?as=published"))[0] == 409


def test_a_registry_that_is_away_and_back(client: TestClient, state: ServedState) -> None:
    state.away = True
    status, detail = problem(client.get("/health"))
    assert (status, detail) == (
        503,
        "the registry at db:5432 does not answer; start the part again, or wait; this server continues by itself",
    )
    assert client.get("/documents/person/ada").status_code == 503
    state.away = False
    assert client.get("/documents/person/ada").status_code == 200


def test_a_look_up_beyond_its_limits(state: ServedState) -> None:
    for number in range(8):
        state.takes("order", {"user": "ada", "number": number, "status": "open"})
    few = TestClient(document_app(state.reader(most_rows=5), GuardRules()), base_url=LOCAL)
    assert problem(few.get("/documents/person/ada"))[0] == 413
    assert few.get("/documents/person/a/b").status_code == 200
    small = TestClient(document_app(state.reader(most_bytes=40), GuardRules()), base_url=LOCAL)
    assert problem(small.get("/documents/person/ada"))[0] == 413


def test_a_product_with_a_limit_of_its_own(state: ServedState) -> None:
    for number in range(8):
        state.takes("order", {"user": "ada", "number": number, "status": "open"})
    client = TestClient(document_app(state.reader(most_rows_of={"person": 5}), GuardRules()), base_url=LOCAL)
    assert problem(client.get("/documents/person/ada")) == (
        413,
        "the answer needs more than 5 rows: read the product's topic, or raise --most-rows",
    )
    assert client.get('/documents/purchase/{"user":"ada","number":7}').status_code == 200


def test_the_limit_of_a_join_counts(client: TestClient, state: ServedState) -> None:
    for number in range(8):
        state.takes("order", {"user": "ada", "number": number, "status": "open"})
    limited = PRODUCTS["person.yaml"].replace("on: {user: name}", "on: {user: name}, order_by: [-number], limit: 2")
    state.edits(**{"person.yaml": limited})
    assert [one["number"] for one in client.get("/documents/person/ada").json()["orders"]] == [7, 6]


def test_the_age_of_the_state_where_a_job_says_it(client: TestClient, state: ServedState) -> None:
    assert "statestore-age" not in client.get("/documents/person/ada").headers
    lags = {"user": {"records": 0, "seconds": 0.0}, "order": {"records": 3, "seconds": 7.5}}
    state.reports({"at": 1000.0, "looked": 990.0, "topics": lags})
    answer = client.get("/documents/person/ada")
    assert answer.headers["statestore-age"] == "19"  # seconds: 1 of the report, 10 of the look, 7.5 of the record
    again = client.get("/documents/person/ada", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.headers["statestore-age"]) == (304, "19")


def test_as_many_look_ups_at_the_same_time_as_there_are_stores(state: ServedState) -> None:
    both = Barrier(2, timeout=30)

    class Meeting(MemoryStore):
        def get(self, keys: Collection[Key]) -> dict[Key, Item]:
            both.wait()
            return state.trial.store.get(keys)

    reader = replace(state.reader(), stores=StorePool([Meeting(), Meeting()]))
    with ThreadPoolExecutor(4) as threads:
        rows = list(threads.map(lambda _: reader.row("user", "ada"), range(4)))
    assert [one["columns"]["city"] for one in rows] == ["Oslo"] * 4


def test_a_store_that_is_away_and_back(state: ServedState) -> None:
    away = [True]

    class Leaving(MemoryStore):
        def get(self, keys: Collection[Key]) -> dict[Key, Item]:
            if away[0]:
                raise Transient("table t at db:5432: connection refused")
            return state.trial.store.get(keys)

    reader = replace(state.reader(), stores=StorePool([Leaving()]))
    client = TestClient(document_app(reader, GuardRules()), base_url=LOCAL)
    for _ in range(2):
        assert problem(client.get("/rows/user/ada")) == (
            503,
            "table t at db:5432: connection refused; start the part again, or wait; this server continues by itself",
        )
    assert client.get("/products").status_code == 200
    away[0] = False
    assert client.get("/rows/user/ada").status_code == 200


def test_a_token(state: ServedState) -> None:
    client = TestClient(document_app(state.reader(), GuardRules(token=TOKEN)), base_url=LOCAL)
    for headers in (
        {},
        {"Authorization": "Bearer x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer é"},
    ):
        answer = client.get("/health", headers=[(name.encode(), text.encode()) for name, text in headers.items()])
        assert problem(answer)[0] == 401
        assert answer.headers["www-authenticate"].startswith("Bearer, Basic ")
    assert client.get("/health", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_token_as_the_password_of_a_user(state: ServedState) -> None:
    client = TestClient(document_app(state.reader(), GuardRules(token=TOKEN)), base_url=LOCAL)
    assert client.get("/health", auth=("ada", TOKEN)).status_code == 200
    assert client.get("/health", auth=("ada", "another")).status_code == 401
    assert problem(client.get("/health", headers={"Authorization": "Basic no-base64"}))[0] == 401


@pytest.mark.parametrize("host", ["evil.example.org", "[", "localhost:x", "", "127.0.0.1.evil.example.org"])
def test_a_name_that_is_not_this_machine(client: TestClient, host: str) -> None:
    assert problem(client.get("/health", headers={"Host": host}))[0] == 421


@pytest.mark.parametrize("host", ["[", "evil.example.org", "x/../y?z#", "localhost:x"])
def test_a_server_for_every_name_reads_no_host(state: ServedState, host: str) -> None:
    client = TestClient(document_app(state.reader(), GuardRules(names=())), base_url=LOCAL)
    assert client.get("/documents/person/ada", headers={"Host": host}).status_code == 200
    assert client.get("/nothing/", headers={"Host": host}).status_code == 404


def test_too_many_requests(state: ServedState) -> None:
    now = [0.0]
    rules = GuardRules(rate=2, clock=lambda: now[0])
    client = TestClient(document_app(state.reader(), rules), base_url=LOCAL)
    statuses = [client.get("/health").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    now[0] = 1.0
    assert client.get("/health").status_code == 200


def test_a_stranger_takes_no_requests_of_others(state: ServedState) -> None:
    rules = GuardRules(token=TOKEN, rate=2, clock=lambda: 0.0)
    client = TestClient(document_app(state.reader(), rules), base_url=LOCAL)
    assert [client.get("/health").status_code for _ in range(5)] == [401] * 5
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    assert client.get("/health").status_code == 200


def test_too_many_requests_at_once(state: ServedState) -> None:
    client = TestClient(document_app(state.reader(), GuardRules(at_once=0)), base_url=LOCAL)
    assert problem(client.get("/health"))[0] == 503


def test_an_unexpected_error_shows_no_value(state: ServedState, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("ada's secret")

    monkeypatch.setattr(look_ups, "encoded_document", fails)
    client = TestClient(document_app(state.reader(), GuardRules()), base_url=LOCAL)
    assert problem(client.get("/documents/person/ada")) == (500, "unexpected ZeroDivisionError: please report it")
