"""`statestore doctor` over a real Postgres and moto, each with one fault."""

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen

import boto3
import pytest
from sqlalchemy import make_url, text

from statestore.keys import row_key
from statestore.table import create_table
from tests.support.migrated_schemas import drop_schema

Scene = Any  # conftest's
SLOW = pytest.mark.slow
"""For all but a sample: each test needs a second or more."""


def test_the_table_that_the_code_makes_and_a_new_registry_have_no_failure(scene: Scene, capsys: Any) -> None:
    scene.make_table()
    status, findings = scene.examine(capsys)
    assert status == 1
    assert [one["check"] for one in findings if one["state"] == "failure"] == ["kafka"], "nothing listens there"
    states = {one["check"]: one["state"] for one in findings}
    names = ("registry login", "registry", "rights", "definitions", "table", "keys", "indexes", "slots", "ttl", "items")
    assert {name: states[name] for name in (*names, "permissions", "identity", "dynamodb clock", "postgres clock")} == (
        dict.fromkeys((*names, "permissions", "identity", "dynamodb clock", "postgres clock"), "ok")
    )


@SLOW
def test_no_table_yet(scene: Scene, capsys: Any) -> None:
    scene.expect(capsys, "table", "ok", "the first start of the job creates it", "")


@SLOW
def test_a_registry_that_was_dropped_under_its_table(scene: Scene, capsys: Any) -> None:
    foreign_table(scene)
    drop_schema(scene.flags["registry"], scene.flags["registry-schema"])
    scene.expect(capsys, "registry", "failure", "belongs to a registry, and there is none", "rebuild-registry")


def narrow_index(scene: Scene) -> None:
    request = create_table(scene.name, 5)
    request["GlobalSecondaryIndexes"][2]["Projection"] = {"ProjectionType": "KEYS_ONLY"}
    scene.api().create_table(**request)


def swapped_index(scene: Scene) -> None:
    request = create_table(scene.name, 5)
    request["GlobalSecondaryIndexes"][0]["KeySchema"][1]["AttributeName"] = "SK"
    scene.api().create_table(**request)


def other_keys(scene: Scene) -> None:
    key = [{"AttributeName": "id", "KeyType": "HASH"}]
    kinds = [{"AttributeName": "id", "AttributeType": "S"}]
    scene.api().create_table(
        TableName=scene.name, BillingMode="PAY_PER_REQUEST", KeySchema=key, AttributeDefinitions=kinds
    )


def no_ttl(scene: Scene) -> None:
    scene.api().create_table(**create_table(scene.name, 5))


def other_ttl(scene: Scene) -> None:
    no_ttl(scene)
    ttl = {"Enabled": True, "AttributeName": "until"}
    scene.api().update_time_to_live(TableName=scene.name, TimeToLiveSpecification=ttl)


def few_slots(scene: Scene) -> None:
    scene.make_table(slots=2)


def newer_row(scene: Scene) -> None:
    scene.make_table()
    key = row_key("user", 1, "1")
    scene.api().put_item(TableName=scene.name, Item={"PK": {"S": key.pk}, "SK": {"S": key.sk}, "_f": {"N": "99"}})


def foreign_table(scene: Scene) -> None:
    scene.make_table()
    item = {"PK": {"S": "IDENTITY"}, "SK": {"S": "table"}, "id": {"S": "another"}, "_f": {"N": "1"}}
    scene.api().put_item(TableName=scene.name, Item=item)


