"""A set-up on real parts, in which each test breaks one: moto, Postgres, and for slow tests a Kafka broker with ACLs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest
from sqlalchemy import Engine

from processor.cli.main import main
from processor.engine.plan.planning import requirements_of
from processor.environment.programs.program import LOOPBACK, free_port
from processor.environment.programs.servers import start_kafka
from processor.job.kafka.admin import Admin
from processor.language.definitions.load import load
from registry.repository import Registry
from statestore.dynamodb.store import DynamoStore
from tests.integration.job.profile_definitions import profile_definitions

NAMES = count()
CLOSED = f"{LOOPBACK}:1"
"""An address where nothing listens."""
USER, PASSWORD = "etl", "canary-2206"


@dataclass(kw_only=True)
class Scene:
    """A set-up of its own name. `flags`: of the verb, by the name of the setting."""

    name: str
    registry: Registry
    psql: Engine
    flags: dict[str, str] = field(default_factory=dict)
    settings: str = ""
    administered: str = ""
    """The broker's address for its administrator."""

    def api(self) -> Any:
        """boto3's client of the table."""
        return boto3.client("dynamodb", endpoint_url=self.flags["endpoint"], region_name=self.flags["region"])

    def make_table(self, slots: int = 5) -> None:
        store = DynamoStore(table=self.name, endpoint_url=self.flags["endpoint"], region=self.flags["region"])
        store.create(slots)
        store.close()

    def make_topics(self) -> None:
        """The topics of the definitions, as a careful operator makes them."""
        admin = Admin(self.flags["bootstrap-servers"], {})
        admin.ensure([self.topic(name) for name in ("user", "star", "profile")], partitions=2, compacted=True)
        admin.ensure([self.topic("rejects")], partitions=1, compacted=False)

    def topic(self, name: str) -> str:
        return f"{self.name}.{name}"

    def examine(self, capsys: Any) -> tuple[int, list[dict[str, str]]]:
        """The exit status of the verb, and its findings."""
        words = [word for name, value in self.flags.items() if name != "registry" for word in (f"--{name}", value)]
        words += ["--settings", self.settings] if self.settings else []
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STATESTORE_REGISTRY", self.flags["registry"])  # a flag may hold no password
            status = main(["doctor", "--json", *words])
        printed = capsys.readouterr()
        assert PASSWORD not in printed.out + printed.err
        return status, json.loads(printed.out)["findings"]

    def expect(self, capsys: Any, check: str, state: str, text: str, cure: str) -> None:
        """The finding of a check. Another finding of it may be ok."""
        status, findings = self.examine(capsys)
        found = [one for one in findings if one["check"] == check and one["state"] == state]
        assert [one for one in found if text in one["text"] and cure in one["cure"]], [
            one for one in findings if one["check"] == check or one["state"] == "failure"
        ]
        assert status == (1 if any(one["state"] == "failure" for one in findings) else 0)
        assert state != "failure" or status == 1


@pytest.fixture
def scene(
    moto: str, credentials: None, registry: Registry, psql: Engine, postgres_url: str, schema: str, tmp_path: Path
) -> Scene:
    """A set-up without a broker: definitions and an empty table."""
    name = f"doctor-{next(NAMES)}"
    registry.apply(requirements_of(load(profile_definitions(name))), who="a test", why="first")
    made = Scene(name=name, registry=registry, psql=psql)
    made.flags = {
        "job": name,
        "table": name,
        "endpoint": moto,
        "region": "eu-west-1",
        "registry": str(postgres_url),
        "registry-schema": schema,
        "bootstrap-servers": CLOSED,
        "dead-letter-topic": made.topic("rejects"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    return made


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of a broker with ACLs: of a listener for its administrator, and of one for USER with PASSWORD."""
    secured = f"{LOOPBACK}:{free_port()}"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    more = {
        "listeners": f"SASL://{secured}",
        "advertised.listeners": f"SASL://{secured}",
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f'{login} required user_{USER}="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    part = start_kafka(tmp_path_factory.mktemp("kafka"), more=more)
    yield part.endpoint, secured
    part.stop()


@pytest.fixture
def whole(scene: Scene, broker: tuple[str, str]) -> Scene:
    """A set-up with all parts, as it is before the first start."""
    scene.administered = scene.flags["bootstrap-servers"] = broker[0]
    scene.make_table()
    scene.make_topics()
    return scene
