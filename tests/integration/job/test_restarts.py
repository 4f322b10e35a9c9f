"""A job that is started again: with nothing new, with news, after a crash, without its checkpoint. Documents stay right."""

from collections.abc import Callable
from contextlib import ExitStack
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from processor.engine.protocol.ledger import run_key
from processor.engine.rounds.events import JobEvent
from processor.job.run import outages, run_job
from statestore.store import Delete, Equals
from tests.faulty.points import AtPoint
from tests.faulty.proxy import Answer, Relay, Request, proxy

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

NAMES = ("ada", "bob", "cyd", "dan")


@pytest.fixture(scope="module")
def worked(new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Scene:
    """A job that has worked off its topics once. The tests below each do something more to it, in any order."""
    scene = new_scene(batch_size=8)
    users = [rows.user(i, name) for i, name in enumerate(NAMES)]
    stars = [rows.star(name, f"repo{i}") for name in NAMES for i in range(4)]
    scene.produce(*stars[:8], *users, *stars[8:], rows.gone(stars[3]), rows.user(1, "bo"), rows.gone(users[2]))
    scene.first = scene.run()
    return scene


@pytest.mark.rest
def test_several_batches_and_partitions_end_with_the_documents_that_try_makes(worked: Scene) -> None:
    assert len(worked.first.batches) >= 3
    assert max(batch["read"] for batch in worked.first.batches) <= 8
    assert len({(r.topic, r.partition) for r in worked.lines}) == 4
    assert worked.documents() == worked.truth()
    assert '{"id":2}' not in worked.documents()


def test_every_record_read_is_accounted_for(worked: Scene) -> None:
    for tally in (*worked.first.batches, worked.first.tally):
        assert tally["read"] == sum(tally.get(name, 0) for name in ("applied", "superseded", "ignored", "dead letters"))
    assert worked.first.tally["read"] == 23


def test_a_second_run_with_nothing_new_reads_and_publishes_nothing(worked: Scene) -> None:
    before = worked.published()
    assert worked.run().tally == {}
    assert worked.published() == before


def test_new_records_continue_where_the_last_run_ended(worked: Scene, rows: SimpleNamespace) -> None:
    before = worked.published()
    worked.produce(rows.star("ada", "new"), rows.star("ada", "newer"))
    assert worked.run().tally["read"] == 2
    (new,) = [message for message in worked.published() if message not in before]
    assert new.key == b'{"id":0}'
    assert worked.documents() == worked.truth()


def test_the_last_batch_replayed_publishes_nothing_twice(worked: Scene) -> None:
    before = worked.published()
    worked.uncommit_last()
    again = worked.run()
    assert again.tally["read"] > 0
    assert again.tally["unchanged"] > 0
    assert again.published == 0
    assert worked.published() == before


def test_messages_that_nobody_noted_as_acknowledged_are_sent_again_with_higher_sequences(worked: Scene) -> None:
    """The driver dies after the broker has committed the messages and before the round is noted as ended."""
    before = worked.published()
    with worked.opened() as job:
        notes = job.driver.store.get([run_key(number) for number in range(job.lease.generation)])
        for key, note in notes.items():
            job.driver.store.delete(Delete(key=key, when=Equals("through", note["through"])))
    with worked.registry._database.transaction() as connection:  # nor did the registry hear of it
        connection.execute(text("UPDATE leases SET ended_run = NULL, ended_round = NULL"))
    worked.uncommit_last()
    again = worked.run()
    assert again.published > 0
    assert len(worked.published()) == len(before) + again.published
    assert worked.documents() == worked.truth()  # which also looks at the sequences


def test_a_lost_answer_to_the_end_of_a_round_stops_nothing(worked: Scene, rows: SimpleNamespace) -> None:
    """The end was written: the next try is refused by it, and no other job did that."""
    at = AtPoint("before the commit of the batch", lambda _: False)
    worked.produce(rows.star("bo", "late"))
    with proxy(worked.settings.endpoint, at) as endpoint:
        assert worked.run(endpoint=endpoint).published == 1
    assert at.reached.is_set()
    assert worked.documents() == worked.truth()


@pytest.mark.rest
def test_a_lost_checkpoint_reads_all_again_and_ends_with_the_same_documents(worked: Scene) -> None:
    worked.lose_checkpoint()
    again = worked.run(batch_size=5)
    assert again.tally["read"] == len(worked.lines)
    assert worked.documents() == worked.truth()


class FailingWrites:
    """A layer that fails every write of a row, as DynamoDB fails, until the job has started again."""

    def __init__(self) -> None:
        self.works = Event()

    def __call__(self, request: Request, relay: Relay) -> Answer:
        is_row = request.operation == "UpdateItem" and request.body["Key"]["PK"]["S"].startswith("TABLE#")
        if is_row and not self.works.is_set():
            return Answer(status=500, body={"__type": "x#InternalServerError", "message": "something broke"})
        return relay(request)


@pytest.mark.rest
def test_a_batch_that_the_store_fails_is_done_again_after_one_line(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outages, "FIRST_SECONDS", 0.0)
    scene.produce(rows.user(1, "ada"), rows.star("ada", "repo"))
    failing, events = FailingWrites(), list[JobEvent]()

    def report(event: JobEvent) -> None:
        events.append(event)
        if event.what == "degraded":
            failing.works.set()

    with proxy(scene.settings.endpoint, failing) as endpoint, ExitStack() as stack:
        job = run_job.run_again(
            lambda: stack.enter_context(scene.opened(endpoint=endpoint, report=report)), once=True, stopping=Event()
        )
    (line,) = [event.text for event in events if event.level == "warning"]
    assert line.startswith(f"store: the batch failed: table {scene.settings.table}: writing ")
    place = (
        f"try again (the store is at {endpoint}); the job waits, and then continues where it was; the job gives up at "
    )
    assert place in line
    assert "\n" not in line
    assert job.lease.generation == 2
    assert scene.documents() == scene.truth()
