"""No log, no event log, no checkpoint, no argument list and no table of the registry shows a secret or a value of a row.

Every secret and every value of a row has a mark. A job over a broker with TLS and SCRAM runs three times: DynamoDB denies its
writes, a signal kills the job, and then the job ends. There are dead letters of records, and of documents that are too large.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from processor.environment.embedded import up
from tests.faulty.proxy import Answer, Relay, Request, proxy
from tests.secured.broker import CANARY, PASSWORD, VARIABLE, SecuredBroker, secured_broker

pytestmark = (
    pytest.mark.slow
)  # three runs of Spark with all its logs, while the test reads the arguments of all processes
ROW, POSTGRES, AWS, TOKEN, MASK = "rowcanary5b2e", "pgcanary9d4f", "awscanary1a7c", "tokencanary66e0", "maskcanary82d1"
MARKS = (CANARY, ROW, POSTGRES, AWS, TOKEN, MASK)
SMALL_TOPIC = "canary.large"
DENIED = Answer(status=400, body={"__type": "x#AccessDeniedException", "message": "not authorized"})


@dataclass(kw_only=True)
class Fate:
    """A layer before DynamoDB that denies writes of rows, or kills the job at its first message."""

    denies: bool = False
    victim: "subprocess.Popen[bytes] | None" = None
    killed: bool = False

    def __call__(self, request: Request, relay: Relay) -> Answer:
        key = request.body.get("Key", {}).get("PK", {}).get("S", "")
        if self.denies and request.operation == "UpdateItem" and key.startswith("TABLE#"):
            return DENIED
        if self.victim and not self.killed and key.startswith("LEDGER#"):
            self.killed = True
            os.killpg(self.victim.pid, signal.SIGKILL)
        return relay(request)


@dataclass(kw_only=True)
class Runs:
    """The folder with all that the runs left, the arguments of all processes meanwhile, and the texts of their lines."""

    folder: Path
    registry: str = ""
    arguments: set[str] = field(default_factory=set)
    lines: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("kafka")) as started:
        new = NewTopic(SMALL_TOPIC, num_partitions=1, config={"max.message.bytes": "600", "cleanup.policy": "compact"})
        admin = AdminClient({"bootstrap.servers": started.open})
        admin.create_topics([new])[SMALL_TOPIC].result(300)
        yield started


@pytest.fixture(scope="module")
def runs(local: Path, broker: SecuredBroker, statestore: list[str], tmp_path_factory: pytest.TempPathFactory) -> Runs:
    given, made = tmp_path_factory.mktemp("given"), Runs(folder=tmp_path_factory.mktemp("left"))
    addresses = up(local)
    _make_user(str(addresses.registry_url))
    _write_definitions(given)
    shown = "spark.log.level INFO\nspark.eventLog.enabled true\nspark.eventLog.compress false\n"
    (given / "spark-defaults.conf").write_text(f"{shown}spark.eventLog.dir file://{made.folder}\n")
    secrets = {
        VARIABLE: PASSWORD,
        "REGISTRY_PASSWORD": POSTGRES,
        "AWS_SECRET_ACCESS_KEY": AWS,
        "AWS_SESSION_TOKEN": TOKEN,
        "MASK": MASK,
    }
    environment = {**os.environ, **secrets, "AWS_ACCESS_KEY_ID": "canaries", "SPARK_CONF_DIR": str(given)}
    environment |= {"STATESTORE_TEST": "canaries"}
    fate = Fate()
    with proxy(addresses.endpoints["dynamodb"], fate) as endpoint:
        settings = _write_settings(given, broker, str(addresses.registry_url), endpoint, made.folder)

        def run(name: str, *words: str) -> None:
            log = made.folder / f"{name}.txt"
            command = [*statestore, "run", "--debug", "--settings", str(settings), *words]
            with log.open("wb") as lines:
                job = subprocess.Popen(
                    command, env=environment, stdout=lines, stderr=subprocess.STDOUT, start_new_session=True
                )
                fate.victim = job if name == "killed" else None
                while (alive := set(_arguments())) or job.poll() is None:  # the JVM of a killed job ends after it
                    made.arguments |= alive
                    sleep(0.1)
            made.lines[name], made.statuses[name] = log.read_text(), job.returncode

        fate.denies = True
        run("denied", "--definitions", str(given / "definitions"), "--from", str(given / "topics.jsonl"))
        fate.denies = False
        run("killed")
        run("ended", "--once", "--log", "json")
    made.registry = _stored(str(addresses.registry_url))
    return made


def test_the_runs_met_what_they_should_meet(runs: Runs) -> None:
    assert runs.statuses == {"denied": 1, "killed": -signal.SIGKILL, "ended": 0}, runs.lines
    assert "AccessDeniedException: not authorized: allow this request" in runs.lines["denied"]
    assert "writing TABLE#person: " in runs.lines["denied"]
    assert "column 'age': expected int, found text" in runs.lines["ended"] + runs.lines["killed"]
    assert "the document of product large takes " in runs.lines["ended"]
    assert not any("(SettingError)" in text for text in runs.lines.values())  # the executors had the secret of `masked`
    assert "canary.people" in runs.registry
    assert any("local-" in path.name for path in runs.folder.iterdir())
    assert any("org.apache.spark.deploy.SparkSubmit" in one for one in runs.arguments)


@pytest.mark.parametrize("mark", MARKS)
def test_nothing_shows_a_secret_or_a_row(runs: Runs, broker: SecuredBroker, mark: str) -> None:
    left = [path for path in runs.folder.rglob("*") if path.is_file()]
    assert len(left) > 10
    assert [path.name for path in left if mark.encode() in path.read_bytes()] == []
    assert [one for one in runs.arguments if mark in one] == []
    assert mark not in runs.registry


def _make_user(url: str) -> None:
    """A user of the registry with a marked password."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"create role canary login password '{POSTGRES}'".encode())
        connection.execute("grant create on database postgres to canary")


