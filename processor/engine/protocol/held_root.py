"""A root that waits at a gate, and what goes with it (`processor.engine.protocol.held_roots`)."""

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from processor.engine.plan.touch import Root
from statestore.keys import Key


@dataclass(slots=True, kw_only=True)
class HeldRoot:
    """A root that waits. `since`: its first change since its last message; `touched`: its last change; on the job's clock.
    `mark`: the number of the newest transaction then. `time`: Kafka's of its oldest record. `items`: the portions of it.
    `reloaded`: since the start, so it may have gone out before; its next change then begins a new wait."""

    since: float
    touched: float
    mark: int = 0
    time: float = inf
    reloaded: bool = False
    items: set[Key] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Barrier:
    """All roots of a product wait for the transactions up to `mark`: a fan-out has yet to find some, or a connector sends
    transactions again, which may have taken rows away from any root."""

    mark: int = 0
    items: set[Key] = field(default_factory=set)


class DueRoots(NamedTuple):
    """`times`: Kafka's time of the oldest record that led to each root. `incomplete`: those that may show a part of a
    transaction."""

    times: dict[Root, float]
    incomplete: set[Root]
