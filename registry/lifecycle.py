"""The life of an assignment: the order of its states, and what jobs may do in each. Pure.

The steps are those of the online index change of Google's F1. Before a step, every running job has applied the version of
the step before it. So jobs use at most two neighbouring states at a time, and any two neighbours are safe together. Jobs write a
slot before the backfill looks for rows without it, and still write it while jobs of the version before may read it.
"""

from collections.abc import Mapping
from typing import Final

from registry.model import AssignmentState

NEXT: Final[Mapping[AssignmentState, frozenset[AssignmentState]]] = {
    AssignmentState.PLANNED: frozenset({AssignmentState.WRITING, AssignmentState.FREE}),
    AssignmentState.WRITING: frozenset({AssignmentState.BACKFILLING, AssignmentState.RETIRING}),
    AssignmentState.BACKFILLING: frozenset({AssignmentState.SERVING, AssignmentState.RETIRING}),
    AssignmentState.SERVING: frozenset({AssignmentState.RETIRING}),
    AssignmentState.RETIRING: frozenset({AssignmentState.FREE}),
    AssignmentState.FREE: frozenset({AssignmentState.PLANNED}),
}
"""The states that may follow each state. An assignment that an operator gives up before it serves goes to RETIRING, or, before
any job writes it, straight to FREE."""

_WRITTEN: Final = frozenset(
    {AssignmentState.WRITING, AssignmentState.BACKFILLING, AssignmentState.SERVING, AssignmentState.RETIRING}
)


def may_follow(before: AssignmentState, after: AssignmentState) -> bool:
    """True when an assignment may go from `before` to `after` in one step. The same state twice is no step."""
    return after in NEXT[before]


def writes(state: AssignmentState) -> bool:
    """True when a job must fill the slot in every row that it writes."""
    return state in _WRITTEN


def reads(state: AssignmentState) -> bool:
    """True when a job may answer a join through the slot."""
    return state is AssignmentState.SERVING
