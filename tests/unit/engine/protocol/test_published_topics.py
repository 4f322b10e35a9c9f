"""The topics that the job publishes to: which changes need a command, and until when."""

import pytest

from processor.engine.protocol.identity import (
    PublishedTopic,
    describe_change,
    is_new,
    read_published_topics,
    write_published_topic,
)

NOTED = PublishedTopic("profiles", "id one", 2, 4)


def test_a_note_is_read_as_it_was_written() -> None:
    write = write_published_topic("profile", NOTED)
    assert read_published_topics([{"PK": write.key.pk, "SK": write.key.sk, **write.set}]) == {"profile": NOTED}


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (NOTED, ""),
        (NOTED._replace(id="id two"), "was deleted and created again: it lacks every document"),
        (NOTED._replace(partitions=3), "has 3 partitions, and had 2: a new document of a root"),
    ],
)
def test_a_changed_topic_has_a_line_that_names_the_command(now: PublishedTopic, line: str) -> None:
    found = describe_change("profile", NOTED, now)
    assert line in found
    assert bool(line) == ("topic profiles of product profile" in found) == ("`statestore republish profile`" in found)
    assert not is_new(NOTED, now)


def test_a_new_version_or_another_topic_gets_all_documents() -> None:
    assert is_new(None, NOTED)
    assert is_new(NOTED, NOTED._replace(version=5))
    assert is_new(NOTED, NOTED._replace(topic="others"))
