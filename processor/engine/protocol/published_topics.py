"""The topics that the job publishes to, as they were when it published all documents of a product: what has changed since?

    TOPICS, <product>    topic, id, partitions; version: the product's

A topic that was deleted and created again lacks the documents that do not change. Only a new version of the product publishes all
of them, so the job notes the topic again with the next version.
"""

from collections.abc import Iterable
from typing import NamedTuple

from statestore import keys
from statestore.keys import Key
from statestore.store import Item, Write
from statestore.writes import write_note

TOPICS = keys.progress_partition("TOPICS")


class PublishedTopic(NamedTuple):
    """A product's topic. `id`: changes when the topic is created again; `version`: the product's."""

    topic: str
    id: str
    partitions: int
    version: int


def read_published_topics(items: Iterable[Item]) -> dict[str, PublishedTopic]:
    """Product -> its topic, by the items of `TOPICS`."""
    return {
        item["SK"]: PublishedTopic(item["topic"], item["id"], item["partitions"], item["version"]) for item in items
    }


def write_published_topic(product: str, topic: PublishedTopic) -> Write:
    """Notes the topic of a product."""
    return write_note(Key(TOPICS, product), topic._asdict())


def is_new(before: PublishedTopic | None, now: PublishedTopic) -> bool:
    """Whether the job publishes all documents of the product to this topic: for the first time, or by another version."""
    return before is None or (before.topic, before.version) != (now.topic, now.version)


def describe_change(product: str, before: PublishedTopic, now: PublishedTopic) -> str:
    """How a topic changed under its product, and the command to give; empty for the same topic."""
    cure = f"`statestore republish {product}`"
    if before.id != now.id:
        return (
            f"topic {now.topic} of product {product} was deleted and created again: it lacks every document that has not "
            f"changed since. {cure} publishes all of them"
        )
    if before.partitions != now.partitions:
        return (
            f"topic {now.topic} of product {product} has {now.partitions} partitions, and had {before.partitions}: a new "
            "document of a root may be in another partition than its old one, which stays. Readers must take the highest "
            f"statestore.sequence of a key; or delete the topic, start the job again, and give {cure}"
        )
    return ""