@SLOW
@pytest.mark.parametrize(
    ("breaks", "check", "state", "words", "cure"),
    [
        (narrow_index, "keys", "failure", "index GSI_3 is not", "create it again"),
        (swapped_index, "keys", "failure", "index GSI_1 is not", "create it again"),
        (other_keys, "keys", "failure", "its key is not PK", "another table name"),
        (no_ttl, "ttl", "warning", "off", "start of the job"),
        (other_ttl, "ttl", "failure", "by until", "turn it off"),
        (few_slots, "slots", "failure", "2 slots, not 5", "statestore add-slots 5"),
        (few_slots, "protection", "warning", "no deletion protection", "turn deletion protection on"),
        (newer_row, "items", "failure", "format 99", "install the release"),
        (foreign_table, "identity", "failure", "is foreign", "--table"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_table_with_a_fault(
    scene: Scene, capsys: Any, breaks: Callable[[Scene], None], check: str, state: str, words: str, cure: str
) -> None:
    breaks(scene)
    scene.expect(capsys, check, state, words, cure)


@SLOW
@pytest.mark.parametrize(
    ("flag", "value", "check", "words", "cure"),
    [
        ("endpoint", "http://127.0.0.1:1", "dynamodb", "127.0.0.1:1 refuses connections", "start the server"),
        ("endpoint", "http://nowhere.invalid", "dynamodb", "nowhere.invalid: DNS gives no address", "--endpoint"),
        ("endpoint", "nonsense", "dynamodb", "Invalid endpoint", "AWS_REGION"),
        ("region", "", "dynamodb", "specify a region", "AWS_REGION"),
        ("registry", "postgresql://127.0.0.1:1/x", "postgres", "127.0.0.1:1 refuses connections", "--registry"),
        ("registry", "postgresql://nowhere.invalid/x", "postgres", "nowhere.invalid:5432: DNS", "--registry"),
        ("registry", "mysql://me:canary-2206@h/x", "postgres", "not in mysql", "--registry"),
        ("bootstrap-servers", "nowhere.invalid:9092", "kafka", "nowhere.invalid:9092: DNS", "--bootstrap-servers"),
    ],
)
def test_an_address_without_a_part(
    scene: Scene, capsys: Any, monkeypatch: pytest.MonkeyPatch, flag: str, value: str, check: str, words: str, cure: str
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    scene.flags[flag] = value
    scene.expect(capsys, check, "failure", words, cure)


@SLOW
def test_a_port_without_tls(scene: Scene, capsys: Any) -> None:
    scene.flags["endpoint"] = scene.flags["endpoint"].replace("http:", "https:")
    scene.expect(capsys, "dynamodb", "failure", "TLS fails", "does it speak TLS")


@SLOW
def test_a_server_that_never_answers(scene: Scene, capsys: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        scene.flags["endpoint"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        scene.expect(capsys, "dynamodb", "failure", "no answer within 3 s", "security group")


@SLOW
def test_a_wrong_user_of_postgres(scene: Scene, capsys: Any, postgres_url: str) -> None:
    wrong = make_url(str(postgres_url)).set(username="nobody", password="canary-2206")
    scene.flags["registry"] = wrong.render_as_string(hide_password=False)
    scene.expect(capsys, "registry login", "failure", "nobody", "the role in Postgres")


@SLOW
def test_a_user_with_the_rights_of_a_reader(scene: Scene, capsys: Any, postgres_url: str, schema: str) -> None:
    scene.registry.create_roles()
    try:
        separator = "&" if "?" in postgres_url else "?"
        scene.flags["registry"] = f"{postgres_url}{separator}options=-crole%3D{schema}_reader"
        scene.expect(capsys, "rights", "failure", f"{schema}_reader lacks UPDATE on", f"GRANT {schema}_job")
        scene.flags["registry"] = f"{postgres_url}{separator}options=-crole%3D{schema}_job"
        scene.expect(capsys, "rights", "ok", f"{schema}_job has all rights", "")
    finally:
        with scene.psql.begin() as connection:
            for role in ("reader", "job", "operator"):
                connection.execute(text(f"DROP OWNED BY {schema}_{role}; DROP ROLE {schema}_{role}"))


def test_a_registry_of_a_newer_release(scene: Scene, capsys: Any) -> None:
    with scene.psql.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0099_later'"))
    scene.expect(capsys, "registry", "failure", "0099_later", "install that release")


@SLOW
def test_a_schema_without_a_registry(scene: Scene, capsys: Any) -> None:
    scene.flags["registry-schema"] = "nothing_here"
    scene.expect(capsys, "registry", "warning", "no registry in the schema nothing_here", "statestore apply")


@SLOW
def test_a_job_that_died(scene: Scene, capsys: Any) -> None:
    scene.registry.take_lease(scene.name, "host:7", 1, take_over=False, expires_after=0)
    scene.expect(capsys, "lease", "warning", "host:7 ran the job", "start the job again")


@pytest.fixture
def role(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes moto check policies, and the test a user who may do these actions of DynamoDB only."""
    iam = boto3.client("iam", endpoint_url=scene.flags["endpoint"], region_name="us-east-1")

    def allow(*actions: str) -> None:
        iam.create_user(UserName=scene.name)
        statement = {"Effect": "Allow", "Action": [f"dynamodb:{action}" for action in actions], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=scene.name, PolicyName="own", PolicyDocument=document)
        key = iam.create_access_key(UserName=scene.name)["AccessKey"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        check_policies(scene, "0")

    yield allow
    check_policies(scene, "inf")


def check_policies(scene: Scene, after: str) -> None:
    """moto checks the policies of all requests after this many."""
    url = f"{scene.flags['endpoint']}/moto-api/reset-auth"
    urlopen(Request(url, data=after.encode(), headers={"Content-Type": "text/plain"}), timeout=300).close()


DESCRIBES = ("DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups")


@SLOW
@pytest.mark.parametrize(
    ("allowed", "check", "words", "cure"),
    [
        (
            (*DESCRIBES, "BatchGetItem", "Query", "DeleteItem"),
            "permissions",
            "UpdateItem is not",
            "dynamodb:UpdateItem",
        ),
        (
            (*DESCRIBES, "UpdateItem", "DeleteItem", "Query"),
            "permissions",
            "BatchGetItem is not",
            "dynamodb:BatchGetItem",
        ),
        (
            (*DESCRIBES, "BatchGetItem", "UpdateItem", "DeleteItem"),
            "permissions",
            "Query of the indexes is not allowed, on GSI_1",
            "index/*",
        ),
        (("BatchGetItem",), "table", "DescribeTable", "the policy of the role"),
    ],
)
def test_a_role_without_a_permission(
    scene: Scene,
    role: Callable[..., None],
    capsys: Any,
    allowed: tuple[str, ...],
    check: str,
    words: str,
    cure: str,
) -> None:
    scene.make_table()
    role(*allowed)
    scene.expect(capsys, check, "failure", words, cure)


@SLOW
def test_a_wrong_registry_of_a_table_in_use(scene: Scene, capsys: Any) -> None:
    """The registry's job has stored rows in a table that is gone."""
    bound = scene.registry.binding()
    scene.registry.bind(type(bound)(identity=bound.identity, job=scene.name, table=scene.name))
    scene.expect(capsys, "identity", "failure", "there is no such table", "--table")


@SLOW
def test_the_verb_leaves_nothing_and_a_running_job_keeps_its_lease(scene: Scene, capsys: Any) -> None:
    scene.make_table()
    lease = scene.registry.take_lease(scene.name, "host:7", 1, take_over=False, expires_after=600)
    before = scene.registry.history(), scene.registry.jobs(), scene.registry.binding()
    scene.expect(capsys, "lease", "ok", "host:7 runs the job", "")
    assert scene.registry.holds(lease)
    assert scene.api().scan(TableName=scene.name)["Items"] == []
    assert (scene.registry.history(), scene.registry.jobs(), scene.registry.binding()) == before
