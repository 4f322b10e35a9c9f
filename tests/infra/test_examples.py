"""The Terraform examples: what they make in AWS, for which moto serves, and that nothing of it stays."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

INFRA = Path(__file__).parents[2] / "infra"
NO_CHANGE, CHANGES = 0, 2
"""The exit status of `terraform plan -detailed-exitcode`."""
QUIET = ("-no-color", "-input=false")


def test_the_files_have_terraforms_form(terraform_program: str) -> None:
    done = subprocess.run(
        [terraform_program, "fmt", "-check", "-recursive", str(INFRA)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["glue", "emr_serverless"])
def test_an_example_is_made_once_and_goes_without_a_trace(platform: str, terraform: Any, client: Any) -> None:
    example = terraform(f"examples/{platform}")
    name = f"try-{platform.partition('_')[0]}"
    values = _surroundings(client, name, platform)
    example.run("validate", "-no-color")
    example.run("plan", *QUIET, "-detailed-exitcode", *values, expect=[CHANGES])
    example.run("apply", *QUIET, "-auto-approve", *values)
    example.run("plan", *QUIET, "-detailed-exitcode", *values, expect=[NO_CHANGE])

    outputs = {name: one["value"] for name, one in json.loads(example.run("output", "-json")).items()}
    assert client("dynamodb").list_tables()["TableNames"] == [outputs["table"]] == [name]
    _check_job(platform, client, name, outputs)
    found = client("s3").get_object(Bucket=name, Key=f"artifacts/{name}/settings.toml")
    settings = tomllib.loads(found["Body"].read().decode())
    assert (settings["job"], settings["table"]) == (name, name)
    assert settings["registry"].startswith("postgresql://statestore@")
    assert settings["registry_password"].startswith("secret:arn:aws:secretsmanager:")

    if platform == "glue":
        example.run("state", "rm", "aws_glue_connection.network")  # moto cannot delete it
    example.run("destroy", *QUIET, "-auto-approve", *values)
    assert client("dynamodb").list_tables()["TableNames"] == []
    assert client("iam").list_roles()["Roles"] == []
    assert client("s3").list_objects_v2(Bucket=name)["KeyCount"] == 0


def _surroundings(client: Any, name: str, platform: str) -> list[str]:
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
    if platform == "emr_serverless":
        secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:registry"
        values["registry"] = {"host": "registry.example.org", "secret_arn": secret}
    return [f"-var={key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]


def _check_job(platform: str, client: Any, name: str, outputs: dict[str, Any]) -> None:
    """The files that the job gets are those of `make package`, and its settings."""
    if platform == "glue":
        job = client("glue").get_job(JobName=name)["Job"]
        assert job["Command"]["ScriptLocation"] == f"s3://{name}/artifacts/glue_job.py"
        archive = job["DefaultArguments"]["--python-virtual-env"]
        assert archive == f"s3://{name}/artifacts/statestore-0.1.0-py3.11.tar.gz"
    else:
        request = json.loads(outputs["start_job_run"])
        submit = request["jobDriver"]["sparkSubmit"]
        assert submit["entryPoint"] == f"s3://{name}/artifacts/emr_job.py"
        archive = f"spark.archives=s3://{name}/artifacts/statestore-0.1.0-py3.11.tar.gz#environment"
        assert archive in submit["sparkSubmitParameters"]
        applications = client("emr-serverless").list_applications()["applications"]
        assert [one["id"] for one in applications] == [request["applicationId"]]
