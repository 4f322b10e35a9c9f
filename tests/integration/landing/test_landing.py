"""A product's documents in a table of Postgres: the table holds the last message of each root, whatever happens meanwhile."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import make_url

from processor.job.kafka.admin import Admin
from processor.job.landing.landed_message import LandedMessage
from processor.job.landing.landing_states import landing_states
from processor.job.landing.postgres_target import PostgresTarget
from processor.job.landing.target import LandedTopic, LandingError
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
def test_no_key_of_a_deleted_document_stays(scene: LandingScene) -> None:
    scene.publish("ada@example.org", {"text": "nul \0"})
    scene.publish("ada@example.org", {"text": "x"})
    scene.publish("ada@example.org", {"text": "nul \0"})
    scene.land()
    scene.publish("ada@example.org", None)
    scene.land()
    for table in (PRODUCT, *(f"statestore_landing{name}" for name in ("", "_offset", "_deleted", "_refused"))):
        assert "ada@" not in str(scene.sql(f"select * from {table}"))


class KilledTarget(PostgresTarget):
    """A target whose process dies at the n-th batch: before its transaction, or after the server has committed it."""

    def __init__(self, scene: LandingScene, batch: int, *, after: bool) -> None:
        super().__init__(scene.url, PRODUCT, {})
        self._left, self._after = batch, after

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise KeyboardInterrupt
        counts = super().land(messages, ends)
        if self._left == 0:
            raise KeyboardInterrupt
        return counts


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.rest), True])
def test_a_landing_dies_at_each_batch(scene: LandingScene, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    monkeypatch.setattr("processor.job.landing.landing.BATCH", 7)
    for n in range(60):
        scene.publish(n % 20, None if n % 7 == 0 else {"n": n})
    for batch in (1, 2, 3, 2, 1):
        with closing(KilledTarget(scene, batch, after=after)) as target:
            target.open(scene.topic)
            with pytest.raises(KeyboardInterrupt):
                scene.landing(target).run()
    scene.land()
    assert scene.table() == scene.expected()
    assert scene.compare().right


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


def test_the_comparison_names_what_somebody_changed(scene: LandingScene) -> None:
    for n in range(6):
        scene.publish(n, {"n": n, "price": 1.50, "list": [1, {"b": 1, "a": 2}]})
    scene.publish(5, None)
    scene.land()
    assert (
        next(scene.compare().lines()) == "equal 5, on the way 0, missing 0, not in the topic 0, different 0, refused 0"
    )
    scene.sql(f"update {PRODUCT} set document = '{{}}' where key = '{{\"id\": 0}}'")
    scene.sql(f"delete from {PRODUCT} where key = '{{\"id\": 1}}'")
    scene.sql(f"insert into {PRODUCT} select '{{\"id\": 9}}', document, 1, 1, now() from {PRODUCT} limit 1")
    scene.publish(2, {"n": "on its way"})
    found = scene.compare()
    assert (found.different, found.missing, found.extra) == (['{"id":0}'], ['{"id":1}'], ['{"id": 9}'])
    assert (found.equal, found.waiting) == (2, 1)


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
def test_a_table_that_no_landing_made_stays_as_it_is(scene: LandingScene) -> None:
    scene.sql(f"create table {PRODUCT} (a int)")
    with (
        pytest.raises(LandingError, match="no landing made it: choose another --into"),
        closing(scene.target()) as target,
    ):
        target.open(scene.topic)


@pytest.mark.rest
def test_a_table_keeps_its_topic(scene: LandingScene) -> None:
    scene.land()
    with closing(scene.target()) as target:
        with pytest.raises(LandingError, match=f"holds topic {scene.topic.name} of product person: choose another"):
            target.open(LandedTopic(PRODUCT, "other", "id"))
        with pytest.raises(LandingError, match=f"holds topic {scene.topic.name} of another cluster"):
            target.open(scene.topic._replace(id="another", cluster="another"))


@pytest.mark.rest
def test_a_dropped_table_begins_again(scene: LandingScene) -> None:
    scene.publish(1, {"n": 1})
    scene.land()
    scene.sql(f"drop table {PRODUCT}")
    scene.land()
    assert scene.table() == {'{"id":1}': {"n": 1}}


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
