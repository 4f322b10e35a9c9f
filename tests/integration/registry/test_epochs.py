"""The registry only adds epoch boundaries."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from processor.tools.inspect.board import history_lines
from registry.errors import EpochConflict
from registry.model import EpochBoundary
from registry.repository import Registry

FIRST = EpochBoundary(topic="user", topic_id="id-1", partition=0, from_offset=0, epoch=1)
LATER = replace(FIRST, topic_id="id-2", epoch=2)


def test_boundaries_are_read_back_in_order_and_by_topic(registry: Registry) -> None:
    other = replace(FIRST, topic="star")
    far = replace(FIRST, from_offset=2**53, epoch=2**40, at_end=True)
    registry.add_epochs([LATER, far, other, FIRST])
    assert registry.epochs(["user"]) == (FIRST, far, LATER)
    assert registry.epochs(["user", "star", "none"]) == (other, FIRST, far, LATER)
    assert registry.epochs([]) == ()


def test_the_boundary_of_an_empty_partition_leaves_the_earlier_one_in_place(registry: Registry) -> None:
    registry.add_epochs([FIRST])
    registry.add_epochs([replace(FIRST, epoch=2)])
    assert [b.epoch for b in registry.epochs(["user"])] == [1, 2]


def test_adding_the_same_again_changes_nothing_and_a_lower_epoch_is_an_error(registry: Registry) -> None:
    registry.add_epochs([FIRST])
    registry.add_epochs([FIRST, LATER])
    with pytest.raises(EpochConflict, match=r"user \(id-1\) partition 0 from offset 0 has epoch 1, not 0"):
        registry.add_epochs([replace(FIRST, partition=1), replace(FIRST, epoch=0)])
    assert registry.epochs(["user"]) == (FIRST, LATER)


@pytest.mark.parametrize("edit", ["UPDATE epochs SET epoch = 9", "DELETE FROM epochs"])
def test_psql_cannot_change_a_boundary_either(registry: Registry, psql: Engine, edit: str) -> None:
    registry.add_epochs([FIRST])
    with pytest.raises(IntegrityError, match="a boundary never changes"), psql.begin() as connection:
        connection.execute(text(edit))


def test_boundaries_do_not_raise_the_registrys_version(registry: Registry) -> None:
    registry.add_epochs([FIRST])
    assert registry.snapshot().version == 0


def test_the_history_shows_the_boundaries_that_an_operator_records_with_the_reason(registry: Registry) -> None:
    """A job that reads a topic for the first time records a boundary too, and edits nothing."""
    registry.add_epochs([FIRST])
    assert registry.snapshot().version == 0
    registry.record_epochs([LATER], who="op", why="four partitions now")
    (entry,) = registry.history()
    assert (entry.version, entry.who, entry.why, entry.entry) == (1, "op", "four partitions now", "epochs")
    assert f"epoch {LATER.epoch} from offset {LATER.from_offset}" in list(history_lines([entry]))[1]
