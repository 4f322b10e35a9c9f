"""Compares what a target holds with the last message of each key in the product's topic: `statestore land --verify`.

The target is read at one moment, with its offsets; the topic from its beginning to its end. A key with a message behind those
offsets is on its way, and not compared. So a landing may go on meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

from processor.job.landing.target import LandedDocument, LandedMessage, Moment, RefusedDocument, fingerprint, shortened

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
    line for each partition whose messages nobody lands here. Each other list has keys as JSON text."""

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
    """A line for each partition whose messages nobody lands. `ends`: of the topic; `before`: the offsets of the target then;
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
