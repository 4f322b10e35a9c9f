"""A job tells its driver where its topics end, when the driver asks."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.protocol.epochs import Partition
from processor.job.run.job import Job


@pytest.mark.parametrize("asks", [False, True])
def test_a_job_says_where_the_topics_of_its_stream_end_only_when_it_is_asked(asks: bool) -> None:
    answers: list[tuple[dict[Partition, int], dict[Partition, int]]] = []
    job: Any = SimpleNamespace(
        driver=SimpleNamespace(
            needs_topic_ends=asks, note_topic_ends=lambda ends, positions: answers.append((ends, positions))
        ),
        topics=SimpleNamespace(streamed=frozenset({"users"})),
        admin=SimpleNamespace(watermarks=lambda _: {0: (0, 5), 1: (3, 3)}),
        positions={("users", 0): 4},
    )
    Job.answer(job)
    assert answers == ([({("users", 0): 5}, {("users", 0): 4})] if asks else [])


def test_a_job_without_a_stream_answers_nothing() -> None:
    job: Any = SimpleNamespace(
        driver=SimpleNamespace(needs_topic_ends=True), topics=SimpleNamespace(streamed=frozenset())
    )
    Job.answer(job)
