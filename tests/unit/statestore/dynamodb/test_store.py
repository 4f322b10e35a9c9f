"""The DynamoDB doorway before an API that fails as no emulator does: throttled, late, unprocessed, unreachable."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import Any

import pytest

from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.store import Absent, Query, Refused, Terminal, Throttled, Transient, Write

USER = Key("TABLE#user", "octocat")
OTHER = Key("TABLE#user", "hubot")
WRITE = Write(key=USER, set={"name": "Mona"}, when=Absent())
HASTY = Patience(attempts=2, connect_s=0.5, read_s=0.3, backoff_s=0.001, throttled_s=0.001, backoff_cap_s=0.01)


class Api(ThreadingHTTPServer):
    """Gives the prepared answers in turn and keeps what was asked; an answer of None comes too late."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, dict[str, Any]] | None] = []
        self.asked: list[dict[str, Any]] = []
        self.cut: int | None = None

    def fail(self, code: str, status: int = 400, **more: Any) -> None:
        self.answers.append((status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no", **more}))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up waiting is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answer = self.server.answers.pop(0)
        if answer is None:
            time.sleep(0.5)
            self.close_connection = True
            return
        body = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])
        self.close_connection = self.server.cut is not None

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=["lean", "boto3"])
def store(request: pytest.FixtureRequest, api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoStore]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    endpoint = f"http://127.0.0.1:{api.server_port}"
    made = DynamoStore(
        table="state",
        endpoint_url=endpoint,
        region="eu-west-1",
        client=request.param,
        patience=HASTY,
        random=Random(1),
    )
    yield made
    made.close()


def wire(key: Key) -> dict[str, Any]:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def item(key: Key) -> dict[str, str]:
    return {"PK": key.pk, "SK": key.sk}


def test_a_throttled_write_is_tried_again_and_each_try_is_counted(api: Api, store: DynamoStore) -> None:
    api.fail("ProvisionedThroughputExceededException")
    api.answers.append((200, {}))

    store.write(WRITE)
    assert store.requests == Counter(UpdateItem=2)


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ThrottlingException"])
def test_a_write_that_stays_throttled_says_so(api: Api, store: DynamoStore, code: str) -> None:
    api.fail(code)
    api.fail(code)

    with pytest.raises(
        Throttled, match=r"table state: writing TABLE#user / octocat: throttled .*: wait, or write less"
    ):
        store.write(WRITE)


def test_a_failure_of_dynamodb_is_transient(api: Api, store: DynamoStore) -> None:
    api.fail("InternalServerError", 500)
    api.fail("InternalServerError", 500)

    with pytest.raises(Transient, match=r"DynamoDB failed .InternalServerError: no.: try again"):
        store.write(WRITE)


def test_a_time_out_that_hides_an_applied_write_ends_in_a_refusal_with_that_write(api: Api, store: DynamoStore) -> None:
    written = {**wire(USER), "name": {"S": "Mona"}}
    api.answers.append(None)
    api.fail("ConditionalCheckFailedException", Item=written)

    assert store.write(WRITE) == Refused({**item(USER), "name": "Mona"})


def test_an_api_that_does_not_answer_is_transient(api: Api, store: DynamoStore) -> None:
    api.answers += [None, None]

    with pytest.raises(Transient, match=r"writing TABLE#user / octocat: Read timeout .* is the endpoint right"):
        store.write(WRITE)


def test_an_answer_that_is_cut_short_is_transient_and_not_taken_for_an_empty_one(api: Api, store: DynamoStore) -> None:
    api.cut = 5
    api.answers += [(200, {"Attributes": wire(USER)})] * 2

    with pytest.raises(Transient, match=r"writing TABLE#user / octocat: 5 read, but total bytes expected is \d+"):
        store.write(WRITE)


def test_an_api_that_is_not_there_is_transient(store: DynamoStore) -> None:
    lost = DynamoStore(table="state", endpoint_url="http://127.0.0.1:1", region="eu-west-1", patience=HASTY)

    with pytest.raises(Transient, match=r"querying GSI_1 for 'a': Could not connect .* is the endpoint right"):
        lost.query(Query(slot="GSI_1", value="a"))


