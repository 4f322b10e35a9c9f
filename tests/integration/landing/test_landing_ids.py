"""Each landing has an id of its own, so no two targets share the partitions of a topic, and the registry knows each of them."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from time import sleep
from uuid import uuid4

import psycopg
import pytest

from processor.cli.main import main
from processor.engine.plan.planning import requirements_of
from processor.job.landing.landing import Landing, group_of, landing_states
from processor.job.landing.target import LandingError
from processor.language.definitions.load import load
from registry.repository import Registry
from tests.integration.landing.conftest import PRODUCT, LandingScene

ENTITIES = "person: {key: [id], columns: {id: int, n: int, name: string}}"


@pytest.fixture
def others(scene: LandingScene, postgres_url: str) -> Iterator[list[str]]:
    """Two more schemas."""
    names = [f"other_{uuid4().hex[:8]}" for _ in range(2)]
    for name in names:
        scene.sql(f"create schema {name}")
    yield names
    for name in names:
        scene.sql(f"drop schema {name} cascade")


def led_to(scene: LandingScene, postgres_url: str, path: str) -> LandingScene:
    """The same topic and database with another search_path."""
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-csearch_path%3D{path}"
    return LandingScene(scene.broker, url, scene.topic)


def run_together(*landings: Landing) -> list[BaseException]:
    """Runs landings until each ends; the first that ends stops those that run on. Returns their errors."""
    errors: list[BaseException] = []

    def run(landing: Landing) -> None:
        try:
            landing.run()
        except BaseException as error:
            errors.append(error)
        for one in landings:
            if not one.once:
                one.stopping.set()

    threads = [Thread(target=run, args=[landing]) for landing in landings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize(
    "paths",
    [
        "{0}|{1}",
        *(pytest.param(one, marks=pytest.mark.rest) for one in ("{0},public_too|{1},public_too", "{0},{2}|{1},{2}")),
    ],
)
def test_landings_in_two_schemas_share_nothing(
    scene: LandingScene, others: list[str], postgres_url: str, paths: str
) -> None:
    """Same host, port, database and table. A third landing has its notes in a schema that both paths lead to."""
    scene.land()
    third = scene.sql("select current_schema()")[0][0]
    both = [led_to(scene, postgres_url, one.format(*others, third)) for one in paths.split("|")]
    if "{2}" in paths:
        scene.sql(f"drop table {PRODUCT}")  # its notes stay
    for n in range(40):
        scene.publish(n, {"n": n})
    with closing(both[0].target()) as first, closing(both[1].target()) as second:
        opened = [first.open(scene.topic), second.open(scene.topic)]
        assert opened[0].id != opened[1].id
        assert len({first.place, second.place}) == 2
        landings = [one.landing(target) for one, target in zip(both, (first, second), strict=True)]
        assert run_together(*landings) == []
        assert [first.open(scene.topic).id, second.open(scene.topic).id] == [one.id for one in opened]
    assert both[0].table() == both[1].table() == scene.expected()


def copied(scene: LandingScene, other: str) -> None:
    """Copies the tables of a landing to another schema, as a restored dump does."""
    own = scene.sql("select current_schema()")[0][0]
    for table in (PRODUCT, *(f"statestore_landing{name}" for name in ("", "_offset", "_deleted", "_refused"))):
        scene.sql(f"create table {other}.{table} (like {own}.{table} including all)")
        scene.sql(f"insert into {other}.{table} select * from {own}.{table}")


def test_a_copy_of_a_table_gets_an_id_of_its_own(scene: LandingScene, others: list[str], postgres_url: str) -> None:
    scene.publish(1, {"n": 1})
    scene.land()
    copied(scene, others[0])
    other = led_to(scene, postgres_url, others[0])
    with closing(scene.target()) as one, closing(other.target()) as copy:
        assert one.open(scene.topic).id != copy.open(scene.topic).id
    scene.publish(2, {"n": 2})
    scene.land()
    other.land()
    assert scene.table() == other.table() == scene.expected()


@pytest.mark.rest
def test_processes_of_two_copies_with_one_id_end(
    scene: LandingScene, others: list[str], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a snapshot of the whole server, which no query tells from its original."""
    monkeypatch.setattr("processor.job.landing.landing.SAY_SECONDS", 0.5)
    scene.land()
    copied(scene, others[0])
    other = led_to(scene, postgres_url, others[0])
    with closing(scene.target()) as one, closing(other.target()) as copy:
        opened, _ = one.open(scene.topic), copy.open(scene.topic)
        other.sql(f"update statestore_landing set id = '{opened.id}'")
        monkeypatch.setattr(
            "processor.job.landing.postgres.ORIGIN", "select origin from statestore_landing where table_name = %s"
        )
        landings = [s.landing(t, once=False, stopping=Event(), opened=opened) for s, t in ((scene, one), (other, copy))]
        copy.open(scene.topic)
        publisher = Thread(target=publish_until, args=[scene, landings[0].stopping])
        publisher.start()
        errors = run_together(*landings)
        publisher.join()
        (error, *_) = errors
        assert isinstance(error, LandingError)
        assert re.search(r"another process lands partitions \d.* in a copy of .*--new-id", str(error))
        assert copy.open(scene.topic, new_id=True).id != opened.id
    scene.land()
    other.land()
    assert scene.table() == other.table() == scene.expected()


