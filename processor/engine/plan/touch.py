"""The effect of a write on documents: which row it touched, and the roots above that row."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from processor.values.reasons import ReasonCode
from processor.values.record import Change
from statestore.items import JoinKey, Row

OVERSIZED = "the row does not fit into an item of the table: its columns, and twice its join keys and edges, have room in 400 KB"
"""The reason for refusing a change whose row is too large."""
UNDECLARED = "_more"
"""The name of all undeclared columns together, among changed columns."""

TouchOutcome = Literal["applied", "replayed", "superseded"]
Root = tuple[str, str]
"""(product, encoded primary key of the root row)."""


class Touch(NamedTuple):
    """A row that a write touched. `row`: as the table has it now; `former_keys`: the join keys that it had before;
    `changed`: the used columns that changed, None where all count as changed; `outcome`: how the write ended."""

    entity: str
    row: Row
    former_keys: frozenset[JoinKey]
    changed: frozenset[str] | None
    outcome: TouchOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedChange:
    """A change that the step did not write, and why. The change becomes a dead letter. `code`: the kind of the reason."""

    change: Change
    reason: str
    code: ReasonCode


def oversized(change: Change) -> RefusedChange:
    """Refuses a change whose row is too large."""
    return RefusedChange(change=change, reason=OVERSIZED, code="row-too-large")
