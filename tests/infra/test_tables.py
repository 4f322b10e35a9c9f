"""The modules `state` and `access`: each kind of table, compared with the table of the code, and the text of the policies."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from statestore import table as definition
from statestore.dynamodb.store import DynamoStore
from tests.recorder.calls import LIST, OTHERS

COMPARED = ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "BillingModeSummary", "SSEDescription")
QUIET = ("-no-color", "-input=false")
FORGOTTEN = {"module.full.aws_dynamodb_table.state"}
"""moto forgets the maximum of a table on demand."""
SCALED = [f"table/provisioned{part}" for part in ("", "/index/GSI_1", "/index/GSI_2")]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tables(terraform: Any) -> Iterator[Any]:
    """Terraform, after it made the tables and the policies of `moto/tables`."""
    made = terraform("tables")
    made.run("apply", *QUIET, "-auto-approve")
    yield made
    made.run("destroy", *QUIET, "-auto-approve")


def test_terraform_and_the_code_make_the_same_table(tables: Any, aws: str, client: Any, credentials: None) -> None:
    store = DynamoStore(table="code", endpoint_url=aws, region="eu-west-1")
    store.create(3)
    store.close()
    dynamodb = client("dynamodb")
    assert _described(dynamodb, "plain") == _described(dynamodb, "code")
    ttl = {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}
    assert _ttl(dynamodb, "plain") == _ttl(dynamodb, "code") == ttl


def test_a_table_may_have_a_key_recovery_and_other_capacity(tables: Any, client: Any) -> None:
    dynamodb = client("dynamodb")
    full, provisioned = (dynamodb.describe_table(TableName=name)["Table"] for name in ("full", "provisioned"))
    assert definition.misfits(full, definition.MAX_SLOTS) == definition.misfits(provisioned, 2) == []
    assert full["SSEDescription"]["SSEType"] == "KMS"
    assert _recovers(dynamodb, "full") == "ENABLED"
    assert provisioned["BillingModeSummary"]["BillingMode"] == "PROVISIONED"


def test_a_second_plan_changes_nothing(tables: Any) -> None:
    assert _changes(tables).keys() == FORGOTTEN


def test_the_capacity_of_a_table_and_of_its_indexes_follows_the_load(tables: Any, client: Any) -> None:
    targets = client("application-autoscaling").describe_scalable_targets(ServiceNamespace="dynamodb")[
        "ScalableTargets"
    ]
    ranges = {(one["ResourceId"], one["ScalableDimension"].rpartition(":")[2]): one for one in targets}
    assert sorted({resource for resource, _ in ranges}) == SCALED
    bounds = {unit: (one["MinCapacity"], one["MaxCapacity"]) for (_, unit), one in ranges.items()}
    assert bounds == {"ReadCapacityUnits": (5, 50), "WriteCapacityUnits": (5, 20)}


def test_terraform_leaves_an_index_that_an_operator_added(tables: Any, client: Any) -> None:
    dynamodb = client("dynamodb")
    known = dynamodb.describe_table(TableName="plain")["Table"]["AttributeDefinitions"]
    request = definition.add_index("plain", "GSI_4")
    more = [one for one in request["AttributeDefinitions"] if one not in known]
    dynamodb.update_table(**{**request, "AttributeDefinitions": known + more})  # moto forgets those that are not named
    assert _changes(tables).keys() == FORGOTTEN
    assert definition.slots_of(dynamodb.describe_table(TableName="plain")["Table"]) == 4


def test_the_policies_have_the_actions_of_the_list_on_the_table_and_its_indexes(tables: Any) -> None:
    policies = {role: json.loads(text) for role, text in json.loads(tables.run("output", "-json", "policies")).items()}
    list_ = json.loads(LIST.read_text())
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/plain"
    for role, policy in policies.items():
        made = [action for part in ("table_maker", "loader") for action in list_[part]["table"] if role == "job"]
        files = {"DeleteObject", "GetObject", "PutObject"} if role == "job" else set()  # the module got `load_files`
        assert _actions(policy, "s3", "arn:aws:s3:::bucket/loads/*") == files
        assert _actions(policy, "dynamodb", arn) == {*list_[role]["table"], *made}
        assert _actions(policy, "dynamodb", f"{arn}/index/*") == set(list_[role]["index"])
        limited = [s["Condition"]["ForAllValues:StringEquals"] for s in policy["Statement"] if _in_partition(s)]
        assert limited == [{"dynamodb:LeadingKeys": [name]} for name in list_[role]["partitions"]]
        secret = f"arn:aws:secretsmanager:eu-west-1:123456789012:secret:{role}"
        assert {f"secretsmanager:{one}" for one in _actions(policy, "secretsmanager", secret)} == OTHERS
        wide = [one["Action"] for one in policy["Statement"] if "*" in one["Resource"]]
        schemas = [] if role == "reader" else ["glue:GetSchemaVersion"]  # the module got `glue_schema_registry`
        assert [action for actions in wide for action in actions if not action.startswith("ec2:")] == schemas


def _changes(tables: Any) -> dict[str, Any]:
    """What a plan would change: the address of each resource, and its attributes after the change."""
    tables.run("plan", *QUIET, "-out=plan")
    plan = json.loads(tables.run("show", "-json", "plan"))
    changes = [(one["address"], one["change"]) for one in plan["resource_changes"]]
    return {name: change["after"] for name, change in changes if change["actions"] != ["no-op"]}


def _actions(policy: Any, service: str, resource: str) -> set[str]:
    """The actions of a service that a policy allows on a resource, without conditions."""
    statements = [one for one in policy["Statement"] if resource in one["Resource"] and "Condition" not in one]
    actions = {action for one in statements for action in one["Action"]}
    return {action.partition(":")[2] for action in actions if action.startswith(f"{service}:")}


def _in_partition(statement: Any) -> bool:
    return "ForAllValues:StringEquals" in statement.get("Condition", {})


def _described(dynamodb: Any, name: str) -> dict[str, Any]:
    """What DescribeTable says of a table, without names, times and sizes."""
    table = dynamodb.describe_table(TableName=name)["Table"]
    found = {field: table.get(field) for field in COMPARED}
    for field in ("AttributeDefinitions", "GlobalSecondaryIndexes"):
        found[field] = sorted(found[field], key=str)
    for index in found["GlobalSecondaryIndexes"]:
        index.pop("IndexArn", None)
        index["Projection"][
            "NonKeyAttributes"
        ].sort()  # a set: a release of Terraform's provider sends it in its own order
    return found


def _ttl(dynamodb: Any, name: str) -> Any:
    return dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]


def _recovers(dynamodb: Any, name: str) -> str:
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    return str(backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"])