def publish_until(scene: LandingScene, stopping: Event) -> None:
    n = 0
    while not stopping.is_set():
        scene.publish(n % 30, {"n": n})
        n += 1
        sleep(0.02)


@pytest.mark.parametrize("idle", [False, True])
def test_a_target_that_lost_its_last_batches_gets_them_again(
    scene: LandingScene, monkeypatch: pytest.MonkeyPatch, idle: bool
) -> None:
    """As after a failover to a standby that lags."""
    monkeypatch.setattr("processor.job.landing.landing.SAY_SECONDS", 0.5)
    for n in range(10):
        scene.publish(n, {"n": n})
    scene.land()
    with closing(scene.target()) as target:
        landing = scene.landing(target, once=False, stopping=Event())
        scene.publish(3, {"n": 33})
        scene.publish(4, None)
        thread = Thread(target=landing.run)
        thread.start()
        while landing.tally.total() < 2:
            sleep(0.05)
        scene.sql(f"delete from {PRODUCT}")
        scene.sql("delete from statestore_landing_deleted")
        scene.sql("update statestore_landing_offset set next_offset = 0")
        if not idle:
            scene.publish(5, {"n": 55})
        while scene.table() != scene.expected():
            sleep(0.1)
        landing.stopping.set()
        thread.join()
    assert scene.said("repeated")
    assert scene.compare().right


@pytest.fixture
def flags(scene: LandingScene, postgres_url: str, tmp_path: Path) -> Iterator[list[str]]:
    """The settings of commands, with a registry whose product publishes to the scene's topic. --to is in a variable."""
    name = f"registry_{uuid4().hex[:8]}"
    with Registry(postgres_url, name) as registry:
        registry.migrate(5)
        product = f"{{product: {PRODUCT}, root: person, topic: {scene.topic.name}}}"
        registry.apply(
            requirements_of(load({"entities.yaml": ENTITIES, "p.yaml": product})), who="a test", why="a test"
        )
    (tmp_path / "registry").write_text(postgres_url)
    scene.version = 1
    addresses = ["--bootstrap-servers", scene.broker, "--registry", f"file:{tmp_path / 'registry'}"]
    yield [*addresses, "--registry-schema", name]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"drop schema {name} cascade".encode())


