"""Where documents land: the requests that a landing sends to a target."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from socket import gethostname
from typing import NamedTuple, Protocol

from processor.errors import Outage, StatestoreError
from processor.finding import is_this_machine
from processor.job.landing.landed_message import LandedMessage


class LandingError(StatestoreError):
    """A target refuses the landing, and goes on refusing."""


class TargetAway(Outage):
    """A target does not answer, or takes no work now."""


class TopicReplaced(StatestoreError):
    """Somebody deleted the topic and created it again: the target, or the broker, has another one of this name."""


class LandedTopic(NamedTuple):
    """The topic that a target holds. `id`: the broker's own, which changes when somebody creates the topic again. `cluster`: of
    the broker; empty where an earlier release made the target."""

    product: str
    name: str
    id: str
    cluster: str = ""


class Opened(NamedTuple):
    """A target that is ready. `id`: of the landing, random, kept in the target. `earlier`: whether the place has documents of an
    earlier topic of this name."""

    id: str
    earlier: bool


class RefusedDocument(NamedTuple):
    """A document that the target refuses. The target keeps the root's earlier document. `key`: as JSON text; `key_hash`: as of
    the message."""

    key: str
    sequence: int
    reason: str
    key_hash: bytes


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

    def open(self, topic: LandedTopic, *, new_id: bool = False) -> Opened:
        """Makes the place ready. Where it holds an earlier topic of this name, it forgets the offsets, and messages of this topic
        replace the earlier documents. `new_id`: the place is a copy, and gets an id of its own. Raises LandingError where it
        holds something else."""

    def check(self, topic: LandedTopic) -> str:
        """The id of the landing. Raises LandingError where the place does not hold this topic."""

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        """The offset of the next message of each partition from which messages have landed."""

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        """Takes the messages, each partition in order, and then the offsets. `ends`: the offset of the next message of each
        partition. Returns counts: `landed`, `deleted`, `refused`, and `superseded` for those that a later message of their
        root replaced, or that the target had already. Raises TopicReplaced where the place holds another topic meanwhile."""

    def forget_earlier(self) -> int:
        """Removes the documents of earlier topics of this name. Returns how many."""

    def show(self) -> str:
        """Shows the documents to readers who do not see them yet. Returns why it does not do so; empty where readers see them."""

    def refused(self) -> int:
        """How many roots have a refused document as their last one."""

    def moment(self) -> Moment:
        """What the target holds, until the caller has read all of it."""

    def close(self) -> None:
        """Closes the connection."""


def located(address: str, host: str) -> str:
    """The address of a target, with the name of this machine where the host is the machine itself."""
    return f"{address} of {gethostname()}" if is_this_machine(host) else address


def is_created_again(place: str, bound: LandedTopic, topic: LandedTopic, cure: str) -> bool:
    """Whether the topic that a place holds was deleted and created again as `topic`, in the same cluster. Raises LandingError
    where the place holds another one."""
    if bound[:3] == topic[:3]:
        return False
    if bound[:2] != topic[:2]:
        held = f"topic {bound.name} of product {bound.product}"
    elif not bound.cluster or bound.cluster != topic.cluster:
        held = f"topic {topic.name} of another cluster" if bound.cluster else f"an earlier topic {topic.name}"
    else:
        return True
    raise LandingError(f"{place} holds {held}: choose another --into, or {cure} to land all documents again")
