"""Two runs of one job: the second is refused while the first lives, or takes over, and then the first can do no more harm."""

from contextlib import ExitStack
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.events import JobEvent
from processor.errors import Fenced
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.kafka.reader import read_topic
from processor.job.run.run_job import run_job
from processor.job.run.worker import transactional_id
from processor.values.record import Message
from registry.errors import LeaseHeld

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


@pytest.mark.rest
def test_a_second_job_is_refused_while_the_first_lives(scene: Scene) -> None:
    with scene.opened(owner="first", lease_seconds=5) as first:
        running = Thread(target=run_job, args=[first], kwargs={"once": False})
        running.start()
        with pytest.raises(LeaseHeld, match=r"runs already: first .*--take-over"), scene.opened(owner="second"):
            pass
        first.stopping.set()
        running.join()
    with scene.opened(owner="second"):  # at once: the first gave its lease back
        pass


@pytest.mark.rest
def test_a_job_that_is_taken_over_fails_at_its_next_batch_and_the_other_ends_it(
    scene: Scene, rows: SimpleNamespace
) -> None:
    names = [f"user{i}" for i in range(8)]
    scene.produce(*(rows.user(i, name) for i, name in enumerate(names)))
    scene.produce(*(rows.star(name, "repo") for name in names))
    batches: list[str] = []
    with ExitStack() as stack:
        second: list[Any] = []

        def take_over(event: JobEvent) -> None:
            if event.what == "batch":
                batches.append(event.text)
            if event.what == "batch" and not second:
                second.append(stack.enter_context(scene.opened(owner="second", take_over=True)))

        first = stack.enter_context(scene.opened(owner="first", report=take_over, batch_size=4))
        with pytest.raises(Fenced, match="another job took over"):
            run_job(first, once=True)
        assert batches == ["batch 0"]
        run_job(second[0], once=True)
        assert (
            second[0].driver.tally["read"] >= len(scene.lines) - 4
        )  # a batch that the first had committed is not read again
    assert scene.documents() == scene.truth()


@pytest.mark.rest
def test_a_job_that_is_taken_over_in_the_middle_of_a_batch_fails_before_it_sends(
    scene: Scene, rows: SimpleNamespace
) -> None:
    """The driver has seen its lease, and the other takes it before the tasks publish."""
    scene.produce(rows.user(1, "ada"), rows.star("ada", "repo"))
    with scene.opened(owner="first") as first, scene.opened(owner="second", take_over=True) as second:
        first.driver.rounds.check_lease = lambda: None
        with pytest.raises(Exception, match="generation 1 lost its lease; another job took over"):
            run_job(first, once=True)
        assert scene.published() == []
        assert scene.committed() == []
        run_job(second, once=True)
    assert scene.documents() == scene.truth()


def test_a_producer_of_a_job_that_was_taken_over_is_fenced_at_its_send(scene: Scene) -> None:
    message = Message(topic=scene.topic("user"), key=b"1", value=b"from the zombie", headers=())
    with scene.opened(owner="first") as first:
        mine = TransactionalOutbox(scene.settings.bootstrap_servers, {}, transactional_id(scene.settings, 0))
        mine.send(message)
        with scene.opened(owner="second", take_over=True):
            pass
        with pytest.raises(Fenced, match="another job took over the publishing"):
            _send(mine, message)
        assert not scene.registry.holds(first.lease)
    assert list(read_topic(scene.settings.bootstrap_servers, {}, scene.topic("user"))) == []


def _send(outbox: TransactionalOutbox, message: Message) -> None:
    outbox.send(message)
    outbox.flush()
