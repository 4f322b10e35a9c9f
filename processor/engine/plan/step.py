"""How steps ask: a step is a generator that yields the requests it needs next, gets their answers, and returns its
result.

A step never sends. `processor.engine.rounds.step_runner` runs many steps side by side, asks each distinct lookup once, and
sends.

    Key      the item with that key, strongly consistent               -> Item | None
    WeakKey  the item with that key, perhaps as it was a while ago      -> Item | None
    ShownRow the row with that key, as the round's way up has shown it   -> Item | None
    Lookup   the rows of one join key, from an index or from edges     -> Page | OrderedPage
    Write    one conditional write                                     -> Outcome
    Delete   one conditional delete                                    -> Done | Refused
    Send     one message to a topic, acknowledged before the task ends -> None

A touch is the effect of a write on documents: which row it touched, and the roots above that row.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from processor.values.reasons import ReasonCode
from processor.values.record import Change, Message
from statestore.items import JoinKey, Row
from statestore.keys import Key
from statestore.store import Delete, Item, Query, Write

OVERSIZED = "the row does not fit into an item of the table: its columns, and twice its join keys and edges, have room in 400 KB"
"""The reason for refusing a change whose row is too large."""
UNDECLARED = "_more"
"""The name of all undeclared columns together, among changed columns."""

TouchOutcome = Literal["applied", "replayed", "superseded"]
Root = tuple[str, str]
"""(product, encoded primary key of the root row)."""


RowKeys = tuple[Row, frozenset[JoinKey]]
"""A row as it is in the table now, and its former keys."""


class Touch(NamedTuple):
    """A row that a write touched. `row`: as it is in the table now; `former_keys`: the join keys that it had before;
    `changed`: the used columns that changed, None where all count as changed; `outcome`: how the write ended."""

    entity: str
    row: Row
    former_keys: frozenset[JoinKey]
    changed: frozenset[str] | None
    outcome: TouchOutcome

    @property
    def row_keys(self) -> RowKeys:
        """The row and its former keys."""
        return self.row, self.former_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedChange:
    """A change that the step did not write, and why. The change becomes a dead letter. `code`: the kind of the reason."""

    change: Change
    reason: str
    code: ReasonCode
    row_keys: ClassVar[None] = None


def oversized(change: Change) -> RefusedChange:
    """Refuses a change whose row is too large."""
    return RefusedChange(change=change, reason=OVERSIZED, code="row-too-large")


class Lookup(NamedTuple):
    """The request for the rows of one join key.

    source: an index query, or the partition of an edge key (`statestore.writes`). The runner reads the rows that edges
    name by key.
    paged: one page of the answer instead of all pages. after: the row (or edge) after which the page begins, None for
    the first page.
    most: in an index with an order, the rows of the page, from the start of the query on; 0 elsewhere.
    totals: the items of the partition themselves, which no edges are.
    overlay: the runner lays open changes over the first page of an index answer. Edges need no overlay, since they are
    strongly consistent.
    """

    source: Query | str
    paged: bool = False
    after: Key | None = None
    overlay: bool = True
    most: int = 0
    totals: bool = False


class OrderedPage(NamedTuple):
    """The answer to a lookup in an order: a page, and the name of the last row that the index has there. In the items, an open
    row may lie in its place."""

    items: list[Item]
    after: Key | None
    end: str


class WeakKey(NamedTuple):
    """The request for an item that may answer with an earlier state of the item, at half the price. So a step that writes by it
    names in its condition what it saw, and a step that writes nothing because of it asks again by the key."""

    key: Key


class ShownRow(NamedTuple):
    """The request for a row that an index answer of this round has shown: the runner reads it by key only if it is open."""

    key: Key


class Send(NamedTuple):
    """The request to send a message."""

    message: Message


Request = Key | WeakKey | ShownRow | Lookup | Write | Delete | Send
T = TypeVar("T")
Step = Generator[tuple[Request, ...], tuple[Any, ...], T]