def test_without_keys_an_error_shows_no_value_of_a_row(credentials: None) -> None:
    lost = DynamoStore(
        table="state", endpoint_url="http://127.0.0.1:1", region="eu-west-1", patience=HASTY, show_keys=False
    )
    edges = "EDGE#star#username=octocat"
    for send, where in (
        (lambda: lost.write(WRITE), "writing TABLE#user"),
        (lambda: lost.get([USER]), "reading TABLE#user"),
        (lambda: lost.query(Query(slot="GSI_1", value="octocat")), "querying GSI_1"),
        (lambda: lost.partition(edges), "reading partition EDGE#star#username"),
        (lambda: lost.get([Key(edges, "octocat")]), "reading EDGE#star#username"),
    ):
        with pytest.raises(Transient, match=f"^table state: {where}: Could not connect") as error:
            send()
        assert "octocat" not in str(error.value)


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        ("AccessDeniedException", "allow this request on the table and its indexes"),
        ("UnrecognizedClientException", "give valid AWS credentials"),
        ("ExpiredTokenException", "renew the AWS credentials"),
        ("ValidationException", "compare the table with its definition"),
        ("SomethingNewException", "trying again does not help"),
    ],
)
def test_an_error_that_no_retry_helps_is_terminal_and_says_what_to_do(
    api: Api, store: DynamoStore, code: str, cure: str
) -> None:
    api.fail(code)

    with pytest.raises(Terminal, match=f"table state: reading TABLE#user / octocat: {code}: no: .*{cure}"):
        store.get([USER])


def test_unprocessed_keys_are_asked_for_again_and_only_those(api: Api, store: DynamoStore) -> None:
    left = {"state": {"Keys": [wire(OTHER)], "ConsistentRead": True}}
    api.answers.append((200, {"Responses": {"state": [wire(USER)]}, "UnprocessedKeys": left}))
    api.answers.append((200, {"Responses": {"state": []}, "UnprocessedKeys": left}))
    api.answers.append((200, {"Responses": {"state": [wire(OTHER)]}, "UnprocessedKeys": {}}))

    assert store.get([USER, OTHER]) == {USER: item(USER), OTHER: item(OTHER)}
    assert [asked["RequestItems"] for asked in api.asked[1:]] == [left, left]
    assert store.requests == Counter(BatchGetItem=3)


def test_keys_that_stay_unprocessed_are_transient(api: Api, store: DynamoStore) -> None:
    left = {"state": {"Keys": [wire(OTHER)], "ConsistentRead": True}}
    api.answers += [(200, {"Responses": {}, "UnprocessedKeys": left})] * 2

    with pytest.raises(Transient, match=r"table state: reading TABLE#user / hubot: unprocessed 2 times: .* throttled"):
        store.get([USER, OTHER])


def test_a_query_goes_on_after_an_empty_page(api: Api, store: DynamoStore) -> None:
    last = {**wire(USER), "GSI_1": {"S": "a"}}
    api.answers.append((200, {"Items": [wire(USER)], "LastEvaluatedKey": last}))
    api.answers.append((200, {"Items": [], "LastEvaluatedKey": last}))
    api.answers.append((200, {"Items": [wire(OTHER)]}))

    assert store.query(Query(slot="GSI_1", value="a")) == [item(USER), item(OTHER)]
    assert [asked.get("ExclusiveStartKey") for asked in api.asked] == [None, last, last]
    assert store.requests == Counter(Query=3)


def test_a_store_without_a_region_is_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)

    with pytest.raises(Terminal, match=r"table state: connecting: You must specify a region\.: set AWS_REGION"):
        DynamoStore(table="state")


def test_a_name_that_no_table_can_have_is_terminal() -> None:
    with pytest.raises(Terminal, match="'a b' cannot name a table"):
        DynamoStore(table="a b")
