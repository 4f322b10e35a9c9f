"""A document that is too large for its topic: a dead letter takes its place, and the documents of the other roots go on."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.protocol.ledger import group_key, read_entry
from processor.job.run.run_job import run_job
from tests.integration.job.running_job import configure

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


def limit(scene: Scene, size: int) -> None:
    configure(scene, f"{scene.settings.job}.profile", max_message_bytes=str(size))


def is_marked(scene: Scene, job: Any) -> bool:
    place = job.driver.plan.products["profile"].ledger
    key = group_key(place, "1")
    return read_entry(job.driver.store.get([key]).get(key), place.number).unfit


@pytest.mark.rest
@pytest.mark.plain
@pytest.mark.parametrize("lowered", ["before the start", pytest.param("under the job", marks=pytest.mark.slow)])
def test_a_document_beyond_its_topic_s_limit_becomes_a_dead_letter_until_the_limit_is_raised(
    scene: Scene, rows: SimpleNamespace, lowered: str
) -> None:
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"))
    scene.run()
    before = scene.documents()
    if lowered == "before the start":
        limit(scene, 2_000)
    scene.produce(rows.star("ada", "long", note="x" * 5_000), rows.user(2, "bo"), rows.user(3, "cyd"), partition=0)
    lines: list[str] = []
    with scene.opened(report=lambda event: lines.append(event.text)) as job:
        limit(scene, 2_000)
        run_job(job, once=True)
        assert job.driver.progress.backlog.stopped == {}
        assert job.monitor.state({})["unfit_documents"] == {"profile": 1}
        assert is_marked(scene, job)
    assert scene.documents() == {**scene.truth(), '{"id":1}': before['{"id":1}']}
    ((topic, _, _, key, value, reason),) = scene.rejected()
    assert (topic, key, value) == (f"{scene.settings.job}.profile", b'{"id":1}', None)
    assert reason.startswith("the document of product profile takes 5,")
    assert f"topic {topic} takes messages of 2,000: raise its max.message.bytes" in reason
    assert next(line for line in lines if "of product profile takes" in line).startswith(reason)

    assert scene.run().tally["unfit"] == 0  # this start comes too early: the mark stays
    assert scene.documents()['{"id":1}'] == before['{"id":1}']
    assert len(scene.rejected()) == 1

    limit(scene, 8_000_000)
    with scene.opened() as job:
        run_job(job, once=True)
        assert not is_marked(scene, job)
    assert scene.documents() == scene.truth()
    assert scene.run().tally == {}


@pytest.mark.slow
def test_many_small_documents_go_to_a_topic_of_small_messages_in_small_batches(
    scene: Scene, rows: SimpleNamespace
) -> None:
    """The broker measures a batch of the producer, not each message."""
    scene.run()
    limit(scene, 2_000)
    scene.produce(*(rows.user(n, f"user{n}" * 10) for n in range(300)))
    assert scene.run().tally["unfit"] == 0
    assert scene.documents() == scene.truth()


@pytest.mark.slow
def test_a_document_that_is_small_again_goes_out(scene: Scene, rows: SimpleNamespace) -> None:
    scene.run()
    limit(scene, 2_000)
    scene.produce(rows.user(1, "ada"), rows.star("ada", "long", note="x" * 5_000))
    scene.run()
    assert scene.documents() == {}
    scene.produce(rows.star("ada", "long", note="short"))
    scene.run()
    assert scene.documents() == scene.truth()
