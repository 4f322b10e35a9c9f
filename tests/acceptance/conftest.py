"""Fixtures of the tests of `statestore run`: embedded parts for the whole session, and the demo's history in topics per test."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from processor.environment.embedded import down, up
from processor.language.definitions.describe import describe_entity, describe_product
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Definitions
from processor.tools.demo.github import build_history, load_events
from processor.tools.demo.tour import differing_keys
from processor.tools.inspect.oracle import oracle
from processor.values.recorded_topics import read_records

EXAMPLE = Path(__file__).parents[2] / "examples" / "github"
EVENTS = 60
"""How many of the example's events a story uses: 256 records, among them renames, deletes and a dead letter."""

NAMES = count()


@dataclass(frozen=True, kw_only=True)
class Story:
    """Records of the demo's history, in topics of their own. `flags`: of a separate job on the parts of the directory `local`."""

    name: str
    directory: Path
    local: Path
    registry_url: str
    bootstrap_servers: str
    definitions: Definitions
    tables: Mapping[str, Mapping[tuple[Any, ...], Any]]

    @property
    def file(self) -> str:
        return str(self.directory / "topics.jsonl")

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def topic(self) -> str:
        return self.definitions.products["user_profile"].topic

    @property
    def own(self) -> list[str]:
        """The settings that keep this job apart from others on the same parts."""
        own = {
            "job": self.name,
            "wait-seconds": "0.2",
            "settle-seconds": "0.2",
            "table": self.name,
            "registry-schema": self.name,
            "dead-letter-topic": f"{self.name}.rejects",
            "slots": "5",
        }
        return [word for name, value in own.items() for word in (f"--{name}", value)]

    @property
    def flags(self) -> list[str]:
        return ["--embedded", "--local-dir", str(self.local), *self.own]

    @property
    def run(self) -> list[str]:
        return ["run", *self.flags, "--checkpoint", str(self.checkpoint), "--lease-seconds", "5"]

    def run_on(self, endpoint: str) -> list[str]:
        """The arguments of `run` with the table at another endpoint."""
        secret = self.directory / "registry"
        secret.write_text(self.registry_url)
        addresses = ["--bootstrap-servers", self.bootstrap_servers, "--registry", f"file:{secret}"]
        addresses += ["--endpoint", endpoint, "--region", "us-east-1"]
        return ["run", *self.own, *addresses, "--checkpoint", str(self.checkpoint), "--lease-seconds", "5"]

    @property
    def define(self) -> list[str]:
        return ["--definitions", str(self.directory / "definitions")]

    def wrong(self, published: str) -> list[str]:
        """The keys whose last message in the file differs from the answer of Postgres over the last state of the tables."""
        with oracle(self.registry_url, f"{self.name}_oracle", self.definitions.entities) as tables:
            tables.load({name: rows.values() for name, rows in self.tables.items()})
            truth = tables.documents(self.definitions.products["user_profile"])
        assert len(truth) > 50
        return differing_keys(read_records(published), truth)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each test of this folder that runs a story, except those that bring a Spark of their own."""
    fixtures = getattr(item, "fixturenames", ())
    if "local" in fixtures and "platform" not in fixtures:
        item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def statestore() -> list[str]:
    """The command line of `statestore`, to run it as a separate process."""
    return [str(Path(sys.executable).parent / "statestore")]


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of parts that `statestore local up --store dynamodb` started: the stories have their table in moto. The
    pages of docs, and `test_run.py`, also have it in Postgres."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(name, "embedded")
    directory = tmp_path_factory.mktemp("local") / "parts"
    directory.parent.chmod(0o711)  # a root user starts Postgres as the user nobody, who must be able to enter
    try:
        up(directory, store="dynamodb")
        yield directory
    finally:
        stop_spark()
        down(directory)


@pytest.fixture
def story(local: Path, tmp_path: Path) -> Story:
    return make_story(local, tmp_path)


@pytest.fixture(scope="module")
def module_story(local: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return make_story(local, tmp_path_factory.mktemp("story"))


def make_story(local: Path, directory: Path) -> Story:
    """Writes the definitions and the records of a new story into the directory."""
    name = f"story{next(NAMES)}"
    example = load(read_directory(EXAMPLE))
    entities = {e.name: describe_entity(e) | {"topic": f"{name}.{e.name}"} for e in example.entities.values()}
    product = describe_product(example.products["user_profile"]) | {"topic": f"{name}.user_profile"}
    (directory / "definitions").mkdir()
    (directory / "definitions" / "entities.yaml").write_text(json.dumps(entities))
    (directory / "definitions" / "user_profile.yaml").write_text(json.dumps(product))
    recorded = build_history(load_events(EXAMPLE / "events.ndjson.gz")[:EVENTS])
    lines = (json.dumps({**line, "topic": f"{name}.{line['topic']}"}) + "\n" for line in recorded.records)
    (directory / "topics.jsonl").write_text("".join(lines))
    addresses = up(local)
    return Story(
        name=name,
        directory=directory,
        local=local,
        registry_url=addresses.registry_url,
        bootstrap_servers=addresses.bootstrap_servers,
        definitions=load(read_directory(directory / "definitions")),
        tables=recorded.tables,
    )


def stop_spark() -> None:
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        session.stop()
