"""Where documents land: the messages of a product's topic, as a target takes them, and the requests that a landing sends to a
target.

`land --verify` compares the documents of a target with the last message of each key in the product's topic. The target is read at
one moment, with its offsets; the topic from its beginning to its end. A key with a message behind those offsets is on its way,
and not compared. So a landing may run meanwhile.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, DecimalException
from hashlib import sha256
from socket import gethostname
from typing import Final, NamedTuple, Protocol

import orjson
import simplejson

from processor.errors import Outage, StatestoreError
from processor.finding import is_this_machine
from processor.language.product.product import Product
from processor.values.entity import Entity
from processor.values.record import HIGHEST_SEQUENCE, Record, read_sequence

HEADER: Final = "statestore."
PRODUCT_HEADER: Final = f"{HEADER}product"
HIGHEST_VERSION: Final = 2**31 - 1
LATEST_TIME: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: a clock that is further ahead gets this one, since no target has later times."""
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


class LandedMessage(NamedTuple):
    """A message of a product. `key`, `document`: as JSON text; `document` None for a tombstone. `sequence`: rises with each
    message of a root. `version`: the product's version. `published_at`: Kafka's time, in milliseconds since 1970."""

    partition: int
    offset: int
    key: str
    document: str | None
    sequence: int
    version: int
    published_at: int

    @property
    def key_hash(self) -> bytes:
        """SHA-256 of the key, for what must outlive a deleted document without its values."""
        return sha256(self.key.encode()).digest()


def read_message(record: Record, product: str) -> LandedMessage | None:
    """The message in a record; None for a record that no job of the product published."""
    read = _read(record, product)
    return None if isinstance(read, str) else read


def read_messages(records: Iterable[Record], product: str) -> Iterator[LandedMessage]:
    """The messages in records, without those that no job of the product published."""
    return (message for record in records if (message := read_message(record, product)))


def why_foreign(record: Record, product: str) -> str:
    """Why no job of the product published a record; empty for a message."""
    read = _read(record, product)
    return read if isinstance(read, str) else ""


def _read(record: Record, product: str) -> LandedMessage | str:
    """The message, or why the record is none. Nothing that a target or a comparison cannot hold gets through."""
    headers = {name.removeprefix(HEADER): text or b"" for name, text in record.headers if name.startswith(HEADER)}
    if headers.get("product", b"").decode(errors="replace") != product:
        return f"it has no header {HEADER}product with the name of the product"
    sequence, version = read_sequence(headers.get("sequence")), headers.get("product_version", b"")
    if sequence is None:
        return f"its {HEADER}sequence is no whole number from 1 to {HIGHEST_SEQUENCE}"
    if not version.isdigit() or len(version) > 10 or int(version) > HIGHEST_VERSION:
        return f"its {HEADER}product_version is no whole number from 0 to {HIGHEST_VERSION}"
    key = _json_object(record.key or b"")
    if not key:
        return "its key is no JSON object"
    return LandedMessage(
        partition=record.partition,
        offset=record.offset,
        key=key,
        document=None if record.value is None else record.value.decode(errors="backslashreplace"),
        sequence=sequence,
        version=int(version),
        published_at=min(max(record.timestamp, 0), LATEST_TIME),
    )


def _json_object(data: bytes) -> str:
    """The text of a JSON object; empty for anything else."""
    try:
        text = data.decode()
        return text if is_object(text) else ""
    except UnicodeDecodeError:
        return ""


def is_object(text: str) -> bool:
    """Whether a text is one JSON object that Python can read."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:  # also for half of a surrogate pair, which a document may have
        try:
            return isinstance(simplejson.loads(text, parse_int=str, parse_float=str), dict)
        except (ValueError, RecursionError):
            return False


def latest(messages: Iterable[LandedMessage]) -> list[LandedMessage]:
    """The message of each key with the highest sequence, in the order of the keys."""
    found: dict[str, LandedMessage] = {}
    for message in messages:
        known = found.get(message.key)
        if known is None or message.sequence > known.sequence:
            found[message.key] = message
    return [found[key] for key in sorted(found)]


def write_latest(
    messages: Sequence[LandedMessage], write: Callable[[list[LandedMessage]], list[tuple[LandedMessage, str]]]
) -> list[tuple[LandedMessage, str]]:
    """Writes the latest message of each key. A refused document leaves its place to the message before it. `write` returns the
    refused messages with the reason, and so does this function."""
    refused: list[tuple[LandedMessage, str]] = []
    while messages:
        new = write(latest(messages))
        refused += new
        sequences = {message.key: message.sequence for message, _ in new}
        messages = [one for one in messages if one.sequence < sequences.get(one.key, 0)]
    return refused


def fingerprint(text: str) -> bytes:
    """A hash that is equal for equal JSON values: neither the order of members nor the form of a number counts. A text that
    Python cannot read equals only itself."""
    try:
        value = simplejson.loads(text, parse_int=_number, parse_float=_number)
        return sha256(simplejson.dumps(value, use_decimal=True, sort_keys=True).encode()).digest()
    except (ValueError, RecursionError, DecimalException):
        return sha256(b"unread " + text.encode(errors="surrogatepass")).digest()


def _number(text: str) -> Decimal:
    number = _EXACT.create_decimal(text)
    return number.normalize(_EXACT) if number else Decimal(0)


def shortened(text: str, most: int = 200) -> str:
    """A text for people: the beginning of a long one, with its length."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


