"""Updates that leave alone all that the indexes show: only where slots, edges, layout and shown columns stay as they are."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.plan.row_image import declared_row, image_of
from processor.engine.protocol.segments import OpenChange, SettleOutcome
from processor.engine.rounds.round_counts import RowReads, UpdateCounts
from processor.language.definitions.load import load
from processor.values.record import Change, Record
from statestore.items import Image, JoinKey, Row
from statestore.keys import Key, no_key
from statestore.writes import keep_indexed
from tests.unit.engine.protocol.edited_job import EditedJob

ENTITIES: dict[str, Any] = {
    "user": {"key": ["id"], "columns": {"id": "int", "name": "string"}},
    "town": {"key": ["city"], "columns": {"city": "string"}},
    "team": {
        "key": ["id"],
        "columns": {"id": "int", "city": "string", "members": "int[]", "wide": "string", "note": "string"},
    },
}
OF_USER = {"many": "team", "on": {"members[]": "id"}, "fields": ["id"]}
OF_TOWN = {"many": "team", "on": {"city": "city"}, "fields": ["id"]}
MANY = RowReads(counts={"team": UpdateCounts(1_000, 1_000)})
"""The counts of a job that has seen only updates that no product reads."""
KEY = Key("TABLE#team", "1")


def plan_with(*shown: str, layout: int = 1) -> Plan:
    """A plan in which the index of a city shows these columns of its teams, too."""
    of_town = {**OF_TOWN, "fields": ["id", *shown]}
    products = {
        "a": {"product": "a", "root": "user", "fields": ["id"], "embed": {"teams": OF_USER}},
        "b": {"product": "b", "root": "town", "fields": ["city"], "embed": {"teams": of_town}},
    }
    files = {"entities.yaml": json.dumps(ENTITIES)} | {f"{n}.json": json.dumps(p) for n, p in products.items()}
    plan = plan_alone(load(files), 3)
    teams = replace(plan.entities["team"], layout=layout)
    return replace(plan, entities={**plan.entities, "team": teams})


class Job(EditedJob):
    """A job that reads each team before it writes it."""

    def put(self, **row: Any) -> Row:
        """The stored team after an update."""
        self.trial.driver.rounds.row_reads = MANY
        self.send("team", {"id": 1, "city": "x", "members": [1], "wide": "w" * 600, "note": "n", **row})
        return self.team()

    def team(self) -> Row:
        return declared_row(self.trial.store.get([KEY])[KEY], self.trial.plan.entities["team"])

    def edges(self) -> dict[str, bool]:
        """Whether the table has the edge of each user."""
        names = {str(user): Key(f"EDGE#team#members[]={user}", "1") for user in (1, 2, 3)}
        return {user: key in self.trial.store.get([key]) for user, key in names.items()}


@pytest.fixture
def job() -> Job:
    job = Job(plan_with())
    job.put()
    return job


@pytest.mark.parametrize(
    "members", [[2], [1, 2], [], None, [2, 3]], ids=["another", "one more", "none", "null", "two others"]
)
def test_an_update_of_edges_alone_writes_the_row_with_its_edges(job: Job, members: list[int] | None) -> None:
    row = job.put(members=members)
    assert {key for _, key in row.edges} == {str(user) for user in members or ()}
    assert job.edges() == {str(user): user in (members or ()) for user in (1, 2, 3)}
    assert row.version_in_indexes() == row.version


def test_each_update_of_edges_removes_those_of_the_update_before(job: Job) -> None:
    for members in ([2], [3], [1]):
        job.put(members=members)
        assert job.edges() == {str(user): user in members for user in (1, 2, 3)}


@pytest.mark.parametrize("column", ["wide", "note", "members"])
def test_a_column_that_indexes_show_no_more_has_its_new_value(column: str) -> None:
    """The row keeps the column in the map of what indexes show, until a write by the new projection."""
    job = Job(plan_with(column))
    job.put(**{column: [1] if column == "members" else "old"})
    job.goes_on(plan_with())
    new: Any = [1, 2] if column == "members" else "new"
    row = job.put(**{column: new})
    assert (row.columns or {})[column] == new
    assert row.indexed == job.trial.plan.entities["team"].indexed


@pytest.mark.parametrize("column", ["wide", "note"])
def test_a_column_that_indexes_show_from_now_on_is_in_them_after_an_update_of_another_one(column: str) -> None:
    job = Job(plan_with())
    job.put()
    job.goes_on(plan_with(column))
    row = job.put(**{"note" if column == "wide" else "wide": "new"})
    assert row.indexed == job.trial.plan.entities["team"].indexed
    assert row.version_in_indexes() == row.version


def test_an_update_by_a_newer_layout_writes_what_the_indexes_show(job: Job) -> None:
    job.goes_on(plan_with(layout=2))
    row = job.put(note="new")
    assert (row.layout, row.version_in_indexes()) == (2, row.version)


CHANGED: Mapping[str, dict[str, Any]] = {
    "layout": {"layout": 2},
    "projection": {"indexed": frozenset({"id", "city", "wide"})},
    "edges": {"edges": frozenset({("members[]", "9")})},
    "a slot's key": {"slots": {1: "y"}},
    "a shown column": {"columns": {"id": 2, "city": "x", "members": [1], "wide": "w", "note": "n"}},
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED)
def test_an_image_that_differs_in_what_indexes_show_changes_it(job: Job, changed: dict[str, Any]) -> None:
    seen = job.team()
    image = _image_of(job, seen)
    assert keep_indexed(image, seen).indexed_version == seen.version_in_indexes()
    assert keep_indexed(image._replace(**changed), seen).indexed_version == ""


def _image_of(job: Job, seen: Row) -> Image:
    record = Record(topic="team", partition=0, offset=9, key=b"{}", value=b"{}")
    change = Change(record=record, entity="team", key=(1,), row=dict(seen.columns or {}))
    return image_of(change, job.trial.plan.entities["team"], KEY, None, 0)


def undeclared(row: Row) -> dict[str, Any]:
    """The members of a row that its entity does not declare. A row may hold wide columns with them."""
    return {name: value for name, value in row.more.items() if name not in ENTITIES["team"]["columns"]}


@pytest.mark.parametrize("note", ["short", "wide words " * 300])
def test_undeclared_members_that_a_source_leaves_out_are_gone_from_a_row_whose_indexes_stay(
    job: Job, note: str
) -> None:
    before = job.put(note=note, extra="old", other=1)
    assert undeclared(before) == {"extra": "old", "other": 1}
    assert undeclared(job.put(note=note, other=2)) == {"other": 2}
    row = job.put(note=note)
    assert undeclared(row) == {}
    assert row.version_in_indexes() < row.version
    assert (row.columns or {})["note"] == note


@pytest.mark.parametrize("name", ["wide", "note"])
def test_wide_columns_that_become_small_lie_no_more_with_the_others(job: Job, name: str) -> None:
    job.put(wide="w" * 3_000, note="n" * 3_000)
    row = job.put(**{"wide": "w" * 3_000, "note": "n" * 3_000, name: "s"})
    assert (row.columns or {})[name] == "s"
    row = job.put(wide="s", note="s")
    assert [(row.columns or {})[one] for one in ("wide", "note")] == ["s", "s"]
    assert "_more" not in job.trial.store.get([KEY])[KEY]


A, B, C, NONE = (1, "a"), (1, "b"), (2, "c"), (1, no_key(KEY))
OLD: tuple[JoinKey, ...] = ((1, "z"), ("team.members", "5"))


@pytest.mark.parametrize(
    ("had", "has", "former"),
    [
        ((A,), (B,), {A}),
        ((A, C), (B, C), {A}),
        ((A, C), (NONE, (2, no_key(KEY))), {A, C}),
        ((A,), (A,), set()),
    ],
    ids=["one slot", "one of two", "both", "the same"],
)
def test_a_change_that_stays_open_keeps_the_slots_that_its_row_has_no_more(
    had: tuple[Any, ...], has: tuple[Any, ...], former: set[Any]
) -> None:
    change = OpenChange("team", KEY, "001", had, frozenset(OLD))
    for version, shown in (("002", False), ("002", True), ("001", False)):
        left = SettleOutcome(change, version, has, shown).left
        assert left is not None
        assert (left.version, left.slots, set(left.former)) == (version, has, {*OLD, *former})
    assert SettleOutcome(change, "001", has, True).left is None
