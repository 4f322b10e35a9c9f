"""The Terraform examples: what they make in AWS, for which moto serves, and that nothing of it stays."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

INFRA = Path(__file__).parents[2] / "infra"
NO_CHANGE, FAILED, CHANGES = 0, 1, 2
"""The exit status of `terraform plan -detailed-exitcode`."""
QUIET = ("-no-color", "-input=false")


def test_the_files_have_terraforms_form(terraform_program: str) -> None:
    done = subprocess.run(
        [terraform_program, "fmt", "-check", "-recursive", str(INFRA)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_the_example_of_glue_is_made_once_and_goes_without_a_trace(terraform: Any, client: Any) -> None:
    example, name = terraform("examples/glue"), "try-glue"
    values = _surroundings(client, name)
    example.run("validate", "-no-color")
    example.run("plan", *QUIET, "-detailed-exitcode", *values, expect=[CHANGES])
    example.run("apply", *QUIET, "-auto-approve", *values)
    example.run("plan", *QUIET, "-detailed-exitcode", *values, expect=[NO_CHANGE])

    assert json.loads(example.run("output", "-json", "table")) == name
    assert name in client("dynamodb").list_tables()["TableNames"]  # those of other tests may be there, too
    job = client("glue").get_job(JobName=name)["Job"]
    assert job["Command"]["ScriptLocation"] == f"s3://{name}/artifacts/glue_job.py"
    archive = f"s3://{name}/artifacts/statestore-0.1.0-py3.11.tar.gz"
    assert job["DefaultArguments"]["--python-virtual-env"] == archive
    found = client("s3").get_object(Bucket=name, Key=f"artifacts/{name}/settings.toml")
    settings = tomllib.loads(found["Body"].read().decode())
    assert (settings["job"], settings["table"]) == (name, name)
    assert settings["registry"].startswith("postgresql://statestore@")
    assert settings["registry_password"].startswith("secret:arn:aws:secretsmanager:")

    _destroy(example, client, name, values)
    assert client("glue").get_connections()["ConnectionList"] == []


@pytest.mark.slow
def test_the_example_of_emr_serverless_is_made_once_and_goes_without_a_trace(terraform: Any, client: Any) -> None:
    example, name = terraform("examples/emr_serverless"), "try-emr"
    secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:registry"
    registry = json.dumps({"host": "registry.example.org", "secret_arn": secret})
    example.run("validate", "-no-color")
    values = [*_surroundings(client, name), f"-var=registry={registry}"]
    example.run("plan", *QUIET, "-detailed-exitcode", *values, expect=[CHANGES])
    example.run("apply", *QUIET, "-auto-approve", *values)
    example.run("plan", *QUIET, "-detailed-exitcode", *values, expect=[NO_CHANGE])

    applications = client("emr-serverless").list_applications()["applications"]
    assert [(one["name"], one["state"]) for one in applications] == [(name, "CREATED")]
    found = client("s3").get_object(Bucket=name, Key=f"artifacts/{name}/settings.toml")
    settings = tomllib.loads(found["Body"].read().decode())
    assert settings["registry"] == "postgresql://statestore@registry.example.org:5432/statestore?sslmode=require"
    assert settings["registry_password"] == f"secret:{secret}#password"

    spark_4 = [*values, "-var=release_label=emr-spark-8.0.0"]
    planned = example.run("plan", *QUIET, "-detailed-exitcode", *spark_4, expect=[CHANGES])
    assert "statestore-0.1.0-py3.13.tar.gz#environment" in planned
    assert "A release is emr-7.11.0 or newer" in example.run(
        "plan", *QUIET, *values, "-var=release_label=emr-spark-9.0.0", expect=[FAILED]
    )

    _destroy(example, client, name, values)
    assert client("emr-serverless").list_applications(states=["CREATED", "STARTED"])["applications"] == []


def _destroy(example: Any, client: Any, name: str, values: list[str]) -> None:
    """Destroys an example. Nothing of it stays."""
    example.run("destroy", *QUIET, "-auto-approve", *values)
    assert name not in client("dynamodb").list_tables()["TableNames"]
    assert client("iam").list_roles()["Roles"] == []
    assert client("s3").list_objects_v2(Bucket=name)["KeyCount"] == 0


def _surroundings(client: Any, name: str) -> list[str]:
    """Makes what exists before the example, and returns the example's variables."""
    vpc = client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        client("ec2").create_subnet(VpcId=vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=f"eu-west-1{zone}")
        for n, zone in enumerate("ab")
    ]
    group = client("ec2").create_security_group(GroupName=f"kafka-{name}", Description="Kafka", VpcId=vpc)["GroupId"]
    client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    values: dict[str, object] = {
        "name": name,
        "bucket": name,
        "jars": [f"s3://{name}/artifacts/spark-sql-kafka.jar"],
        "vpc_id": vpc,
        "subnet_ids": [subnet["Subnet"]["SubnetId"] for subnet in subnets],
        "alarm_email": "somebody@example.org",
        "deletion_protection": False,
        "kafka": {
            "cluster_arn": "arn:aws:kafka:eu-west-1:123456789012:cluster/events/11111111-2222",
            "bootstrap_servers": "b-1.example.org:9098",
            "security_group_id": group,
            "source_topics": ["user", "star"],
            "product_topics": ["profiles"],
        },
    }
    return [f"-var={key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
