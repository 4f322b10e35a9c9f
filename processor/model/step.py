"""How steps ask: a step is a generator that yields the requests it needs next, gets their answers, and returns its result.

A step never sends: `processor.lockstep` runs many steps side by side, asks each distinct read once, and sends.

    Key      the item with that key, strongly consistent          -> Item | None
    Query    the items of one index query                         -> list[Item]
    Paged    a page of it                                         -> Page
    Raw      all items, without open changes laid over the answer -> list[Item]
    Edges    the rows that the edges of one key name, each read by key, strongly consistent -> list[Item]
    EdgePage a page of them                                       -> Page
    Write    one conditional write                                -> Outcome
    Delete   one conditional delete                               -> Done | Refused
    Send     one message to a topic, acknowledged before the task ends -> None
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from statestore.keys import Key
from statestore.store import Delete, Query, Write

MAX_MESSAGE_BYTES = 8 * 1024 * 1024


class Message(NamedTuple):
    """A message for a Kafka topic; `value` None is a tombstone."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Send(NamedTuple):
    """The request to send a message."""

    message: Message


class Paged(NamedTuple):
    """A page of an index query, the first unless it goes on `after` some row; open changes are laid over the first."""

    query: Query
    after: Key | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """An index query whose answer is wanted as the index gives it."""

    query: Query


@dataclass(frozen=True, slots=True)
class Edges:
    """The request for the rows that the edges of one partition name (`statestore.edges`)."""

    partition: str


class EdgePage(NamedTuple):
    """A page of what edges find, the first unless it goes on `after` some edge."""

    edges: Edges
    after: Key | None = None


Request = Key | Query | Paged | Raw | Edges | EdgePage | Write | Delete | Send
T = TypeVar("T")
Step = Generator[tuple[Request, ...], tuple[Any, ...], T]
