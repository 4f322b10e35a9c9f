"""Joins that edges answer: they take no slot, and an entity has its edges from its first row on."""

from dataclasses import replace

import pytest

from processor.cli.apply_command import board_text
from registry.edit import edit
from registry.errors import DefinitionChanged, Malformed, NeedsBackfill
from registry.model import KEY, EdgePath, EntityEntry, JoinPaths, JoinSpec, Need, ProductEntry, Requirements, Snapshot
from registry.slot_board import board_json

MEMBERS = JoinSpec(child="person", child_columns=("id",), parent="team", parent_columns=("member_ids[]",))
BY_MEMBER = EdgePath(entity="team", fields=("member_ids[]",))
ALLIES = JoinSpec(child="team", child_columns=("org",), parent="team", parent_columns=("org",), strong=True)
BY_ORG = EdgePath(entity="team", fields=("org",))


def entity(name: str, **columns: str) -> EntityEntry:
    return EntityEntry(name=name, topic=name, key=("id",), shards=1, columns={"id": "int"} | columns, definition={})


@pytest.fixture
def required() -> Requirements:
    """Teams with their members, by a list join, and with the teams of their org, by a strong one."""
    product = ProductEntry(name="teams", topic="teams", root="team", definition={}, joins=(MEMBERS, ALLIES))
    return Requirements(
        entities=(entity("team", org="string", member_ids="int[]"), entity("person")),
        products=(product,),
        paths=(
            JoinPaths(join=MEMBERS, down=KEY, up=BY_MEMBER),
            JoinPaths(join=ALLIES, down=BY_ORG, up=BY_ORG),
        ),
        groups=(),
    )


@pytest.fixture
def applied(required: Requirements, empty: Snapshot) -> Snapshot:
    change = edit(empty, required, has_run=())
    return replace(
        empty,
        version=1,
        entities=tuple(sorted(change.entities, key=lambda one: one.name)),
        products=change.products,
        joins=change.joins,
    )


def test_edges_take_no_slot(required: Requirements, empty: Snapshot) -> None:
    change = edit(empty, required, has_run=())
    assert change.assignments == ()
    assert change.changes[2:4] == (
        "join person(id) = team(member_ids[]): added, down by key, up by edges by member_ids[]",
        "join team(org) = team(org), strong: added, down by edges by org, up by edges by org",
    )


def test_the_same_requirements_twice_change_nothing(required: Requirements, applied: Snapshot) -> None:
    assert edit(applied, required, has_run=("team", "person")).changes == ()


def test_a_strong_join_is_another_one_than_the_same_equality_by_slots(
    required: Requirements, applied: Snapshot
) -> None:
    plain = replace(ALLIES, strong=False)
    need = Need(entity="team", columns=("org",))
    other = ProductEntry(name="other", topic="other", root="team", definition={}, joins=(plain,))
    more = replace(required, products=(other,), paths=(*required.paths, JoinPaths(join=plain, down=need, up=need)))
    assert edit(applied, more, has_run=()).changes[0] == "entity team: GSI_1 holds org"


@pytest.mark.parametrize("stored_joins", [(), (MEMBERS,), (ALLIES,)])
def test_new_edges_of_an_entity_that_a_job_has_run_with_need_a_backfill(
    required: Requirements, applied: Snapshot, stored_joins: tuple[JoinSpec, ...]
) -> None:
    stored = replace(applied, joins=tuple(one for one in applied.joins if one.join in stored_joins))
    assert edit(stored, required, has_run=("person",)).joins
    with pytest.raises(NeedsBackfill, match=r"entity team: edges by .* would be new, but a job has run with team"):
        edit(stored, required, has_run=("team",))


def test_a_column_that_edges_hold_keeps_its_type_once_a_job_has_run(required: Requirements, applied: Snapshot) -> None:
    def changed(**columns: str) -> Requirements:
        return Requirements(entities=(entity("team", **columns),), products=(), paths=(), groups=())

    with pytest.raises(DefinitionChanged, match=r"column member_ids, which an edge by member_ids\[\] holds, was int"):
        edit(applied, changed(org="string"), has_run=())
    texts = changed(org="string", member_ids="string[]")
    with pytest.raises(NeedsBackfill, match=r"the type of member_ids was int\[\] and is now string\[\]"):
        edit(applied, texts, has_run=("team",))
    assert edit(applied, texts, has_run=()).changes == ("entity team: changed",)


def test_edges_answer_only_the_side_whose_rows_they_name(required: Requirements, empty: Snapshot) -> None:
    crossed = (JoinPaths(join=MEMBERS, down=BY_MEMBER, up=BY_MEMBER), required.paths[1])
    with pytest.raises(Malformed, match="do not answer it down"):
        edit(empty, replace(required, paths=crossed), has_run=())


def test_the_board_shows_edges_below_the_key(applied: Snapshot) -> None:
    assert board_text(applied) == "\n".join(
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
