"""Debezium's connector for MariaDB on Kafka Connect, and a running job: `verify --source` names what never arrived, and repairs
it while the application writes."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from processor.cli.main import main
from processor.job.kafka.reader import read_topic
from tests.capture.servers import mariadb
from tests.integration.job.running_job import repeating, running, wait_until
from tests.integration.job.test_postgres_job import set_environment
from tests.support.connect_worker import MARIADB_SOURCE, connect_worker
from tests.support.required import required_program

Scene = Any  # conftest's
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]  # of the verbs
TABLES = """
create table user (id int primary key, name varchar(20) unique not null);
create table star (who varchar(20), repo varchar(20), note varchar(20), primary key (who, repo),
  foreign key (who) references user (name) on delete cascade)
"""
USERS = 20
HISTORY = "schema.history.internal"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A MariaDB with users, each with two stars."""
    required_program("mariadbd", "apt-get install -y mariadb-server")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # under root the server runs as another user
        with mariadb(Path(folder, "server"), announced="10.11.11-MariaDB-log") as port:
            address = f"mysql://debezium:debezium@127.0.0.1:{port}"
            monkeypatch.setenv("SOURCE", f"{address}/shop")
            engine = create_engine(address.replace("mysql", "mysql+pymysql"), isolation_level="AUTOCOMMIT")
            change(engine, "create database shop")
            engine.dispose()
            engine = create_engine(f"{address}/shop".replace("mysql", "mysql+pymysql"), isolation_level="AUTOCOMMIT")
            change(engine, *TABLES.split(";"))
            change(engine, *(f"insert into user values ({n}, 'name{n}')" for n in range(USERS)))
            change(engine, *(f"insert into star values ('name{n % USERS}', 'repo{n}', '')" for n in range(2 * USERS)))
            yield engine
            engine.dispose()


def change(engine: Engine, *statements: str) -> None:
    """Runs statements in one session, each with a commit of its own."""
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def connector(scene: Scene, engine: Engine, folder: Path) -> dict[str, str]:
    """The properties of the connector, whose topics are those of the scene."""
    found = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "topic.prefix": "app",
        "database.hostname": "127.0.0.1",
        "database.port": str(engine.url.port),
        "database.user": "debezium",
        "database.password": "debezium",
        "database.server.id": "4711",
        "database.include.list": "shop",
        "include.schema.changes": "false",
        HISTORY: "io.debezium.storage.file.history.FileSchemaHistory",
        f"{HISTORY}.file.filename": str(folder / "history"),
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": r"app\\.shop\\.(.*)",
        "transforms.route.replacement": f"{scene.settings.job}.$1",
    }
    return (
        found
        | {f"{side}.converter.schemas.enable": "false" for side in ("key", "value")}
        | {f"{side}.converter.replace.null.with.default": "false" for side in ("key", "value")}
        | {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}
    )


def writing(engine: Engine) -> AbstractContextManager[None]:
    """An application that writes inside the block: new rows, and changes of those that differ."""

    def write(n: int) -> None:
        change(
            engine,
            f"insert into user values ({n}, 'name{n}')",
            f"update user set name = 'other{n}' where id = {n}",
            f"insert into star values ('other{n}', 'repo', '')",
            f"update star set note = 'note {n}' where who = 'name{n % USERS}'",
        )

    return repeating(write, first=100, pause=0.5)


def verify(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, dict[tuple[str, str], set[str]]]:
    """The status, and the keys that differ, by entity and kind."""
    capsys.readouterr()
    status = main(["verify", "--source", "env:SOURCE", "--json", "--show", "1000", "--lag", "3", *flags])
    printed = capsys.readouterr()
    print(printed.out, printed.err)
    found: dict[tuple[str, str], set[str]] = {}
    for entity, result in json.loads(printed.out.splitlines()[0])["entities"].items():
        for one in result["sample"]:
            found.setdefault((entity, one["kind"]), set()).add("/".join(map(str, one["key"].values())))
    return status, found


def test_what_never_arrived_from_mariadb_is_named_and_repaired_while_the_application_writes(
    new_scene: Callable[..., Scene],
    source: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = new_scene(store="postgres")
    set_environment(monkeypatch, scene.settings)
    broker, admin, stars = scene.settings.bootstrap_servers, scene.admin(), scene.topic("star")
    with connect_worker(tmp_path / "connect", broker, MARIADB_SOURCE, connector(scene, source, tmp_path)):
        wait_until(
            lambda: (
                sum(admin.ends(stars).values()) >= 2 * USERS and sum(admin.ends(scene.topic("user")).values()) >= USERS
            )
        )
        admin.delete_before(stars, dict.fromkeys(admin.ends(stars), 3))  # a lost segment
        kept = {
            f"{key['who']}/{key['repo']}" for key in (json.loads(r.key or b"") for r in read_topic(broker, {}, stars))
        }
        lost = {f"name{n % USERS}/repo{n}" for n in range(2 * USERS)} - kept
        with running(scene) as job:
            wait_until(lambda: len(scene.documents()) == USERS, job)
            change(
                source,
                "delete from user where id = 2",  # its stars go by cascade: MariaDB logs none of them
                "set session sql_log_bin = 0",
                "update star set note = 'quiet' where who = 'name3'",
                "insert into user values (77, 'unseen')",
                "set session sql_log_bin = 1",
            )
            cascaded, changed = ({f"name{n}/repo{n}", f"name{n}/repo{n + USERS}"} for n in (2, 3))
            assert verify(capsys) == (
                1,
                {
                    ("star", "missing"): lost - cascaded,
                    ("star", "orphaned"): cascaded - lost,
                    ("star", "different"): changed - lost,
                    ("user", "missing"): {"77"},
                },
            )
            with writing(source):
                verify(capsys, "--repair", "--why", "a cascade and a lost segment")
            assert verify(capsys) == (0, {})
        scene.run()
    assert main(["verify", "--sql"]) == 0
    assert main(["history", "--limit", "1"]) == 0
    assert "a cascade and a lost segment" in capsys.readouterr().out
