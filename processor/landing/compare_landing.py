"""Compares what a target holds with the last message of each key in the product's topic: `statestore land --verify`.

The target is read at one moment, with its offsets; the topic from its beginning to its end. A key with a message behind those
offsets is on its way, and not compared. So a landing may go on meanwhile.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from processor.landing.landed_message import LandedMessage, fingerprint
from processor.landing.target import LandedDocument, Moment, RefusedDocument

SAMPLE: Final = 5
"""So many keys of each kind of difference are shown."""


class _Last(NamedTuple):
    """The last landed message of a key. `document`: its fingerprint; None for a tombstone."""

    key: str
    document: bytes | None
    sequence: int


@dataclass(slots=True, kw_only=True)
class LandingComparison:
    """`equal`: how many documents are the same. `waiting`: how many keys have a later message that has not landed. Each list has
    keys as JSON text."""

    equal: int = 0
    waiting: int = 0
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    refused: list[RefusedDocument] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The result for people: the counts, then some keys of each kind of difference."""
        found = {"missing": self.missing, "not in the topic": self.extra, "different": self.different}
        counts = {"equal": self.equal, "on the way": self.waiting} | {words: len(keys) for words, keys in found.items()}
        yield ", ".join(f"{words} {count:,}" for words, count in {**counts, "refused": len(self.refused)}.items())
        for words, keys in found.items():
            yield from (f"{words}: {key}" for key in keys[:SAMPLE])
        for one in self.refused[:SAMPLE]:
            yield f"refused: {one.key}, sequence {one.sequence}: {one.reason}"

    @property
    def right(self) -> bool:
        """Whether the target holds what the topic holds."""
        return not (self.missing or self.extra or self.different or self.refused)


def compare_landing(moment: Moment, messages: Iterable[LandedMessage]) -> LandingComparison:
    """Compares. `messages`: all messages of the topic, read after the moment. Holds a hash of each document of the topic."""
    last: dict[bytes, _Last] = {}
    waiting: set[bytes] = set()
    refused = {fingerprint(one.key): one.sequence for one in moment.refused}
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
        if key in waiting or refused.get(key) == one.sequence or (one.document is None and found is None):
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


def _hashed(one: LandedDocument) -> _Last:
    return _Last(one.key, fingerprint(one.document), one.sequence)
