"""For how long gates have held the messages that are broken. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf

from tests.transactions.freshness import Commit
from tests.transactions.order_documents import broken
from tests.transactions.topic_watch import Arrival

Place = tuple[str, int, int]
"""The topic, the partition and the offset of a message."""


def place_of(arrival: Arrival) -> Place:
    return arrival.record.topic, arrival.record.partition, arrival.record.offset


def longest_waits(arrivals: Iterable[Arrival], commits: Iterable[Commit]) -> dict[Place, float]:
    """The most seconds for which its gate can have held each broken message, by Kafka's times: since the oldest commit that no
    message before has shown whole, and since the last other message, for a gate does not hold a change from before that."""
    messages, changes = defaultdict[tuple[str, int], list[Arrival]](list), defaultdict[int, list[Commit]](list)
    for arrival in sorted(arrivals, key=place_of):
        messages[arrival.record.topic, arrival.order].append(arrival)
    for commit in commits:
        changes[commit.order].append(commit)
    return dict(wait for same in messages.values() for wait in _waits(same, changes[same[0].order]))


def _waits(messages: Iterable[Arrival], commits: Iterable[Commit]) -> Iterator[tuple[Place, float]]:
    shown, before, other = -1, None, 0.0
    for message in messages:
        gone = message.record.timestamp / 1000
        if before and before.document != message.document:
            other = before.record.timestamp / 1000
        if broken(message.document):
            news = (one.at for one in commits if (one.revision or inf) > shown)
            yield place_of(message), gone - max(min(news, default=gone), other)
        else:
            shown = max(shown, message.revision or 0)
        before = message