class LandingError(StatestoreError):
    """A target refuses the landing, and another try ends alike."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingPlace:
    """Where a product lands, as an operator asks for it."""

    url: str
    name: str
    """Of the table, or of the alias."""
    product: Product
    entities: Mapping[str, Entity]
    version: int
    """Of the product; 0 where it is unknown."""
    indexes: Sequence[str] = ()
    """The members that get an index."""


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


LOOKS: Final = 60
LOOK_SECONDS: Final = 0.5
"""So often, and so far apart, a comparison looks whether somebody lands a partition. A batch takes a second or two."""
SAMPLE: Final = 5
"""This many keys of each kind of difference are shown."""


class _Last(NamedTuple):
    """The last landed message of a key. `document`: its fingerprint; None for a tombstone."""

    key: str
    document: bytes | None
    sequence: int


@dataclass(slots=True, kw_only=True)
class LandingComparison:
    """`equal`: how many documents are the same. `waiting`: how many keys have a later message that has not landed. `missed`: a
    line for each partition whose messages no process lands here. Each other list has keys as JSON text."""

    equal: int = 0
    waiting: int = 0
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    refused: list[RefusedDocument] = field(default_factory=list)
    missed: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """The result for people: the counts, then some keys of each kind of difference."""
        found = {"missing": self.missing, "not in the topic": self.extra, "different": self.different}
        counts = {"equal": self.equal, "on the way": self.waiting} | {words: len(keys) for words, keys in found.items()}
        yield ", ".join(f"{words} {count:,}" for words, count in {**counts, "refused": len(self.refused)}.items())
        for words, keys in found.items():
            yield from (f"{words}: {shortened(key)}" for key in keys[:SAMPLE])
        for one in self.refused[:SAMPLE]:
            yield f"refused: {shortened(one.key)}, sequence {one.sequence}: {one.reason}"
        yield from self.missed

    @property
    def right(self) -> bool:
        """Whether the target holds what the topic holds."""
        return not (self.missing or self.extra or self.different or self.refused or self.missed)


def compare_landing(moment: Moment, messages: Iterable[LandedMessage]) -> LandingComparison:
    """Compares. `messages`: all messages of the topic, read after the moment. Holds a hash of each document of the topic."""
    last: dict[bytes, _Last] = {}
    waiting: set[bytes] = set()
    refused = {one.key_hash: one.sequence for one in moment.refused}
    held = {fingerprint(one.key): one for one in map(_hashed, moment.documents)}
    for message in messages:
        key = fingerprint(message.key)
        if message.offset >= moment.offsets.get(message.partition, 0):
            waiting.add(key)
        elif key not in last or message.sequence > last[key].sequence:
            document = None if message.document is None else fingerprint(message.document)
            last[key] = _Last(message.key, document, message.sequence)
    result = LandingComparison(waiting=len(waiting), refused=list(moment.refused))
    for key, one in last.items():
        found = held.get(key)
        if (
            key in waiting
            or refused.get(sha256(one.key.encode()).digest()) == one.sequence
            or (one.document is None and found is None)
        ):
            continue
        if found is None:
            result.missing.append(one.key)
        elif one.document is None:
            result.extra.append(one.key)
        elif (found.document, found.sequence) != (one.document, one.sequence):
            result.different.append(one.key)
        else:
            result.equal += 1
    result.extra += [one.key for key, one in held.items() if key not in last and key not in waiting]
    return result


def missed_partitions(
    ends: Mapping[int, int],
    before: Mapping[int, int],
    offsets: Callable[[Collection[int]], Mapping[int, int]],
    *,
    runs: bool,
    sleep: Callable[[float], None],
) -> list[str]:
    """A line for each partition whose messages no process lands. `ends`: of the topic; `before`: the offsets of the target then;
    `offsets`: those of now; `runs`: whether a process of the landing runs. Without one, a partition is missed where others have
    landed and it never has."""
    waiting = {one: end - before.get(one, 0) for one, end in ends.items() if before.get(one, 0) < end}
    if not runs:
        why = "nothing of it has ever landed, and other partitions have"
        return [_missed(one, waiting[one], why) for one in sorted(waiting) if before and one not in before]
    for _ in range(LOOKS):
        now = offsets(waiting)
        waiting = {one: count for one, count in waiting.items() if now.get(one, 0) <= before.get(one, 0)}
        if not waiting:
            return []
        sleep(LOOK_SECONDS)
    why = f"the landing runs, and took none of them for {LOOKS * LOOK_SECONDS:g} s"
    return [_missed(one, waiting[one], why) for one in sorted(waiting)]


def _missed(partition: int, count: int, why: str) -> str:
    return f"missed: {count:,} messages of partition {partition} wait: {why}"


def _hashed(one: LandedDocument) -> _Last:
    return _Last(one.key, fingerprint(one.document), one.sequence)
