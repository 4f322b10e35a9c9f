"""The steps of the running job and of operators: the database does what the pure functions say, and refuses other steps."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from registry.edits import operations
from registry.edits.edit import Edit, Signature, edited
from registry.edits.history import NoUndo, reverse
from registry.edits.operations import SlotUsed, advance
from registry.errors import LeaseLost, NoAssignment, NoProduct, SnapshotOutdated
from registry.fields import shown_fields
from registry.model import Applied, Lease, Requirements, Snapshot
from registry.repository import Registry
from tests.integration.registry.by_hand import run

ALL = ("user", "star", "repo")


@pytest.fixture
def lease(registry: Registry, required: Requirements) -> Lease:
    """The lease of a job that has run by the first version."""
    registry.apply(required, who="me", why="first")
    taken = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    registry.applied(taken, 1)
    return taken


def layouts(snapshot: Snapshot) -> dict[str, int]:
    return {one.name: one.layout for one in snapshot.entities}


def take_step(registry: Registry, lease: Lease, *, published: tuple[str, ...] = ()) -> Applied:
    """The job applies the registry and takes the next step, of rows that are all proven."""
    version = registry.snapshot().version
    registry.applied(lease, version)
    return registry.advance(lease, version, proven=ALL, published=published)


def test_each_step_leaves_the_registry_that_the_pure_functions_say(
    registry: Registry, lease: Lease, more: Requirements
) -> None:
    registry.apply(more, who="me", why="one more join")
    found = [registry.snapshot()]
    lines = []
    for published in ((), (), (), (), ("profile",)):
        change = advance(found[-1], proven=ALL, published=published)
        lines.append(take_step(registry, lease, published=published).changes)
        found.append(registry.snapshot())
        assert lines[-1] == change.changes
        assert found[-1] == edited(found[-2], change)
        assert layouts(found[-1]) == layouts(edited(found[-2], change))
    assert lines == [
        ("entity repo: GSI_1 owner is writing now",),
        ("entity repo: GSI_1 owner is backfilling now",),
        ("entity repo: GSI_1 owner is serving now", "product profile: version 2 is live now"),
        (),
        (),
    ]
    assert [one.version for one in found] == [2, 3, 4, 5, 5, 5]
    assert [layouts(one)["repo"] for one in found] == [0, 3, 3, 3, 3, 3]
    assert [(one.version, one.paused) for one in found[-1].products] == [(2, False)]
    assert registry.apply(more, who="me", why="again").changes == ()


OPERATIONS: dict[str, tuple[Callable[[Registry], Applied], Callable[[Snapshot], Edit]]] = {
    "pause": (
        lambda registry: registry.operate(Signature("op", "x"), operations.pause, "profile", paused=True),
        lambda stored: operations.pause(stored, "profile", paused=True),
    ),
    "resume": (
        lambda registry: registry.operate(Signature("op", "x"), operations.pause, "profile", paused=False),
        lambda stored: operations.pause(stored, "profile", paused=False),
    ),
    "pause all": (
        lambda registry: registry.operate(Signature("op", "x"), operations.pause, None, paused=True),
        lambda stored: operations.pause(stored, None, paused=True),
    ),
    "resume all": (
        lambda registry: registry.operate(Signature("op", "x"), operations.pause, None, paused=False),
        lambda stored: operations.pause(stored, None, paused=False),
    ),
    "pause a topic": (
        lambda registry: registry.operate(Signature("op", "x"), operations.pause_topic, "t.star", paused=True),
        lambda stored: operations.pause_topic(stored, "t.star", paused=True),
    ),
    "resume a topic": (
        lambda registry: registry.operate(Signature("op", "x"), operations.pause_topic, "t.star", paused=False),
        lambda stored: operations.pause_topic(stored, "t.star", paused=False),
    ),
    "republish": (
        lambda registry: registry.operate(Signature("op", "x"), operations.republish, "profile"),
        lambda stored: operations.republish(stored, "profile"),
    ),
    "retract": (
        lambda registry: registry.operate(Signature("op", "x"), operations.remove, "profile", tombstones=True),
        lambda stored: operations.remove(stored, "profile", tombstones=True),
    ),
    "remove": (
        lambda registry: registry.operate(Signature("op", "x"), operations.remove, "profile", tombstones=False),
        lambda stored: operations.remove(stored, "profile", tombstones=False),
    ),
    "retire": (
        lambda registry: registry.operate(Signature("op", "x"), operations.retire, "star", 1),
        lambda stored: operations.retire(stored, "star", 1),
    ),
}
"""The operations, each after all before it: what the operator calls, and the pure function of it."""


def test_each_operation_leaves_the_registry_that_the_pure_functions_say(
    registry: Registry, lease: Lease, more: Requirements
) -> None:
    registry.apply(more, who="me", why="one more join")
    registry.applied(lease, 2)
    for name, (operate, make) in OPERATIONS.items():
        before = registry.snapshot()
        change = make(before)
        assert operate(registry).changes == change.changes, name
        after = registry.snapshot()
        assert after == edited(before, change), name
        assert layouts(after) == layouts(edited(before, change))
        if change.changes:
            assert {(one.version, one.who) for one in registry.history(1)} == {(after.version, "op")}


def test_a_retracted_product_goes_with_its_joins_once_its_tombstones_are_published(
    registry: Registry, lease: Lease
) -> None:
    registry.operate(Signature("op", "no reader"), operations.remove, "profile", tombstones=True)
    assert take_step(registry, lease).changes == ()
    assert take_step(registry, lease, published=("profile",)).changes[0] == "product profile: removed"
    found = registry.snapshot()
    assert (found.products, found.joins) == ((), ())
    for entity, slot in ((one.entity, one.slot) for one in found.assignments):
        registry.operate(Signature("op", "unused"), operations.retire, entity, slot)
    assert {one.state for one in registry.snapshot().assignments} == {"retiring"}
    take_step(registry, lease)
    assert registry.snapshot().assignments == ()


def test_a_step_needs_the_lease_and_the_version_that_the_job_applied(
    registry: Registry, lease: Lease, more: Requirements
) -> None:
    registry.apply(more, who="me", why="one more join")
    before = registry.snapshot()
    for version in (1, 2):  # the job has applied 1, the registry is at 2
        with pytest.raises(SnapshotOutdated, match="it has applied 1, and the registry is at 2"):
            registry.advance(lease, version, proven=ALL, published=())
    registry.applied(lease, 2)
    registry.take_lease("job", "there", 4, take_over=True, expires_after=60)
    with pytest.raises(LeaseLost, match="here no longer holds the lease"):
        registry.advance(lease, 2, proven=ALL, published=())
    assert registry.snapshot() == before


def test_a_step_is_in_the_history_in_the_name_of_the_run(registry: Registry, lease: Lease, more: Requirements) -> None:
    registry.apply(more, who="me", why="one more join")
    take_step(registry, lease)
    newest, *earlier = registry.history(100)
    assert (newest.version, newest.who, newest.why) == (3, "here", "the job's next step")
    assert (newest.entry, newest.operation) == ("assignments", "update")
    assert newest.old is not None
    assert newest.new is not None
    assert (newest.old["state"], newest.new["state"]) == ("planned", "writing")
    assert all(
        later.version >= sooner.version and later.at >= sooner.at for later, sooner in pairwise([newest, *earlier])
    )
    assert registry.history(1) == (newest,)


def test_an_operator_skips_no_step_of_a_living_job(
    registry: Registry, psql: Engine, lease: Lease, more: Requirements
) -> None:
    registry.apply(more, who="me", why="one more join")
    refused = r"entity repo slot 1: job job has not applied registry version 2, in which its state became planned"
    to_writing = "UPDATE assignments SET state = 'writing' WHERE entity = 'repo'"
    with pytest.raises(IntegrityError, match=refused):
        run(psql, to_writing)
    registry.applied(lease, 2)
    run(psql, to_writing)
    for statement in (
        "UPDATE assignments SET state = 'backfilling' WHERE entity = 'repo'",
        "UPDATE assignments SET state = 'retiring' WHERE entity = 'repo'",
        "UPDATE assignments SET state = 'backfilling', changed_version = 0 WHERE entity = 'repo'",
    ):
        with pytest.raises(IntegrityError, match="has not applied registry version 3"):
            run(psql, statement)
    run(psql, "UPDATE assignments SET changed_version = 0 WHERE entity = 'repo'")
    with pytest.raises(IntegrityError, match="has not applied registry version 3"):
        run(psql, "UPDATE assignments SET state = 'backfilling' WHERE entity = 'repo'")
    registry.give_back(lease)
    run(psql, "UPDATE assignments SET state = 'backfilling' WHERE entity = 'repo'")


def test_a_slot_is_free_only_once_the_job_has_applied_that_it_retires(
    registry: Registry, psql: Engine, lease: Lease
) -> None:
    registry.operate(Signature("op", "x"), operations.remove, "profile", tombstones=False)
    registry.operate(Signature("op", "x"), operations.retire, "user", 1)
    with pytest.raises(IntegrityError, match="has not applied registry version 3, in which its state became retiring"):
        run(psql, "DELETE FROM assignments WHERE entity = 'user'")
    registry.applied(lease, 3)
    run(psql, "DELETE FROM assignments WHERE entity = 'user'")


def test_a_planned_slot_may_go_before_the_job_knows_it(registry: Registry, lease: Lease, wider: Requirements) -> None:
    registry.apply(wider, who="me", why="an index")
    assert registry.operate(Signature("op", "a mistake"), operations.retire, "repo", 1).changes == (
        "entity repo: GSI_1 owner is free now",
    )


def test_operations_name_what_they_do_not_find(registry: Registry, lease: Lease) -> None:
    with pytest.raises(NoProduct, match="no product nobody"):
        registry.operate(Signature("op", "x"), operations.pause, "nobody", paused=True)
    with pytest.raises(NoAssignment, match="GSI_5 of entity star holds nothing"):
        registry.operate(Signature("op", "x"), operations.retire, "star", 5)
    with pytest.raises(SlotUsed, match="joins of product profile use it"):
        registry.operate(Signature("op", "x"), operations.retire, "star", 1)
    assert registry.snapshot().version == 1


def test_a_slot_moves_without_a_moment_in_which_no_slot_serves(registry: Registry, psql: Engine, lease: Lease) -> None:
    run(psql, "INSERT INTO assignments VALUES ('star', 5, '{username}', 'planned')")
    for _ in range(3):
        take_step(registry, lease)
    found = registry.snapshot()
    states = {(one.slot, str(one.state)) for one in found.assignments_of("star") if one.columns == ("username",)}
    assert states == {(1, "retiring"), (5, "serving")}
    take_step(registry, lease)
    assert [one.slot for one in registry.snapshot().assignments_of("star")] == [2, 5]


def test_versions_never_repeat_also_after_a_removal(
    registry: Registry, psql: Engine, lease: Lease, required: Requirements, more: Requirements
) -> None:
    registry.apply(more, who="me", why="version 2 waits")
    registry.operate(Signature("op", "gone"), operations.remove, "profile", tombstones=False)
    registry.apply(required, who="me", why="again")
    assert [one.version for one in registry.snapshot().waiting] == [3]
    for statement in (
        "INSERT INTO products (name, topic, root, definition, version) VALUES ('profile', 'p', 'user', '{}', 2)",
        "UPDATE waiting_products SET version = 2",
    ):
        with pytest.raises(IntegrityError, match="product profile: version 2 is not new, the highest was 3"):
            run(psql, statement)
    for table in ("product_versions", "layouts"):
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET version = 1", f"TRUNCATE {table}"):
            with pytest.raises(IntegrityError, match="the triggers of edits keep it"):
                run(psql, statement)
    with pytest.raises(IntegrityError, match="the triggers of edits keep it"):
        run(psql, "SELECT raise_layout('star')")


def test_of_two_operators_at_once_one_waits_and_sees_the_other(registry: Registry, lease: Lease) -> None:
    start = threading.Barrier(4)

    def retract(number: int) -> int:
        start.wait()
        return len(
            registry.operate(Signature(f"op {number}", "race"), operations.remove, "profile", tombstones=True).changes
        )

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(retract, range(4))) == [0, 0, 0, 1]
    assert [(one.version, one.retracted) for one in registry.snapshot().products] == [(2, True)]


def test_a_step_of_the_job_and_an_edit_at_once_are_two_versions_or_the_step_waits_for_the_next_batch(
    registry: Registry, psql: Engine, lease: Lease, more: Requirements
) -> None:
    registry.apply(more, who="me", why="one more join")
    registry.applied(lease, 2)
    with ThreadPoolExecutor(1) as pool:
        with psql.begin() as connection:
            connection.execute(text("SELECT edit_by_hand('a test')"))
            connection.execute(text("UPDATE work SET paused = true"))
            step = pool.submit(registry.advance, lease, 2, proven=ALL, published=())
            with pytest.raises(TimeoutError):
                step.result(timeout=0.3)
        with pytest.raises(SnapshotOutdated):
            step.result(timeout=300)
    found = registry.snapshot()
    assert (found.version, found.paused) == (3, True)
    assert take_step(registry, lease).changes == ("entity repo: GSI_1 owner is writing now",)


def test_the_undo_of_a_move_prints_the_reverse_move(registry: Registry, lease: Lease) -> None:
    before = registry.snapshot().assignments_of("star")[0]
    by = Signature("me", "a test")
    moved = registry.operate(by, lambda stored: operations.move(stored, "star", before.slot, 5)).version
    columns = shown_fields(before.columns)
    with pytest.raises(NoUndo) as refused:
        reverse(registry.snapshot(), registry.history(), moved)
    assert str(refused.value).endswith("`statestore retire star GSI_5 --why REASON` ends the move, which is not done")
    for _ in range(6):
        take_step(registry, lease)
    assert replace(before, slot=5) in registry.snapshot().assignments_of("star")
    with pytest.raises(NoUndo) as refused:
        reverse(registry.snapshot(), registry.history(), moved)
    assert str(refused.value) == (
        f"version {moved} cannot be undone: it moved {columns} of star from GSI_{before.slot} to GSI_5, and "
        f"`statestore move star GSI_5 GSI_{before.slot} --why REASON` moves it back"
    )
