"""What a write may have altered, and the roots above it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from processor.model.change import Change
from statestore.items import Held, Row

MORE = "_more"
"""Stands among changed columns for the undeclared ones."""

How = Literal["applied", "replayed", "superseded"]
Root = tuple[str, str]
"""(product, spelt primary key of the root row)."""


class Touch(NamedTuple):
    """What a change may have altered: the row as it stands now, the join keys that it left, the used columns that
    changed (None: all count as changed), and how the write went."""

    entity: str
    row: Row
    left: frozenset[Held]
    changed: frozenset[str] | None
    how: How


@dataclass(frozen=True, slots=True, kw_only=True)
class Oversized:
    """The row would not fit into an item; nothing was written."""

    change: Change
