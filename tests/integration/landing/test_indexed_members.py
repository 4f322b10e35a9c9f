"""Members of the document that get a column and an index in Postgres: names that clash, and types that change."""

from contextlib import closing

import pytest

from processor.engine.plan.planning import plan_alone
from processor.errors import SettingError
from processor.job.landing.postgres import PostgresTarget
from processor.job.landing.sinks import open_target
from processor.job.landing.target import LandingError
from processor.language.definitions.load import load
from tests.integration.landing.conftest import PRODUCT, LandingScene

LONG = "m" * 62
MEMBERS = ("ctid", "incarnation", "sequence", "document", "ü" * 32)
ENTITIES = "person: {key: [id], columns: {id: int, %s}}"


def indexed(scene: LandingScene, table: str) -> list[str]:
    """The columns of a table that have an index."""
    rows = scene.sql(
        "select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0] "
        f"where indrelid = to_regclass('{table}') order by attname"
    )
    return [name for (name,) in rows]


def land(scene: LandingScene, table: str, indexes: dict[str, str], version: int = 0) -> PostgresTarget:
    """Opens a table, and lands what the topic holds."""
    with closing(PostgresTarget(scene.url, table, indexes, version)) as target:
        opened = target.open(scene.topic)
        target.open(scene.topic)  # the second start changes nothing
        scene.landing(target, opened=opened).run()
    return target


@pytest.mark.parametrize(
    ("tables", "members"),
    [
        (["t" * 60], ["name", "name2", "n"]),
        (["a", "a_b"], ["b_c", "c"]),
        ([PRODUCT], [f"{LONG}x", f"{LONG}y"]),
    ],
)
def test_each_member_gets_its_index(scene: LandingScene, tables: list[str], members: list[str]) -> None:
    scene.publish(1, dict.fromkeys(members, "x"))
    for table in tables:
        land(scene, table, dict.fromkeys(members, "string"))
        assert indexed(scene, table) == sorted(["key", *members])
        (row,) = scene.sql("select {} from {}".format(", ".join(f'"{one}"' for one in members), table))
        assert row == ("x",) * len(members)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("integer", {5: 5, "x": None, 1.5: None, 2**63: None, -(2**63): -(2**63), True: None}),
        ("number", {5: 5, "5": None, 1.25: 1.25, False: None}),
        ("boolean", {True: True, "true": None, 3: None}),
        ("string", {"x": "x", 5: "5", True: "true"}),
    ],
)
def test_a_column_is_null_for_a_value_of_another_type(
    scene: LandingScene, kind: str, values: dict[object, object]
) -> None:
    for n, value in enumerate(values):
        scene.publish(n, {"age": value})
    scene.publish(99, {"age": [1]})
    scene.publish(98, {})
    scene.land({"age": kind})
    assert scene.compare().refused == []
    rows = scene.sql(f"select age from {PRODUCT} where (key ->> 'id')::int < 90 order by (key ->> 'id')::int")
    assert [value for (value,) in rows] == list(values.values())


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("integer", "string", ["5", "x"]),
        pytest.param("string", "integer", [5, None], marks=pytest.mark.rest),
        pytest.param("boolean", "number", [5, None], marks=pytest.mark.rest),
    ],
)
def test_a_new_version_with_another_type_of_a_member(
    scene: LandingScene, before: str, after: str, shown: list[object]
) -> None:
    scene.publish(1, {"age": 5})
    scene.land({"age": before})
    scene.version = 4
    scene.publish(2, {"age": "x"})
    with closing(PostgresTarget(scene.url, PRODUCT, {"age": before}, 3)) as target:
        landing = scene.landing(target)
        landing.run()
    assert (landing.tally["landed"], landing.tally["later"]) == (1, 1)
    scene.land({"age": after})
    rows = scene.sql(f"select age from {PRODUCT} order by (key ->> 'id')::int")
    assert [value for (value,) in rows] == shown
    assert indexed(scene, PRODUCT) == ["age", "key"]


def test_a_column_that_somebody_made_stays(scene: LandingScene) -> None:
    scene.land()
    scene.sql(f"alter table {PRODUCT} add column age int default 5")
    says = "has a column age that no landing made: drop it, or leave out --index"
    target = PostgresTarget(scene.url, PRODUCT, {"age": "integer"})
    with closing(target), pytest.raises(LandingError, match=says):
        target.open(scene.topic)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_name_that_no_column_can_have(member: str) -> None:
    columns = ", ".join(f"{one}: string" for one in MEMBERS)
    product = {"entities.yaml": ENTITIES % columns, "p.yaml": f"{{product: {PRODUCT}, root: person, topic: people}}"}
    plan = plan_alone(load(product), 5)
    with pytest.raises(SettingError, match=f"--index {member}: .*let the product show the member under"):
        open_target("postgresql://me@host/db", PRODUCT, plan, PRODUCT, [member])
