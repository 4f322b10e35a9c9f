"""How steps ask: a step is a generator that yields the requests it needs next, gets their answers, and returns its
result.

A step never sends. `processor.engine.rounds.step_runner` runs many steps side by side, asks each distinct lookup once, and
sends.

    Key      the item with that key, strongly consistent               -> Item | None
    WeakKey  the item with that key, perhaps as it was a while ago      -> Item | None
    Lookup   the rows of one join key, from an index or from edges     -> Page
    Write    one conditional write                                     -> Outcome
    Delete   one conditional delete                                    -> Done | Refused
    Send     one message to a topic, acknowledged before the task ends -> None
"""

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from processor.values.record import Message
from statestore.keys import Key
from statestore.store import Delete, Query, Write


class Lookup(NamedTuple):
    """The request for the rows of one join key.

    source: an index query, or the partition of an edge key (`statestore.writes`). The runner reads the rows that edges
    name by key.
    paged: one page of the answer instead of all pages. after: the row (or edge) after which the page begins, None for
    the first page.
    overlay: the runner lays open changes over the first page of an index answer. Edges need no overlay, since they are
    strongly consistent.
    """

    source: Query | str
    paged: bool = False
    after: Key | None = None
    overlay: bool = True


class WeakKey(NamedTuple):
    """The request for an item that may answer with an earlier state of the item, at half the price. So a step that writes by it
    names in its condition what it saw, and a step that writes nothing because of it asks again by the key."""

    key: Key


class Send(NamedTuple):
    """The request to send a message."""

    message: Message


Request = Key | WeakKey | Lookup | Write | Delete | Send
T = TypeVar("T")
Step = Generator[tuple[Request, ...], tuple[Any, ...], T]
