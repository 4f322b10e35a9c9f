"""A stream that is outdated begins again, also when an operator makes it right before it has ended."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from registry.edits import operations
from registry.edits.edit import Signature
from tests.integration.job.running_job import DEADLINE, running, wait_until

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

SHOWS_BADGES = {"badges": {"many": "badge", "on": {"who": "name"}, "fields": ["id"]}}


@pytest.mark.rest
def test_a_job_reads_on_after_a_topic_appeared_in_a_long_batch_and_was_paused_meanwhile(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.add_entity("badge", {"id": "int", "who": "string"}, "badges", SHOWS_BADGES, has_topic=False)
    topic = f"{scene.settings.job}.badge"
    began, may_end = Event(), Event()
    with running(scene) as job:
        process = type(job.job)._process

        def takes_long(*given: Any) -> None:
            began.set()
            assert may_end.wait(DEADLINE)
            process(*given)

        monkeypatch.setattr(type(job.job), "_process", takes_long)
        scene.produce(rows.user(1, "ada"))
        assert began.wait(DEADLINE)
        scene.make_topic("badge")
        wait_until(lambda: topic in job.job.topics.present, job)
        scene.registry.operate(
            Signature("a test", "the source writes nonsense"), operations.pause_topic, topic, paused=True
        )
        may_end.set()
        scene.produce(rows.user(2, "bob"), rows.star("bob", "one"))
        wait_until(lambda: not job.thread.is_alive() or len(scene.documents()) == 2, job)
        assert job.thread.is_alive()
        wait_until(lambda: bool(scene.documents() == scene.truth()), job)
    assert job.failures == []
