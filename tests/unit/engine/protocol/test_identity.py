"""The parts that belong to a registry, and those that are foreign."""

import re
from typing import Any

import pytest

from processor.engine.protocol.identity import (
    IDENTITY,
    check_binding,
    check_readable,
    is_restored,
    unfinished,
    write_identity,
)
from processor.errors import OwnedByAnother
from registry.model import Binding
from statestore.memory import MemoryStore

NEW = Binding(identity="id", job="", table="")
BOUND = Binding(identity="id", job="job", table="t")
HERE = Binding(identity="", job="job", table="t")


@pytest.mark.parametrize(
    ("registry", "parts"),
    [
        (NEW, {"table": None}),
        (NEW, {"table": ""}),
        (NEW, {"table": "id"}),
        (NEW, {"table": "id", "checkpoint": "id"}),
        (BOUND, {"table": "id"}),
        (BOUND, {"table": "id", "checkpoint": "id"}),
        (BOUND, {"table": None, "adopt": True}),
        (BOUND, {"table": "", "adopt": True}),
        (Binding(identity="id", job="before", table="t"), {"table": "id", "checkpoint": "id", "adopt": True}),
    ],
)
def test_parts_that_belong_together_pass(registry: Binding, parts: dict[str, Any]) -> None:
    check_binding(registry, HERE, **parts)


@pytest.mark.parametrize("adopt", [False, True])
@pytest.mark.parametrize(
    ("registry", "parts", "foreign"),
    [
        (NEW, {"table": "other"}, "table t is foreign: it belongs to another registry"),
        (NEW, {"table": "", "used": True}, "table t is foreign: it holds the progress of runs"),
        (NEW, {"table": None, "checkpoint": "other"}, "checkpoint .* is foreign"),
        (NEW, {"table": None, "checkpoint": ""}, "checkpoint .* is foreign"),
        (BOUND, {"table": "other"}, "table t is foreign: it belongs to another registry"),
        (BOUND, {"table": "id", "checkpoint": "other"}, "checkpoint .* is foreign"),
        (BOUND, {"table": "id", "checkpoint": ""}, "checkpoint .* is foreign"),
    ],
)
def test_a_foreign_part_is_named_whatever_the_operator_adopts(
    registry: Binding, parts: dict[str, Any], foreign: str, adopt: bool
) -> None:
    with pytest.raises(OwnedByAnother, match=foreign):
        check_binding(registry, HERE, **parts, adopt=adopt)


@pytest.mark.parametrize("table", [None, ""])
def test_an_empty_table_in_the_place_of_a_full_one_has_to_be_adopted(table: str | None) -> None:
    with pytest.raises(
        OwnedByAnother, match=r"rows in t. They are lost: build the state again .*`statestore run --adopt`"
    ):
        check_binding(BOUND, HERE, table=table)
    other = Binding(identity="", job="job", table="u")
    with pytest.raises(
        OwnedByAnother, match=r"rows in t. Run with --table t, or build the state again .*`statestore run --adopt`"
    ):
        check_binding(BOUND, other, table=table)


def test_an_adopted_empty_table_refuses_the_checkpoint_of_the_former_one() -> None:
    with pytest.raises(OwnedByAnother, match="checkpoint /c is foreign"):
        check_binding(BOUND, HERE, table="", checkpoint="id", path="/c", adopt=True)


def test_a_restored_copy_of_the_table_has_to_be_adopted_with_a_new_checkpoint() -> None:
    copy = Binding(identity="", job="job", table="restored")
    with pytest.raises(
        OwnedByAnother, match=r"table restored is foreign: it is a copy of t, .*`statestore run --adopt`"
    ):
        check_binding(BOUND, copy, table="id")
    with pytest.raises(OwnedByAnother, match="checkpoint /c is foreign"):
        check_binding(BOUND, copy, table="id", checkpoint="id", path="/c", adopt=True)
    check_binding(BOUND, copy, table="id", adopt=True)


def test_a_table_that_was_restored_under_its_own_name_has_to_be_adopted_with_a_new_checkpoint() -> None:
    with pytest.raises(
        OwnedByAnother, match=r"table t is foreign: it was restored, .*`statestore run --adopt` with a new"
    ):
        check_binding(BOUND, HERE, table="id", restored=True)
    with pytest.raises(OwnedByAnother, match="checkpoint /c is foreign"):
        check_binding(BOUND, HERE, table="id", restored=True, checkpoint="id", path="/c", adopt=True)
    check_binding(BOUND, HERE, table="id", restored=True, adopt=True)


@pytest.mark.parametrize(
    ("noted", "made", "restored"), [(5, 5, False), (5, 7, True), (None, 7, False), (5, None, False)]
)
def test_a_table_is_restored_where_it_was_made_at_another_time(
    noted: int | None, made: int | None, restored: bool
) -> None:
    store = MemoryStore(1)
    assert not is_restored(None, made)
    store.write(write_identity("id", noted))
    assert is_restored(store.get([IDENTITY])[IDENTITY], made) is restored


def test_another_job_name_has_to_be_adopted() -> None:
    with pytest.raises(
        OwnedByAnother, match=r"job job is foreign: the registry's job is before. Run with --job before, or"
    ):
        check_binding(Binding(identity="id", job="before", table="t"), HERE, table="id")


def test_a_reader_takes_the_registrys_table_only() -> None:
    check_readable(BOUND, "t", "id")
    for found in (None, "", "other"):
        with pytest.raises(OwnedByAnother, match="u is not the table of this registry t"):
            check_readable(BOUND, "u", found)
    for lost in (None, ""):
        with pytest.raises(OwnedByAnother, match="the table t has lost its rows: `statestore run` names the way"):
            check_readable(BOUND, "t", lost)
    with pytest.raises(OwnedByAnother, match="no job has run"):
        check_readable(NEW, "t", None)


@pytest.mark.parametrize(
    ("bound", "here", "flags"),
    [
        ("t", "postgres:t", "--store dynamodb --table t"),
        ("postgres:t", "t", "--store postgres --table t"),
        ("postgres:t", "postgres:other", "--table t"),
        ("t", "other", "--table t"),
    ],
)
def test_a_table_that_a_copy_left_behind_is_foreign(bound: str, here: str, flags: str) -> None:
    registry, settings = (Binding(identity="id", job="job", table=place) for place in (bound, here))
    with pytest.raises(
        OwnedByAnother, match=f"table {here} is foreign: it is a copy of {bound}, .* Run with {flags}, or"
    ):
        check_binding(registry, settings, table="id")
    check_binding(registry, settings, table="id", adopt=True)


@pytest.mark.parametrize("adopt", [False, True])
def test_a_copy_that_is_not_finished_is_foreign(adopt: bool) -> None:
    settings = Binding(identity="", job="job", table="postgres:t")
    said = "the copy of t into it is not finished. Give `statestore copy` again, or run with --store dynamodb --table t"
    with pytest.raises(OwnedByAnother, match=re.escape(said)):
        check_binding(BOUND, settings, table=unfinished("id"), adopt=adopt)
