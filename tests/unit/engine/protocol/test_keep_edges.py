"""The requests around the write of a row, word for word and in their order."""

from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.plan.step import RefusedChange, Step, Touch, WeakKey
from processor.engine.protocol.write_state import keep_edges, write_state
from processor.language.definitions.load import load
from processor.values.record import UNAVAILABLE, Change, Record
from statestore.items import encode_version
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import AbsentOrWithin, TooLarge
from statestore.writes import drop_edge, put_edge
from tests.support.published_rows import published_below
from tests.unit.engine.protocol.dialogue import answers_of, crash_step, run_step

PLAN: Plan = plan_alone(
    load(
        {
            "entities.yaml": """
                team: {key: [id], columns: {id: int, org: string, member_ids: "int[]"}}
                person: {key: [id], columns: {id: int}}
            """,
            "teams.yaml": """
                product: teams
                root: team
                embed:
                  members: {many: person, on: {id: "member_ids[]"}}
                  allies: {many: team, on: {org: org}, strong: true, value: id}
            """,
        }
    ),
    20,
)
TEAM = Key("TABLE#team", "1")
V = [encode_version(0, 0, n) for n in range(10)]


def change(offset: int, *, org: str = "x", members: Any = ()) -> Step[Touch | RefusedChange]:
    """The step that writes team 1 at this offset, in a batch of its own; a delete when `members` is None."""
    record = Record(topic="team", partition=0, offset=offset, key=None, value=None)
    row = None if members is None else {"id": 1, "org": org, "member_ids": members}
    found = Change(entity="team", key=(1,), row=row, record=record)
    writing = write_state(found, PLAN.entities["team"], published=published_below(V[offset]), expires_at=99)
    return keep_edges(writing, PLAN.entities["team"])


def write(store: MemoryStore, offset: int, *, org: str = "x", members: Any = ()) -> tuple[list[tuple[Any, ...]], Touch]:
    """Writes team 1: the requests, turn by turn, and the touch."""
    asked, touch = run_step(change(offset, org=org, members=members), store)
    assert isinstance(touch, Touch)
    return asked, touch


def edges(store: MemoryStore) -> set[str]:
    return {
        name
        for name in (*(f"member_ids[]={n}" for n in range(5)), "org=x", "org=y")
        if store.partition(f"EDGE#team#{name}")
    }


def test_the_new_edges_come_first_then_the_row_then_the_dropped_edges_go() -> None:
    store = MemoryStore()
    write(store, 1, members=[1, 2, 1, None])
    asked, touch = write(store, 2, org="y", members=[2, 3])

    assert [len(requests) for requests in asked] == [3, 1, 2]
    assert asked[0] == tuple(
        put_edge(TEAM, edge, V[2]) for edge in (("member_ids[]", "2"), ("member_ids[]", "3"), ("org", "y"))
    )
    (row,) = asked[1]
    assert (row.key, row.copy, row.when) == (
        TEAM,
        {"_edges_before": "_edges"},
        AbsentOrWithin("_v", V[0], V[2], "_replayed"),
    )
    assert row.set["_edges"] == '[["member_ids[]","2"],["member_ids[]","3"],["org","y"]]'
    assert asked[2] == (drop_edge(TEAM, ("member_ids[]", "1"), V[2]), drop_edge(TEAM, ("org", "x"), V[2]))
    assert edges(store) == {"member_ids[]=2", "member_ids[]=3", "org=y"}
    assert touch.former_keys == {("member_ids[]", "1"), ("org", "x")}


def test_every_edge_is_put_also_an_edge_that_is_there() -> None:
    store = MemoryStore()
    write(store, 1, members=[1])
    asked, _ = write(store, 2, members=[1])
    assert asked[0] == (put_edge(TEAM, ("member_ids[]", "1"), V[2]), put_edge(TEAM, ("org", "x"), V[2]))
    assert len(asked) == 2


