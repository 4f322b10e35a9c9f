"""The requests around a row's write, word for word and in their order."""

from typing import Any

import pytest

from processor.definitions.load import load
from processor.model.change import UNAVAILABLE, Change, Record
from processor.model.plan import Plan
from processor.model.touch import Oversized, Touch
from processor.planning import plan_alone
from processor.steps.keep_edges import keep_edges
from processor.steps.write_state import write_state
from statestore.edges import drop_edge, put_edge
from statestore.items import spell_version
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import AbsentOrBelow, Delete, TooLarge, Write

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
V = [spell_version(0, n) for n in range(10)]


def change(offset: int, *, start: int | None = None, org: Any = "x", members: Any = ()) -> Any:
    """The step that writes team 1 at this offset, of a batch that starts at `start`; a delete when `members` is None."""
    record = Record(topic="team", partition=0, offset=offset, key=None, value=None)
    row = None if members is None else {"id": 1, "org": org, "member_ids": members}
    found = Change(entity="team", key=(1,), row=row, record=record)
    writing = write_state(found, PLAN.entities["team"], start=V[offset if start is None else start], forget=99)
    return keep_edges(writing, lambda done: (done.row, done.left) if isinstance(done, Touch) else None)


def turns(step: Any, store: MemoryStore, *, until: int = 99) -> tuple[list[Any], Any]:
    """What the step asks, turn by turn, and its result; `until`: turns until a crash."""
    asked: list[Any] = []
    answers: Any = None
    while len(asked) < until:
        try:
            requests = step.send(answers)
        except StopIteration as end:
            return asked, end.value
        asked.append(requests)
        answers = tuple(_answer(store, request) for request in requests)
    return asked, None


def _answer(store: MemoryStore, request: Any) -> Any:
    match request:
        case Write():
            return store.write(request)
        case Delete():
            return store.delete(request)
    return store.get([request]).get(request)


def edges(store: MemoryStore) -> set[str]:
    return {
        name
        for name in (*(f"member_ids[]={n}" for n in range(5)), "org=x", "org=y")
        if store.partition(f"EDGE#team#{name}")
    }


def test_the_new_edges_come_first_then_the_row_then_the_dropped_edges_go() -> None:
    store = MemoryStore()
    turns(change(1, members=[1, 2, 1, None]), store)
    asked, touch = turns(change(2, org="y", members=[2, 3]), store)

    assert [len(requests) for requests in asked] == [3, 1, 2]
    assert asked[0] == tuple(
        put_edge(TEAM, edge, V[2]) for edge in (("member_ids[]", "2"), ("member_ids[]", "3"), ("org", "y"))
    )
    (row,) = asked[1]
    assert (row.key, row.copy, row.when) == (TEAM, {"_edges_before": "_edges"}, AbsentOrBelow("_v", V[2]))
    assert row.set["_edges"] == '[["member_ids[]","2"],["member_ids[]","3"],["org","y"]]'
    assert asked[2] == (drop_edge(TEAM, ("member_ids[]", "1"), V[2]), drop_edge(TEAM, ("org", "x"), V[2]))
    assert edges(store) == {"member_ids[]=2", "member_ids[]=3", "org=y"}
    assert touch.left == {("member_ids[]", "1"), ("org", "x")}


def test_every_edge_is_put_also_those_that_stand_already() -> None:
    store = MemoryStore()
    turns(change(1, members=[1]), store)
    asked, _ = turns(change(2, members=[1]), store)
    assert asked[0] == (put_edge(TEAM, ("member_ids[]", "1"), V[2]), put_edge(TEAM, ("org", "x"), V[2]))
    assert len(asked) == 2


def test_a_deleted_row_loses_its_edges_and_a_created_one_gets_them() -> None:
    store = MemoryStore()
    turns(change(1, members=[1, 2]), store)
    asked, _ = turns(change(2, members=None), store)
    assert asked[0][0].set["_edges"] == "[]"
    assert edges(store) == set()
    turns(change(3, members=[2]), store)
    assert edges(store) == {"member_ids[]=2", "org=x"}


def test_a_crash_at_any_request_leaves_no_edge_missing_and_the_replay_removes_the_dropped_ones() -> None:
    for crash in range(4):
        store = MemoryStore()
        turns(change(1, members=[1, 2]), store)
        turns(change(2, org="y", members=[2, 3]), store, until=crash)
        (row,) = store.get([TEAM]).values()
        named = {f"member_ids[]={n}" for n in (2, 3)} if row["_v"] == V[2] else {f"member_ids[]={n}" for n in (1, 2)}
        assert named <= edges(store)

        _, touch = turns(change(2, org="y", members=[2, 3]), store)

        assert edges(store) == {"member_ids[]=2", "member_ids[]=3", "org=y"}
        assert touch.left == {("member_ids[]", "1"), ("org", "x")}


def test_a_late_change_leaves_no_edge_of_what_the_row_does_not_name() -> None:
    store = MemoryStore()
    turns(change(2, members=[1]), store)
    _, touch = turns(change(1, org="y", members=[1, 3]), store)
    assert isinstance(touch, Touch)
    assert touch.how == "superseded"
    assert edges(store) == {"member_ids[]=1", "org=x"}


def test_an_edge_that_stood_already_outlives_a_remover_of_the_version_between() -> None:
    """Two writers: the later version puts its edges while the one before it has still to drop one of them."""
    store = MemoryStore()
    turns(change(1, members=[1, 2]), store)
    later = change(3, members=[1, 2])
    puts = later.send(None)
    rows = later.send(tuple(store.write(put) for put in puts))
    turns(change(2, members=[1]), store)
    with pytest.raises(StopIteration):
        later.send(tuple(store.write(row) for row in rows))
    assert edges(store) == {"member_ids[]=1", "member_ids[]=2", "org=x"}


def test_a_remover_that_comes_late_takes_no_edge_that_a_newer_version_names() -> None:
    store = MemoryStore()
    turns(change(1, members=[1]), store)
    turns(change(2, members=[]), store, until=2)
    turns(change(3, members=[1]), store)
    store.delete(drop_edge(TEAM, ("member_ids[]", "1"), V[2]))
    assert edges(store) == {"member_ids[]=1", "org=x"}


def test_unavailable_elements_are_those_of_the_stored_row() -> None:
    store = MemoryStore()
    turns(change(1, members=[1, 2]), store)
    asked, _ = turns(change(2, org="y", members=UNAVAILABLE), store)
    assert asked[0] == (TEAM,)
    assert edges(store) == {"member_ids[]=1", "member_ids[]=2", "org=y"}


def test_a_row_that_is_too_large_gets_edges_that_name_nothing() -> None:
    step = change(1, members=[1])
    step.send(None)
    step.send((None, None))
    with pytest.raises(StopIteration) as end:
        step.send((TooLarge(),))
    assert isinstance(end.value.value, Oversized)
