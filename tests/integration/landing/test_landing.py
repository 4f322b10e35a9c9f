"""A product's documents in a table of Postgres: the table holds the last message of each root, whatever happens meanwhile."""

from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import make_url

from processor.job.kafka.admin import Admin
from processor.job.landing.landing import landing_states
from processor.job.landing.postgres import PostgresTarget
from processor.job.landing.target import LandingError
from registry.model import KnownLanding
from tests.integration.landing.conftest import PRODUCT, LandingScene


def test_the_table_holds_the_last_document_of_each_root(scene: LandingScene) -> None:
    for n in range(10):
        scene.publish(n, {"name": f"n{n}", "big": 2**53 + 1, "price": 1.5})
    scene.publish(3, {"name": "three"})
    scene.publish(4, None)
    scene.publish(5, {"other": True}, product="city")
    tally = scene.land().tally
    assert scene.table() == {
        key: document for key, document in scene.expected().items() if document != {"other": True}
    } | {'{"id":5}': {"name": "n5", "big": 2**53 + 1, "price": 1.5}}
    assert tally["foreign"] == 1
    rows = scene.sql(
        f"select sequence, product_version, published_at is not null from {PRODUCT} where document ->> 'name' = 'three'"
    )
    assert rows == [(2, 3, True)]


@pytest.mark.rest
def test_a_connection_that_breaks_costs_nothing(scene: LandingScene) -> None:
    with closing(scene.target()) as target:
        opened = target.open(scene.topic)
        for n in range(5):
            scene.publish(n, {"n": n})
        scene.sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'statestore land'")
        scene.landing(target, opened=opened).run()
    assert scene.table() == scene.expected()
    assert [event.what for event in scene.events if event.what != "landed"] == ["degraded", "recovered"]


def test_a_document_that_postgres_refuses(scene: LandingScene) -> None:
    for n in range(5):
        scene.publish(n, {"text": "fine"})
    scene.publish(2, {"text": "nul \0"})
    scene.publish(7, {"text": "half a pair \ud800"})
    assert scene.land().tally["refused"] == 2
    assert scene.table()['{"id":2}'] == {"text": "fine"}
    rows = scene.sql("select key, sequence, reason from statestore_landing_refused order by key")
    assert [(key, sequence) for key, sequence, _ in rows] == [('{"id":2}', 2), ('{"id":7}', 1)]
    assert "\\u0000 cannot be converted to text" in rows[0][2]
    comparison = scene.compare()
    assert not comparison.right
    assert comparison.missing == comparison.different == []
    scene.publish(2, {"text": "good"})
    scene.publish(7, None)
    scene.land()
    assert scene.sql("select * from statestore_landing_refused") == []
    assert scene.compare().right


@pytest.mark.rest
def test_chosen_members_get_a_column_and_an_index(scene: LandingScene) -> None:
    scene.publish(1, {"name": "ada", "age": 36, "score": 1.5, "active": True})
    scene.publish(2, {"name": None, "age": None, "score": None, "active": None})
    scene.land({"name": "string", "age": "integer"})
    scene.land({"name": "string", "age": "integer", "score": "number", "active": "boolean"})
    assert scene.sql(f"select name, age, score, active from {PRODUCT} order by age") == [
        ("ada", 36, 1.5, True),
        (None,) * 4,
    ]
    assert scene.sql(f"select count(*) from pg_indexes where tablename = '{PRODUCT}'") >= [(5,)]


@pytest.mark.rest
def test_the_broker_knows_how_far_a_landing_is(scene: LandingScene) -> None:
    """`status`, `doctor` and `erase` ask it about the landings of the registry."""
    for n in range(5):
        scene.publish(n, {"n": n})
    scene.land()
    scene.publish(1, {"n": 1})
    with closing(scene.target()) as target:
        id_ = target.open(scene.topic).id
        now = datetime.now(UTC)
        known = [KnownLanding(one, PRODUCT, scene.topic.name, target.place, now, now) for one in (id_, "forgotten")]
    states = [one for one in landing_states(known, scene.broker, {}) if one.topic == scene.topic.name]
    assert [(one.id, one.behind, one.processes, one.landed_at is None) for one in states] == [
        (id_, 1, 0, False),
        ("forgotten", None, 0, True),
    ]


@pytest.mark.rest
def test_a_user_who_may_only_write(scene: LandingScene) -> None:
    """An administrator runs the first landing; later ones need no right to create tables."""
    scene.publish(1, {"n": 1})
    scene.land({"n": "integer"})
    role = f"lander_{scene.topic.name[-8:]}"
    ((schema,),) = scene.sql("select current_schema")
    scene.sql(f"create role {role} login password 'lander'")
    scene.sql(f"grant usage on schema {schema} to {role}")
    scene.sql(f"grant select, insert, update, delete on all tables in schema {schema} to {role}")
    scene.publish(1, {"n": 2})
    try:
        with closing(PostgresTarget(_as_user(scene.url, role), PRODUCT, {"n": "integer"})) as target:
            target.open(scene.topic)
            scene.landing(target).run()
    finally:
        scene.sql(f"drop owned by {role}")
        scene.sql(f"drop role {role}")
    assert scene.table() == {'{"id":1}': {"n": 2}}


@pytest.mark.rest
def test_an_address_that_does_not_answer(scene: LandingScene) -> None:
    with pytest.raises(LandingError, match="--to is no address of Postgres"):
        PostgresTarget("mysql://root@localhost/x", PRODUCT, {})
    with pytest.raises(LandingError, match="cannot name a table"):
        PostgresTarget(scene.url, "x" * 64, {})


@pytest.mark.rest
def test_an_empty_topic(scene: LandingScene) -> None:
    scene.land()
    assert scene.table() == {}
    assert Admin(scene.broker, {}).stable_ends(scene.topic.name) == {0: 0, 1: 0}


def _as_user(url: str, role: str) -> str:
    """The address with another user, whose password is `lander`."""
    return (
        make_url(url)
        .set(drivername="postgresql", username=role, password="lander")
        .render_as_string(hide_password=False)
    )
