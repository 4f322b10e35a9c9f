"""Where documents land: the requests that a landing sends to a target."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from processor.errors import Outage, StatestoreError
from processor.landing.landed_message import LandedMessage


class LandingError(StatestoreError):
    """A target refuses the landing, and goes on refusing."""


class TargetAway(Outage):
    """A target does not answer, or takes no work now."""


class LandedTopic(NamedTuple):
    """The topic that a target holds. `id`: the broker's own, which changes when somebody creates the topic again."""

    product: str
    name: str
    id: str


class RefusedDocument(NamedTuple):
    """A document that the target refuses. The target keeps the root's earlier document. `key`: as JSON text."""

    key: str
    sequence: int
    reason: str


class LandedDocument(NamedTuple):
    """A document in the target: key and document as JSON text."""

    key: str
    document: str
    sequence: int


class Moment(NamedTuple):
    """What a target holds at one moment. `offsets`: of the next message in each partition."""

    offsets: Mapping[int, int]
    documents: Iterator[LandedDocument]
    refused: Sequence[RefusedDocument]


class Target(Protocol):
    """A place for the documents of one product. Raises TargetAway where a later try may succeed, LandingError where none does."""

    @property
    def place(self) -> str:
        """Its address, without a password."""

    def open(self, topic: LandedTopic) -> None:
        """Makes the place ready. Raises LandingError where it holds something else."""

    def check(self, topic: LandedTopic) -> None:
        """Raises LandingError where the place does not hold this topic."""

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        """The offset of the next message of each partition from which messages have landed."""

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        """Takes the messages, each partition in order, and then the offsets. `ends`: the offset of the next message of each
        partition. Returns counts: `landed`, `deleted`, `refused`, and `superseded` for those that a later message of their
        root replaced, or that the target had already."""

    def show(self) -> str:
        """Shows the documents to readers who do not see them yet. Returns why it does not do so; empty where readers see them."""

    def refused(self) -> int:
        """How many roots have a refused document as their last one."""

    def moment(self) -> Moment:
        """What the target holds, until the caller has read all of it."""

    def close(self) -> None:
        """Closes the connection."""
