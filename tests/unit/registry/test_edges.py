"""Joins that edges answer: they take no slot, and are kept from an entity's first row on."""

from dataclasses import replace

import pytest

from registry.board import board, board_json
from registry.edit import edit
from registry.errors import DefinitionChanged, Malformed, NeedsBackfill
from registry.model import KEY, EdgeRead, EntityEntry, JoinPaths, JoinSpec, Need, Plan, ProductEntry, Snapshot

MEMBERS = JoinSpec(child="person", child_columns=("id",), parent="team", parent_columns=("member_ids[]",))
BY_MEMBER = EdgeRead(entity="team", fields=("member_ids[]",))
ALLIES = JoinSpec(child="team", child_columns=("org",), parent="team", parent_columns=("org",), strong=True)
BY_ORG = EdgeRead(entity="team", fields=("org",))


def entity(name: str, **columns: str) -> EntityEntry:
    return EntityEntry(name=name, topic=name, key=("id",), shards=1, columns={"id": "int"} | columns, definition={})


@pytest.fixture
def plan() -> Plan:
    """Teams with their members, by a list join, and with the teams of their org, by a strong one."""
    product = ProductEntry(name="teams", topic="teams", root="team", definition={}, joins=(MEMBERS, ALLIES))
    return Plan(
        entities=(entity("team", org="string", member_ids="int[]"), entity("person")),
        products=(product,),
        paths=(
            JoinPaths(join=MEMBERS, down=KEY, up=BY_MEMBER),
            JoinPaths(join=ALLIES, down=BY_ORG, up=BY_ORG),
        ),
        groups=(),
    )


@pytest.fixture
def applied(plan: Plan, empty: Snapshot) -> Snapshot:
    change = edit(empty, plan, has_run=())
    return replace(
        empty,
        version=1,
        entities=tuple(sorted(change.entities, key=lambda one: one.name)),
        products=change.products,
        joins=change.joins,
    )


def test_edges_take_no_slot(plan: Plan, empty: Snapshot) -> None:
    change = edit(empty, plan, has_run=())
    assert change.assignments == ()
    assert change.says[2:4] == (
        "join person(id) = team(member_ids[]): added, down by key, up by edges by member_ids[]",
        "join team(org) = team(org), strong: added, down by edges by org, up by edges by org",
    )


def test_the_same_plan_twice_changes_nothing(plan: Plan, applied: Snapshot) -> None:
    assert edit(applied, plan, has_run=("team", "person")).says == ()


def test_a_strong_join_is_another_one_than_the_same_equality_by_slots(plan: Plan, applied: Snapshot) -> None:
    plain = replace(ALLIES, strong=False)
    need = Need(entity="team", columns=("org",))
    other = ProductEntry(name="other", topic="other", root="team", definition={}, joins=(plain,))
    more = replace(plan, products=(other,), paths=(*plan.paths, JoinPaths(join=plain, down=need, up=need)))
    assert edit(applied, more, has_run=()).says[0] == "entity team: GSI_1 holds org"


@pytest.mark.parametrize("kept", [(), (MEMBERS,), (ALLIES,)])
def test_new_edges_of_an_entity_that_a_job_has_run_with_need_a_backfill(
    plan: Plan, applied: Snapshot, kept: tuple[JoinSpec, ...]
) -> None:
    stored = replace(applied, joins=tuple(one for one in applied.joins if one.join in kept))
    assert edit(stored, plan, has_run=("person",)).joins
    with pytest.raises(NeedsBackfill, match=r"entity team: edges by .* would be new, but a job has run with team"):
        edit(stored, plan, has_run=("team",))


def test_a_column_that_edges_hold_keeps_its_type_once_a_job_has_run(plan: Plan, applied: Snapshot) -> None:
    def changed(**columns: str) -> Plan:
        return Plan(entities=(entity("team", **columns),), products=(), paths=(), groups=())

    with pytest.raises(DefinitionChanged, match=r"column member_ids, which an edge by member_ids\[\] holds, was int"):
        edit(applied, changed(org="string"), has_run=())
    texts = changed(org="string", member_ids="string[]")
    with pytest.raises(NeedsBackfill, match=r"the type of member_ids was int\[\] and is now string\[\]"):
        edit(applied, texts, has_run=("team",))
    assert edit(applied, texts, has_run=()).says == ("entity team: changed",)


def test_edges_answer_the_side_that_they_are_of(plan: Plan, empty: Snapshot) -> None:
    crossed = (JoinPaths(join=MEMBERS, down=BY_MEMBER, up=BY_MEMBER), plan.paths[1])
    with pytest.raises(Malformed, match="do not answer it down"):
        edit(empty, replace(plan, paths=crossed), has_run=())


def test_the_board_shows_edges_below_the_key(applied: Snapshot) -> None:
    assert board(applied) == "\n".join(
        [
            "entity  key",
            "------  ------------------",
            "person  id",
            "        down from team",
            "team    id",
            "        edges member_ids[]",
            "        up from person",
            "        edges org",
            "        down from team",
            "        up from team",
        ]
    )
    assert board_json(applied)["entities"][1]["edges"] == [
        {"fields": ["member_ids[]"], "serves": ["up from person"]},
        {"fields": ["org"], "serves": ["down from team", "up from team"]},
    ]
