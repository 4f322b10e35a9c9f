"""Several tables in one topic: the word of the entity picks one, and without it a row of another table is a dead letter."""

from dataclasses import replace
from typing import Any

import pytest

from processor.values.record import Ignored, Rejected, Truncated
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope

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


def test_a_record_that_names_no_table_is_of_the_entity() -> None:
    table = replace(USERS, table="users")
    assert change(table, {"id": 1}, USER) == ((1,), USER)
    assert change(table, {"id": 1}, None) == ((1,), None)
    assert change(table, {"id": 1}, {"before": None, "after": USER, "op": "c"}) == ((1,), USER)


def test_a_truncate_of_the_own_table_counts() -> None:
    assert isinstance(decoded(replace(USERS, table="users"), None, of("users", None, op="t")), Truncated)
