"""Random edits of operators and steps of a job: the database always holds the registry that the pure functions say."""

from dataclasses import replace
from random import Random

import pytest

from registry.edits import operations
from registry.edits.apply import apply
from registry.edits.edit import Edit, Signature, edited, served_joins
from registry.edits.operations import ProductPaused, SlotUsed, advance
from registry.errors import NoAssignment, NoProduct, NoSlot, SlotRetires
from registry.model import (
    KEY,
    EdgePath,
    Index,
    JoinAccess,
    JoinSpec,
    Lease,
    ProductEntry,
    RequiredPath,
    Requirements,
    Snapshot,
)
from registry.repository import Registry
from tests.support.sampled import sampled


def slot_join(child: str, child_column: str, parent: str, parent_column: str) -> JoinAccess[RequiredPath]:
    join = JoinSpec(child=child, child_columns=(child_column,), parent=parent, parent_columns=(parent_column,))
    up = KEY if (parent, parent_column) == ("user", "email") else Index(entity=parent, columns=(parent_column,))
    return JoinAccess(join=join, down=Index(entity=child, columns=(child_column,)), up=up)


def edge_join(child: str, child_column: str, parent: str, parent_column: str) -> JoinAccess[RequiredPath]:
    join = replace(slot_join(child, child_column, parent, parent_column).join, strong=True)
    down, up = (
        EdgePath(entity=entity, fields=(field,)) for entity, field in ((child, child_column), (parent, parent_column))
    )
    return JoinAccess(join=join, down=down, up=up)


PATHS = [
    slot_join("star", "username", "user", "username"),
    slot_join("star", "username", "user", "email"),
    slot_join("star", "owner", "user", "username"),
    slot_join("star", "repo", "user", "username"),
    slot_join("repo", "owner", "star", "owner"),
    slot_join("repo", "name", "star", "repo"),
    edge_join("star", "username", "user", "username"),
    edge_join("repo", "owner", "star", "owner"),
    edge_join("repo", "owner", "user", "username"),
]
ALL = ("user", "star", "repo")
EXPECTED = (NoSlot, SlotRetires, SlotUsed, NoProduct, NoAssignment, ProductPaused)
"""Refusals that an operator may get for a wrong wish."""


@pytest.mark.parametrize("seed", sampled(range(6), 0, 1))
def test_the_database_and_the_pure_functions_agree(registry: Registry, required: Requirements, seed: int) -> None:
    rng = Random(seed)
    lease = registry.take_lease("job", "here", 1, take_over=False, expires_after=600)
    contents: dict[tuple[str, int], object] = {}
    done = 0
    for _ in range(60):
        before = registry.snapshot()
        if rng.random() < 0.7:
            registry.applied(lease, before.version)
        try:
            change = take_action(registry, before, required, lease, rng)
        except EXPECTED:
            assert registry.snapshot() == before
            continue
        done += bool(change.changes)
        after = registry.snapshot()
        assert after == edited(before, change)
        assert [one.layout for one in after.entities] == [one.layout for one in edited(before, change).entities]
        for product in after.products:
            assert served_joins(after.joins).issuperset(product.joins)
            content = contents.setdefault((product.name, product.version), product.joins)
            assert content == product.joins
    assert done > 20


def take_action(registry: Registry, before: Snapshot, required: Requirements, lease: Lease, rng: Random) -> Edit:
    """One action of an operator or the job, by the registry and by the pure function."""
    name, entity, slot = rng.choice("pq"), rng.choice(ALL), rng.randint(1, 5)
    match rng.choice(["apply", "apply", "step", "step", "step", "pause", "republish", "remove", "retire", "slots"]):
        case "apply":
            paths = tuple(rng.sample(PATHS, rng.randint(0, 4)))
            joins = tuple(path.join for path in paths)
            product = ProductEntry(name=name, topic=name, root="user", definition={}, joins=joins)
            wanted = Requirements(entities=required.entities, products=(product,), paths=paths, groups=())
            change = apply(before, wanted, registry.snapshot_for_apply()[1])
            registry.apply(wanted, who="op", why="x")
        case "step":
            proven, published = rng.sample(ALL, rng.randint(1, 3)), [name]
            registry.applied(lease, before.version)
            change = advance(before, proven=proven, published=published)
            registry.advance(lease, before.version, proven=proven, published=published)
        case "pause":
            paused = rng.random() < 0.5
            change = operations.pause(before, name, paused=paused)
            registry.operate(Signature("op", "x"), operations.pause, name, paused=paused)
        case "republish":
            change = operations.republish(before, name)
            registry.operate(Signature("op", "x"), operations.republish, name)
        case "remove":
            tombstones = rng.random() < 0.7
            change = operations.remove(before, name, tombstones=tombstones)
            registry.operate(Signature("op", "x"), operations.remove, name, tombstones=tombstones)
        case "slots":
            change = operations.add_slots(before, before.slots + 1)
            registry.operate(Signature("op", "x"), operations.add_slots, before.slots + 1)
        case _:
            registry.applied(lease, before.version)
            change = operations.retire(before, entity, slot)
            registry.operate(Signature("op", "x"), operations.retire, entity, slot)
    return change