def _write_definitions(given: Path) -> None:
    (given / "definitions").mkdir()
    columns = {"email": "string", "name": "string", "age": "int"}
    (given / "definitions" / "entities.yaml").write_text(
        json.dumps({"person": {"topic": "canary.people", "key": ["email"], "columns": columns}})
    )
    for name in ("profile", "large"):
        product = {"product": name, "topic": f"canary.{name}", "root": "person"}
        (given / "definitions" / f"{name}.yaml").write_text(json.dumps(product))
    masked = {"product": "masked", "topic": "canary.masked", "root": "person", "value": "hmac_sha256(name, :mask)"}
    (given / "definitions" / "masked.yaml").write_text(json.dumps(masked))
    people: list[dict[str, Any]] = [
        {"email": f"{ROW}-{n}@example.org", "name": f"{ROW} " * 200, "age": n} for n in range(20)
    ]
    records: list[tuple[Any, Any]] = [({"email": person["email"]}, person) for person in people]
    records += [
        ({"email": f"{ROW}-20"}, {"email": f"{ROW}-other", "name": ROW, "age": 1}),
        ({"email": f"{ROW}-21"}, f"{ROW} is no JSON"),
        ({"email": f"{ROW}-22"}, {"email": f"{ROW}-22", "name": ROW, "age": f"{ROW}k"}),
    ]
    lines = [{"topic": "canary.people", "key": key, "value": value} for key, value in records]
    (given / "topics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _write_settings(given: Path, broker: SecuredBroker, registry: str, endpoint: str, left: Path) -> Path:
    own = {
        "job": "canaries",
        "table": "canaries",
        "registry": f"postgresql://canary@127.0.0.1:{urlsplit(registry).port}/postgres",
        "registry_password": "env:REGISTRY_PASSWORD",
        "registry_schema": "canaries",
        "endpoint": endpoint,
        "region": "us-east-1",
        "bootstrap_servers": broker.addresses["SCRAM"],
        "checkpoint": str(left / "checkpoint"),
        "dead_letter_topic": "canary.rejects",
        "slots": "2",
        "lease_seconds": "5",
        "wait_seconds": "0.2",
        "settle_seconds": "0.2",
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in own.items()]
    kafka = broker.table("SCRAM").items()
    lines += ["[kafka]", *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in kafka)]
    lines += ["[secrets]", 'mask = "env:MASK"']
    file = given / "settings.toml"
    file.write_text("\n".join(lines))
    return file


def _stored(url: str) -> str:
    """All that the registry holds, its reports of jobs among it."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = 'canaries'").fetchall()
        return "\n".join(
            str(connection.execute(f'select * from canaries."{table}"'.encode()).fetchall()) for (table,) in tables
        )


def _arguments() -> Iterator[str]:
    """The arguments of every process of the runs that is alive now."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or is another user's
            if b"STATESTORE_TEST=canaries" in (folder / "environ").read_bytes():
                yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