def test_a_deleted_row_loses_its_edges_and_a_created_one_gets_them() -> None:
    store = MemoryStore()
    write(store, 1, members=[1, 2])
    asked, _ = write(store, 2, members=None)
    assert asked[0][0].set["_edges"] == "[]"
    assert edges(store) == set()
    write(store, 3, members=[2])
    assert edges(store) == {"member_ids[]=2", "org=x"}


def test_a_crash_at_any_request_leaves_no_edge_missing_and_the_replay_removes_the_dropped_ones() -> None:
    for crash in range(4):
        store = MemoryStore()
        write(store, 1, members=[1, 2])
        crash_step(change(2, org="y", members=[2, 3]), store, after=crash)
        (row,) = store.get([TEAM]).values()
        named = {f"member_ids[]={n}" for n in (2, 3)} if row["_v"] == V[2] else {f"member_ids[]={n}" for n in (1, 2)}
        assert named <= edges(store)

        _, touch = write(store, 2, org="y", members=[2, 3])

        assert edges(store) == {"member_ids[]=2", "member_ids[]=3", "org=y"}
        assert touch.former_keys == {("member_ids[]", "1"), ("org", "x")}


def test_a_late_change_leaves_no_edge_that_the_row_does_not_name() -> None:
    store = MemoryStore()
    write(store, 2, members=[1])
    _, touch = write(store, 1, org="y", members=[1, 3])
    assert touch.outcome == "superseded"
    assert edges(store) == {"member_ids[]=1", "org=x"}


def test_an_edge_that_was_there_outlives_a_remover_of_the_version_between() -> None:
    """Two writers: version 3 has put its edges. Version 2 then drops one of them, before version 3 writes the row."""
    store = MemoryStore()
    write(store, 1, members=[1, 2])
    later = change(3, members=[1, 2])
    rows = later.send(answers_of(store, next(later)))
    write(store, 2, members=[1])
    with pytest.raises(StopIteration):
        later.send(answers_of(store, rows))
    assert edges(store) == {"member_ids[]=1", "member_ids[]=2", "org=x"}


def test_a_late_remover_takes_no_edge_that_a_newer_version_names() -> None:
    store = MemoryStore()
    write(store, 1, members=[1])
    crash_step(change(2, members=[]), store, after=2)
    write(store, 3, members=[1])
    store.delete(drop_edge(TEAM, ("member_ids[]", "1"), V[2]))
    assert edges(store) == {"member_ids[]=1", "org=x"}


def test_unavailable_elements_are_the_elements_of_the_stored_row() -> None:
    store = MemoryStore()
    write(store, 1, members=[1, 2])
    asked, _ = write(store, 2, org="y", members=UNAVAILABLE)
    assert asked[0] == (WeakKey(TEAM),)
    assert edges(store) == {"member_ids[]=1", "member_ids[]=2", "org=y"}


def test_a_row_that_is_too_large_leaves_edges_that_name_nothing() -> None:
    step = change(1, members=[1])
    next(step)
    step.send((None, None))
    with pytest.raises(StopIteration) as end:
        step.send((TooLarge(),))
    assert isinstance(end.value.value, RefusedChange)


def test_the_edges_of_all_refused_writes_go_where_the_row_is_newer_in_the_end() -> None:
    """The step takes elements from the stored row, and other changes replace them twice before its write."""
    store, step = MemoryStore(), change(4, members=UNAVAILABLE)
    write(store, 1, members=[1])
    answers: Any = None
    for turns, (offset, members) in ((2, (2, [2])), (2, (5, [3]))):  # up to the edges of each write
        for _ in range(turns):
            answers = answers_of(store, step.send(answers))
        write(store, offset, members=members)
    assert edges(store) == {"member_ids[]=1", "member_ids[]=3", "org=x"}
    for _ in range(2):  # the refused write, and the edges
        answers = answers_of(store, step.send(answers))
    with pytest.raises(StopIteration) as end:
        step.send(answers)
    assert end.value.value.outcome == "superseded"
    assert edges(store) == {"member_ids[]=3", "org=x"}
