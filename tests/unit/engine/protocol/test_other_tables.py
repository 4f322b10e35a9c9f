"""Several tables in one topic: the word of the entity picks one, and without it a row of another table is a dead letter."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.decode import TopicEntities
from processor.engine.protocol.gates import tables_of
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.tools.inspect.price import price_events
from processor.values.envelopes.kinds import FORMATS
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Ignored, Record, Rejected, Truncated
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope, raw

USERS = replace(entity("user", "id", "id int, name string"), topic="app.public.users")
ORDER = {"id": 1, "total": 5, "state": "new"}
USER = {"id": 1, "name": "Ann"}


def of(table: str, row: Any, op: str = "c", **place: str) -> dict[str, Any]:
    return {**envelope(op, after=row), "source": {"table": table, **place}}


def flattened(table: str, row: Any) -> dict[str, Any]:
    return {**row, "__op": "c", "__deleted": "false", "__table": table, "__db": "shop"}


@pytest.mark.parametrize(
    "value",
    [
        of("orders", ORDER),
        of("orders", ORDER, db="shop", schema="public"),
        flattened("orders", ORDER),
        {"schema": None, "payload": of("invoices", {"id": 1, "sum": 3})},
        {"id": 1, "sum": 3, "__op": "c", "__source_table": "invoices"},
        {**envelope("c", after=ORDER), "source": {"collection": "orders", "db": "shop"}},
    ],
)
def test_a_row_of_another_table_without_a_declared_column_is_a_dead_letter(value: Any) -> None:
    result = decoded(USERS, {"id": 1}, value)
    assert isinstance(result, Rejected), result
    assert result.code == "other-table"
    assert "write `table` in the entity" in result.reason


@pytest.mark.parametrize("table", ["users", "user", "USERS", "t", "users_2024", "shard_7"])
def test_a_topic_may_have_any_name_and_its_table_too(table: str) -> None:
    assert change(USERS, {"id": 1}, of(table, USER)) == ((1,), USER)
    assert change(USERS, {"id": 1}, flattened(table, USER)) == ((1,), USER)


@pytest.mark.parametrize("word", ["users", "public.users", "shop.public.users", "shop.users"])
def test_the_table_of_an_entity_picks_its_rows_and_the_job_ignores_others(word: str) -> None:
    table = replace(USERS, table=word)
    assert change(table, {"id": 1}, of("users", USER, db="shop", schema="public")) == ((1,), USER)
    others = [of("orders", USER, db="shop", schema="public"), of("orders", None, op="t"), of("orders", None, op="d")]
    others += [{**USER, "__op": "c", "__table": "orders"}]
    others += [of("users", USER, db="x", schema="old")] if "." in word else []
    for other in others:
        result = decoded(table, {"id": 1}, other)
        assert isinstance(result, Ignored), (other, result)
        assert result.why == "other table"


@pytest.mark.parametrize("value", [USER, {"before": None, "after": USER, "op": "c"}, {**USER, "__op": "c"}, None])
def test_a_record_that_names_no_table_is_a_dead_letter_where_the_entity_picks_one(value: Any) -> None:
    result = decoded(replace(USERS, table="users"), {"id": 1}, value)
    assert isinstance(result, Rejected), result
    assert result.code == "other-table"
    assert "names no table, and entity user has `table: users`" in result.reason


def test_a_null_value_deletes_no_row_of_a_topic_of_several_tables() -> None:
    table = replace(USERS, table="users")
    for name in (name for name, kind in FORMATS.items() if kind.wraps):
        result = decoded(replace(table, format=name), {"id": 1}, None)
        assert isinstance(result, Ignored), (name, result)
        assert result.why == "control"
    result = decoded(replace(table, format="flattened"), {"id": 1}, None)
    assert isinstance(result, Rejected)
    assert "delete.tombstone.handling.mode=rewrite" in result.reason


PICKED = {"user": {"topic": "app", "table": "users", "key": ["id"], "columns": {"id": "int", "name": "string"}}}


def test_records_of_other_tables_count_by_topic() -> None:
    files = {"entities.yaml": json.dumps(PICKED), "p.yaml": json.dumps({"product": "p", "root": "user"})}
    trial = Trial(plan=plan_alone(load(files), 3), settings=Settings())
    values = map(raw, (of("users", USER), of("orders", USER), of("items", USER)))
    trial.batch([Record(topic="app", partition=0, offset=n, key=None, value=value) for n, value in enumerate(values)])
    counted = {name: count for name, count in trial.tally.items() if name.endswith("in app")}
    assert counted == {"ignored: other table in app": 2, "ignored in app": 2, "applied in app": 1}


@pytest.mark.parametrize("form", ["plain", "row"])
def test_a_form_whose_records_name_no_table_takes_no_table(form: str) -> None:
    entities = {"user": {**PICKED["user"], "format": form, "deleted": {"column": "gone"}}}
    with pytest.raises(DefinitionError, match=f"pins `format: {form}`, whose records name no table"):
        load({"entities.yaml": json.dumps(entities)})


def test_an_event_of_an_entity_that_picks_a_table_has_a_price() -> None:
    files = {"entities.yaml": json.dumps(PICKED), "p.yaml": json.dumps({"product": "p", "root": "user"})}
    whole = {**files, "entities.yaml": json.dumps({"user": {k: v for k, v in PICKED["user"].items() if k != "table"}})}
    prices = [price_events(plan_alone(load(one), 3), Settings()) for one in (files, whole)]
    assert prices[0] == prices[1]


def test_a_truncate_of_the_own_table_counts() -> None:
    assert isinstance(decoded(replace(USERS, table="users"), None, of("users", None, op="t")), Truncated)


SHARED = {
    **PICKED,
    "order": {"topic": "app", "table": "orders", "key": ["id"], "columns": {"id": "int", "total": "int"}},
}
DOCUMENTS = {
    "p.yaml": json.dumps({"product": "p", "root": "user", "embed": {"orders": {"many": "order", "on": {"id": "id"}}}})
}


def test_entities_share_a_topic_and_each_record_is_of_the_entity_that_picks_its_table() -> None:
    trial = Trial(plan=plan_alone(load({"entities.yaml": json.dumps(SHARED), **DOCUMENTS}), 3), settings=Settings())
    values = map(raw, (of("users", USER), of("orders", ORDER), of("items", USER)))
    trial.batch([Record(topic="app", partition=0, offset=n, key=None, value=value) for n, value in enumerate(values)])
    counted = {name: count for name, count in trial.tally.items() if name.endswith("in app")}
    assert counted == {"ignored: other table in app": 1, "ignored in app": 1, "applied in app": 2}
    (document,) = [json.loads(message.value or b"") for message in trial.published.messages]
    assert document["orders"] == [ORDER]


def test_a_schema_counts_before_a_database_where_both_name_the_table_of_an_entity() -> None:
    tables = [replace(USERS, name=name, topic="app", table=f"{name}.users") for name in ("shop", "public")]
    record = Record(
        topic="app", partition=0, offset=0, key=None, value=raw(of("users", USER, db="shop", schema="public"))
    )
    found = TopicEntities(tables).of(record)
    assert found is not None
    assert found.name == "public"


@pytest.mark.parametrize("value", [b"{", b"[1]", b"5", None, {"schema": None, "payload": [1]}, of("other", USER)])
def test_a_record_of_a_shared_topic_that_names_no_known_table_is_of_the_first_entity(value: Any) -> None:
    """It says that the record is a dead letter, or counts it as ignored."""
    tables = [replace(USERS, name=name, topic="app", table=name) for name in ("a", "b")]
    entities = TopicEntities([*tables, replace(USERS, topic="alone")])
    for topic, found in (("app", tables[0]), ("alone", USERS), ("none", None)):
        one = entities.of(Record(topic=topic, partition=0, offset=0, key=None, value=raw(value)))
        assert (one and one.name) == (found and found.name)


def test_the_schemas_of_a_record_of_a_shared_topic_are_fetched_before_its_table_is_read() -> None:
    tables = [replace(USERS, name=name, topic="app", table=name) for name in ("a", "b")]
    fetched: list[Record] = []

    class Reader:
        framing = NO_SCHEMAS.framing

        def fetch(self, record: Record) -> None:
            fetched.append(record)

        def read(self, record: Record, part: str) -> Any:
            return of("b", USER) if fetched and part == "value" else {}

    framed = Record(topic="app", partition=0, offset=0, key=None, value=b"\0\0\0\0\1x")
    reader: Any = Reader()
    assert TopicEntities(tables).of(framed, reader) is tables[1]
    assert fetched == [framed]


def test_a_letter_in_a_shared_topic_is_of_the_entity_that_picks_its_table_now() -> None:
    """Whatever entity a job named when it refused the record."""
    tables = [replace(USERS, name=name, topic="app", table=name) for name in ("a", "b")]
    record = Record(topic="app", partition=0, offset=0, key=None, value=raw(of("b", {"id": "x"})))
    found = TopicEntities(tables).of_letter(Rejected(record=record, reason="", code="column-type", entity="a"))
    assert found is tables[1]


def test_a_repair_in_a_shared_topic_is_of_the_entity_that_it_names() -> None:
    tables = [replace(USERS, name=name, topic="app", table=name) for name in ("a", "b")]
    record = Record(topic="app", partition=0, offset=0, key=raw({"id": 1}), value=raw(USER))
    found = TopicEntities(tables).of_letter(Rejected(record=record, reason="", code="source-differs", entity="b"))
    assert found is tables[1]


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        (
            "users",
            "",
            "entity `b` has the topic `app`, which entity `a` already has; give each its own `topic`; if it has several",
        ),
        ("", "users", "entity `b` has the topic `app`, which entity `a` already has"),
        ("users", "users", "entities `a` and `b` of topic `app` pick the tables `users` and `users`"),
        ("public.users", "users", "pick the tables `public.users` and `users`"),
        ("users", "shop.public.users", "pick the tables `users` and `shop.public.users`"),
    ],
)
def test_entities_share_a_topic_only_where_each_picks_a_table_of_its_own(one: str, other: str, problem: str) -> None:
    tables = {"a": one, "b": other}
    entities = {
        name: {"topic": "app", "key": ["id"], "columns": {"id": "int"}} | ({"table": table} if table else {})
        for name, table in tables.items()
    }
    with pytest.raises(DefinitionError, match=problem):
        load({"entities.yaml": json.dumps(entities)})


def test_an_entity_of_a_shared_topic_with_transactions_names_its_table_as_their_ends_do() -> None:
    entities = {"transactions": "app.transaction", **SHARED}
    with pytest.raises(
        DefinitionError, match="entity `user` shares its topic and has `transactions`, and its `table` lacks"
    ):
        load({"entities.yaml": json.dumps(entities)})
    entities = {name: one | {"table": f"public.{one['table']}"} for name, one in SHARED.items()}
    product = json.loads(DOCUMENTS["p.yaml"]) | {"publish": {"transactions": "whole"}}
    files = {
        "entities.yaml": json.dumps({"transactions": "app.transaction", **entities}),
        "p.yaml": json.dumps(product),
    }
    assert tables_of(plan_alone(load(files), 3)) == {"app.transaction": {"public.users", "public.orders"}}
