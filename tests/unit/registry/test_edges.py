"""Joins that edges answer: they take no slot, and an entity has its edges from its first row on."""

from dataclasses import replace

import pytest

from processor.cli.status import board_text
from processor.tools.inspect.board import board_json
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.errors import ColumnHeld, ColumnUsed, Malformed
from registry.model import KEY, EdgePath, EntityEntry, Index, JoinAccess, JoinSpec, ProductEntry, Requirements, Snapshot

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
            JoinAccess(join=MEMBERS, down=KEY, up=BY_MEMBER),
            JoinAccess(join=ALLIES, down=BY_ORG, up=BY_ORG),
        ),
        groups=(),
    )


@pytest.fixture
def applied(required: Requirements, empty: Snapshot) -> Snapshot:
    return edited(empty, apply(empty, required, has_run=()))


def test_edges_take_no_slot(required: Requirements, empty: Snapshot) -> None:
    change = apply(empty, required, has_run=())
    assert change.assignments == ()
    assert change.changes[2:4] == (
        "join person(id) = team(member_ids[]): added, down by key, up by edges by member_ids[]",
        "join team(org) = team(org), strong: added, down by edges by org, up by edges by org",
    )


def test_the_same_requirements_twice_change_nothing(required: Requirements, applied: Snapshot) -> None:
    assert apply(applied, required, has_run=("team", "person")).changes == ()


def test_a_strong_join_is_another_one_than_the_same_equality_by_slots(
    required: Requirements, applied: Snapshot
) -> None:
    plain = replace(ALLIES, strong=False)
    need = Index(entity="team", columns=("org",))
    other = ProductEntry(name="other", topic="other", root="team", definition={}, joins=(plain,))
    more = replace(required, products=(other,), paths=(*required.paths, JoinAccess(join=plain, down=need, up=need)))
    assert apply(applied, more, has_run=()).changes[0] == "entity team: GSI_1 holds org"


def test_a_product_waits_for_new_edges_of_stored_rows(required: Requirements, applied: Snapshot) -> None:
    stored = replace(applied, products=(), joins=())
    change = apply(stored, required, has_run=("team",))
    assert change.changes == (
        "join person(id) = team(member_ids[]): added, down by key, up by edges by member_ids[]",
        "join team(org) = team(org), strong: added, down by edges by org, up by edges by org",
        "product teams: added, version 2 waits until its slots are full",
    )
    after = edited(stored, change)
    assert after.edge_paths() == (BY_MEMBER, BY_ORG)
    assert {one.name: one.layout for one in after.entities} == {"person": 0, "team": after.version}


def test_edges_that_another_join_uses_already_are_no_new_layout(required: Requirements, applied: Snapshot) -> None:
    allies = JoinSpec(child="team", child_columns=("org",), parent="person", parent_columns=("org",), strong=True)
    product = ProductEntry(name="orgs", topic="orgs", root="person", definition={}, joins=(allies,))
    by_org = EdgePath(entity="person", fields=("org",))
    person = entity("person", org="string")
    wanted = Requirements(
        entities=(person,),
        products=(product,),
        paths=(JoinAccess(join=allies, down=BY_ORG, up=by_org),),
        groups=(),
    )
    after = edited(applied, apply(applied, wanted, has_run=("team",)))
    assert {one.name: one.layout for one in after.entities} == {"person": after.version, "team": 1}


def test_a_column_that_edges_hold_keeps_its_type_once_a_job_has_run(required: Requirements, applied: Snapshot) -> None:
    def changed(**columns: str) -> Requirements:
        return Requirements(entities=(entity("team", **columns),), products=(), paths=(), groups=())

    with pytest.raises(ColumnUsed, match=r"column member_ids is declared no more, but an edge by member_ids\[\] holds"):
        apply(applied, changed(org="string"), has_run=())
    texts = changed(org="string", member_ids="string[]")
    with pytest.raises(ColumnHeld, match=r"the type of member_ids was int\[\] and is now string\[\]"):
        apply(applied, texts, has_run=("team",))
    assert apply(applied, texts, has_run=()).changes == ("entity team: changed",)


def test_edges_answer_only_the_side_whose_rows_they_name(required: Requirements, empty: Snapshot) -> None:
    crossed = (JoinAccess(join=MEMBERS, down=BY_MEMBER, up=BY_MEMBER), required.paths[1])
    with pytest.raises(Malformed, match="do not answer it down"):
        apply(empty, replace(required, paths=crossed), has_run=())


def test_the_board_shows_edges_below_the_key(applied: Snapshot) -> None:
    assert board_text(applied, "slot ") == "\n".join(
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