def test_the_registry_knows_a_landing_until_somebody_removes_it(
    scene: LandingScene, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.publish(1, {"id": 1, "n": 5, "name": "Ada"})
    (tmp_path / "to").write_text(scene.url)
    land = ["land", PRODUCT, "--to", f"file:{tmp_path / 'to'}", *flags]
    assert main([*land, "--once", "--index", "n"]) == 0
    said = capsys.readouterr().err
    id_ = said.partition(", id ")[2].split()[0]
    main(["status", "--json", *flags])
    (known,) = (one for one in json.loads(capsys.readouterr().out)["landings"] if one["id"] == id_)
    assert (known["product"], known["topic"], known["behind"]) == (PRODUCT, scene.topic.name, 0)
    assert re.search(rf"table test_\w+\.{PRODUCT} at ", known["place"])
    password = scene.url.partition("@")[0].rpartition(":")[2]
    assert password not in known["place"]
    assert main([*land, "--verify"]) == 0
    scene.sql(f"drop table {PRODUCT}")  # and nobody tells the registry
    capsys.readouterr()
    assert main(["land", PRODUCT, "--remove", "other", *flags]) != 0
    assert f"it knows {id_}" in capsys.readouterr().err
    assert main(["land", PRODUCT, "--remove", id_, *flags]) == 0
    assert f"landing {id_} of {PRODUCT} is gone" in capsys.readouterr().out
    main(["status", *flags])
    assert id_ not in capsys.readouterr().out


def test_a_landing_without_its_group_stays_known(scene: LandingScene, flags: list[str], tmp_path: Path) -> None:
    """The broker forgets a group after seven days without a process."""
    from processor.job.kafka.admin import delete_group

    scene.publish(1, {"id": 1, "n": 5, "name": "Ada"})
    (tmp_path / "to").write_text(scene.url)
    assert main(["land", PRODUCT, "--to", f"file:{tmp_path / 'to'}", "--once", *flags]) == 0
    with Registry((tmp_path / "registry").read_text(), flags[-1]) as registry:
        (known,) = registry.landings.all()
        delete_group(scene.broker, {}, group_of(PRODUCT, known.id))
        delete_group(scene.broker, {}, group_of(PRODUCT, known.id))  # the second call changes nothing
        states = [one for one in landing_states([known], scene.broker, {}) if one.id == known.id]
    assert [(one.place, one.behind) for one in states] == [(known.place, None)]


@pytest.mark.rest
def test_a_verify_finds_a_partition_that_nobody_lands(
    scene: LandingScene, flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(10):
        scene.publish(n, {"id": n, "n": n, "name": None})
    (tmp_path / "to").write_text(scene.url)
    land = ["land", PRODUCT, "--to", f"file:{tmp_path / 'to'}", *flags]
    assert main([*land, "--once"]) == 0
    scene.sql("delete from statestore_landing_offset where partition = 1")
    assert main([*land, "--verify"]) == 1
    assert re.search(r"missed: \d+ messages of partition 1 wait: nothing of it", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("to", "cure"),
    [
        ("postgresql://me:hidden@host/db", "set PGPASSWORD"),
        ("postgresql://me@host/db?password=hidden", "--to env:NAME"),
        ("postgresql://me@host/db?sslmode=require&sslpassword=hidden", "--to file:PATH"),
        ("https://me:hidden@host:9200", "--to file:PATH"),
    ],
)
def test_a_password_in_the_command_is_refused_with_the_cure(
    flags: list[str], to: str, cure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["land", PRODUCT, "--to", to, *flags]) != 0
    said = capsys.readouterr().err
    assert cure in said
    assert "hidden" not in said


@pytest.mark.rest
def test_a_landing_whose_user_may_not_note_it_lands_nothing(
    scene: LandingScene, flags: list[str], postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Registry(postgres_url, schema := flags[-1]) as registry:
        registry.create_roles()
    separator = "&" if "?" in postgres_url else "?"
    (tmp_path / "registry").write_text(f"{postgres_url}{separator}options=-crole%3D{schema}_reader")
    (tmp_path / "to").write_text(scene.url)
    scene.publish(1, {"id": 1, "n": 5, "name": "Ada"})
    try:
        assert main(["land", PRODUCT, "--to", f"file:{tmp_path / 'to'}", "--once", *flags]) != 0
        assert f"GRANT {schema}_lander TO this user" in capsys.readouterr().err
        assert scene.table() == {}
        (tmp_path / "registry").write_text(f"{postgres_url}{separator}options=-crole%3D{schema}_lander")
        assert main(["land", PRODUCT, "--to", f"file:{tmp_path / 'to'}", "--once", *flags]) == 0
    finally:
        for role in ("reader", "job", "operator", "lander"):
            scene.sql(f"drop owned by {schema}_{role}")
            scene.sql(f"drop role {schema}_{role}")
