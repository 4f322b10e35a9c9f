"""Shared by the tests of the embedded parts: find processes, and use each part."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import boto3
import psycopg
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from processor.environment.embedded import Addresses
from tests.support.required import require_proc


def processes_in(directory: Path) -> list[str]:
    """The command lines of all processes that work in a directory or below it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            where = (entry / "cwd").readlink()
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if where.is_relative_to(directory.resolve()) or str(where).startswith(str(directory.resolve())):
            found.append(line)
    return found


def use_kafka(bootstrap_servers: str, topic: str = "t", create: bool = True) -> list[bytes]:
    """Create a topic, produce one message, and read everything from the start of the topic."""
    if create:
        admin = AdminClient({"bootstrap.servers": bootstrap_servers})
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(300)
        producer = Producer({"bootstrap.servers": bootstrap_servers})
        producer.produce(topic, key=b"k", value=b"v")
        assert producer.flush(300) == 0
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(300)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert value is not None
        return [value]
    finally:
        consumer.close()


def use_postgres(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements; returns the rows of the last one."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def list_tables(endpoint: str) -> list[str]:
    """The names of the DynamoDB tables."""
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1", **keys)
    try:
        names: list[str] = client.list_tables()["TableNames"]
        return names
    finally:
        client.close()


def use(addresses: Addresses) -> None:
    """Use each part a little."""
    assert use_kafka(addresses.bootstrap_servers) == [b"v"]
    assert use_postgres(addresses.registry_url, "select 1") == [(1,)]
    if "dynamodb" in addresses.endpoints:
        assert list_tables(addresses.endpoints["dynamodb"]) == []


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, as a system has it: all users may enter it, which is not so of pytest's. A test leaves
    nothing in it."""
    tmp_path_factory.getbasetemp()  # which pytest makes late, and not in here
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o1777)
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield folder
        assert list(folder.iterdir()) == []


@pytest.fixture
def processes(temporary: Path) -> Callable[[Path], list[str]]:
    """The processes that work in a directory, or among the test's temporary files."""
    require_proc()
    return lambda directory: processes_in(directory) + processes_in(temporary)


@pytest.fixture
def talk() -> SimpleNamespace:
    """The functions of this file. Tests get them as a fixture, because a test cannot import its conftest by name."""
    return SimpleNamespace(use=use, kafka=use_kafka, postgres=use_postgres, dynamodb=list_tables)
