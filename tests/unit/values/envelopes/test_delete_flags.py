"""Deletes that a member of a row says: by the entity's word they delete, and without it nobody stores the row."""

from dataclasses import replace
from typing import Any

import pytest

from processor.values.entity import DeleteFlag
from processor.values.record import Change, Rejected
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope

USER = entity("user", "id", "id int, name string")
FLAGS: list[tuple[dict[str, Any], str, Any, tuple[str, ...]]] = [
    ({"op_type": "D"}, "op_type", "I", ("D",)),
    ({"_op": "d"}, "_op", "u", ("d",)),
    ({"Op": "DELETE"}, "Op", "INSERT", ("DELETE",)),
    ({"op": "delete"}, "op", "insert", ("delete",)),
    ({"__op": "D", "__deleted": None}, "__op", "u", ("D",)),
    ({"operation": "Delete"}, "operation", "Update", ("Delete",)),
    ({"changeType": "D"}, "changeType", "U", ("D",)),
    ({"_change_type": "delete"}, "_change_type", "update_postimage", ("delete",)),
    ({"__CDC_OPERATION": "D"}, "__CDC_OPERATION", "I", ("D",)),
    ({"_rowkind": "-D"}, "_rowkind", "+U", ("-D",)),
    ({"header__change_oper": "D"}, "header__change_oper", "U", ("D",)),
    ({"__$operation": 1}, "__$operation", 2, ("1",)),
    ({"_deleted": True}, "_deleted", False, ("true",)),
    ({"_deleted": "true"}, "_deleted", "false", ("true",)),
    ({"_fivetran_deleted": True}, "_fivetran_deleted", False, ()),
    ({"__is_deleted": 1}, "__is_deleted", 0, ("1",)),
    ({"_ab_cdc_deleted_at": "2026-03-01T09:00:00Z"}, "_ab_cdc_deleted_at", None, ()),
    ({"_sdc_deleted_at": "2026-03-01"}, "_sdc_deleted_at", None, ()),
    ({"_cdc": {"op": "D", "ts": 2}}, "_cdc.op", {"op": "I"}, ("D",)),
    ({"_cdc.op": "D"}, "_cdc.op", "I", ("D",)),
    ({"_meta": {"deleted": True}}, "_meta.deleted", {"deleted": False}, ("true",)),
    ({"_metadata": {"operation": "DELETE"}}, "_metadata.operation", {}, ("DELETE",)),
]


@pytest.mark.parametrize(("more", "column", "alive", "values"), FLAGS)
def test_a_row_that_may_say_a_delete_is_a_dead_letter_which_names_the_word(
    more: dict[str, Any], column: str, alive: Any, values: tuple[str, ...]
) -> None:
    for table in (USER, replace(USER, format="plain"), replace(USER, format="flattened")):
        result = decoded(table, {"id": 1}, {"id": 1, "name": "a", **more})
        assert isinstance(result, Rejected), result
        assert result.code == "delete-unsaid"
        assert f"`deleted: {{column: {column}" in result.reason
    assert (
        change(USER, {"id": 1}, {"id": 1, "name": "a", **dict.fromkeys(more), next(iter(more)): alive})[1] is not None
    )


@pytest.mark.parametrize(("more", "column", "alive", "values"), FLAGS)
def test_the_word_of_an_entity_deletes_by_the_flag(
    more: dict[str, Any], column: str, alive: Any, values: tuple[str, ...]
) -> None:
    for pinned in (None, "plain", "flattened"):
        table = replace(USER, format=pinned, deleted=(DeleteFlag(column, values),))
        assert change(table, None, {"id": 1, "name": "a", **more}) == ((1,), None)
        key, row = change(table, {"id": 1}, {"id": 1, "name": "a", **dict.fromkeys(more), next(iter(more)): alive})
        assert (key, row and row["name"]) == ((1,), "a")
        assert change(table, {"id": 1}, None) == ((1,), None)


@pytest.mark.parametrize(
    "more",
    [
        {"deleted": True},
        {"is_deleted": 1},
        {"deleted_at": "2026-01-01"},
        {"status": "deleted"},
        {"type": "delete"},
        {"op_type": "I"},
        {"op_type": "dismissal"},
        {"_cdc": {"op": "U"}},
        {"_cdc": "D"},
        {"_deleted": False},
        {"_ab_cdc_deleted_at": None},
        {"__v": 3},
    ],
)
def test_a_row_without_such_a_flag_is_a_row(more: dict[str, Any]) -> None:
    key, row = change(USER, None, {"id": 1, "name": "a", **more})
    assert (key, row and row["name"]) == ((1,), "a")


def test_a_declared_column_is_no_flag() -> None:
    columns = entity("t", "id", "id int, op_type string, _deleted bool, _cdc json")
    row = {"id": 1, "op_type": "D", "_deleted": True, "_cdc": {"op": "D"}}
    assert change(columns, None, row) == ((1,), row)


def test_a_column_of_an_envelope_is_no_flag() -> None:
    after = {"id": 1, "name": "a", "op_type": "D", "_deleted": True}
    table = replace(USER, deleted=(DeleteFlag("op_type", ("D",)),))
    for one in (USER, table):
        assert change(one, None, envelope("c", after=after)) == ((1,), after)


def test_a_flattened_record_that_says_that_it_is_no_delete_is_a_row() -> None:
    row = {"id": 1, "name": "a", "_op": "d", "__deleted": "false", "__op": "u"}
    assert isinstance(decoded(USER, None, row), Change)


def test_a_value_that_the_word_lacks_and_that_may_say_a_delete_is_a_dead_letter() -> None:
    table = replace(USER, deleted=(DeleteFlag("op_type", ("D",)),))
    for value in ("DELETE", "d", "-D"):
        result = decoded(table, None, {"id": 1, "name": "a", "op_type": value})
        assert isinstance(result, Rejected), result
        assert f"values: [{value}]" in result.reason


def test_an_entity_may_have_several_flags() -> None:
    table = replace(USER, deleted=(DeleteFlag("_op", ("d",)), DeleteFlag("_cdc.op", ("D",))))
    assert change(table, None, {"id": 1, "name": "a", "_op": "d", "_deleted": True})[1] is None
    assert change(table, None, {"id": 1, "name": "a", "_cdc": {"op": "D"}})[1] is None
    assert change(table, None, {"id": 1, "name": "a"})[1] is not None


@pytest.mark.parametrize("name", ["__v", "__typename", "__mine", "__schema_version"])
def test_a_flattened_record_keeps_the_columns_that_are_not_debeziums(name: str) -> None:
    metadata = {"__op": "u", "__deleted": "false", "__table": "user", "__source_ts_ms": 1, "__lsn": 5, "__scn": 7}
    found = change(USER, None, {"id": 1, "name": "a", name: 0, **metadata, "__transaction_total_order": 3})
    assert found == ((1,), {"id": 1, "name": "a", name: 0})
