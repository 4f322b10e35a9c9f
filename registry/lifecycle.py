"""The life of an assignment: which states follow each other, and what jobs may do in each. Pure.

After the online index change of Google's F1. Between two steps every running job has applied the registry version of
the first, so at any moment two neighbouring states are in use at most, and any two neighbours are safe together: rows
are written with a slot before the backfill looks for those that lack it, and still while jobs of the version before
may read it.
"""

from collections.abc import Mapping
from typing import Final

from registry.model import State

NEXT: Final[Mapping[State, frozenset[State]]] = {
    State.PLANNED: frozenset({State.WRITING, State.FREE}),
    State.WRITING: frozenset({State.BACKFILLING, State.RETIRING}),
    State.BACKFILLING: frozenset({State.SERVING, State.RETIRING}),
    State.SERVING: frozenset({State.RETIRING}),
    State.RETIRING: frozenset({State.FREE}),
    State.FREE: frozenset({State.PLANNED}),
}
"""The states that may follow each state. A step that is given up before it serves goes to RETIRING, or, when nothing
was written yet, straight to FREE."""

_WRITTEN: Final = frozenset({State.WRITING, State.BACKFILLING, State.SERVING, State.RETIRING})


def may_follow(before: State, after: State) -> bool:
    """True when an assignment may go from `before` to `after` in one step; staying is no step."""
    return after in NEXT[before]


def writes(state: State) -> bool:
    """True when a job must fill the slot in every row that it writes."""
    return state in _WRITTEN


def reads(state: State) -> bool:
    """True when a job may answer a join through the slot."""
    return state is State.SERVING
