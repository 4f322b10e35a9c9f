"""Operators edit the registry while rows are stored, and while the job runs: every product gets all its documents."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.events import JobEvent
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.run.job import Job
from processor.job.run.lease import take_lease
from processor.job.run.run_job import run_job
from processor.values.record import Message
from registry.edits import operations
from registry.edits.edit import Signature
from registry.model import AssignmentState
from tests.integration.job.scene_records import last_documents

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
NOTES = {"notes": {"many": "star", "on": {"note": "name"}, "value": "repo", "order_by": ["repo"]}}
"""Needs a new slot on `star`: by its note."""


@pytest.mark.rest
@pytest.mark.plain
def test_a_new_product_over_stored_rows_publishes_every_root(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(40)), *(rows.star(f"u{n}", "r", note="u1") for n in range(9)))
    scene.run()
    scene.add("notes", fields=["id", "name"], embed=NOTES)
    assert [one.name for one in scene.registry.snapshot().waiting] == ["notes"]
    assert scene.run().tally["filled"] == 9
    assert scene.documents("notes") == scene.truth("notes")
    assert scene.documents("notes")['{"id":1}'] == {"id": 1, "name": "u1", "notes": ["r"] * 9}
    states = {one.state for one in scene.registry.snapshot().assignments}
    assert states == {AssignmentState.SERVING}
    before = scene.published("notes")
    assert scene.run().tally["walked"] == 0
    assert scene.published("notes") == before


@pytest.mark.rest
@pytest.mark.plain
def test_a_changed_product_goes_out_as_a_new_version_and_retracts_what_it_has_no_longer(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.add("names", fields=["id", "name"])
    scene.produce(*(rows.user(n, f"u{n}") for n in range(12)))
    scene.run()
    assert versions(scene, "names") == {b"1"}
    scene.add("names", fields=["id", "name"], where="id < 5")
    scene.run()
    assert len(scene.documents("names")) == 5
    assert scene.documents("names") == scene.truth("names")
    assert {dict(r.headers)["statestore.product_version"] for r in scene.published("names")[-3:]} == {b"2"}


@pytest.mark.rest
@pytest.mark.plain
def test_a_product_that_gets_the_topic_of_a_removed_one_publishes_above_its_sequences(
    scene: Scene, rows: SimpleNamespace
) -> None:
    """Readers keep the document of a key with the highest sequence. A message that no job wrote stops no start."""
    taken = f"{scene.settings.job}.names"
    scene.add("names", fields=["id", "name"])
    for name in ("ada", "eve", "cyd"):
        scene.produce(rows.user(1, name))
        scene.run()
    scene.add("names_again", fields=["id", "name"], topic=f"{scene.settings.job}.others")
    scene.run()
    scene.registry.operate(
        Signature("a test", "another one takes its topic"), operations.remove, "names", tombstones=False
    )
    outbox = KafkaOutbox(scene.settings.bootstrap_servers, {})
    for headers in ((), (("statestore.sequence", b"9223372036854775807"),)):
        outbox.send(Message(topic=taken, key=b'{"id":9}', value=b"{}", headers=headers))
    outbox.flush()
    lines = list[JobEvent]()
    scene.add("names_again", fields=["id", "name"], topic=taken)
    with scene.opened(report=lines.append) as job:
        run_job(job, once=True)
    ours = [one for one in scene.published("names_again") if len(one.headers) > 1]
    assert last_documents(ours) == {'{"id":1}': {"id": 1, "name": "cyd"}}
    assert [dict(one.headers)["statestore.product"] for one in ours] == [b"names"] * 3 + [b"names_again"]
    assert any(f"topic {taken} has 2 messages that no statestore job wrote" in one.text for one in lines)
    scene.run()


@pytest.mark.rest
@pytest.mark.plain
def test_a_topic_that_a_product_gets_again_loses_the_documents_whose_roots_went_meanwhile(
    scene: Scene, rows: SimpleNamespace
) -> None:
    """The product is live in its other topic when the first root goes, and removed when the second one goes."""
    first, other = f"{scene.settings.job}.names", f"{scene.settings.job}.others"
    scene.add("names", fields=["id", "name"])
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"), rows.user(3, "cyd"))
    scene.run()
    scene.add("names", fields=["id", "name"], topic=other)
    scene.run()
    scene.produce(rows.gone(rows.user(1, "")))
    scene.run()
    assert scene.last_values(other)['{"id":1}'] is None
    assert scene.last_values(first)['{"id":1}'] is not None
    scene.registry.operate(Signature("a test", "nobody reads it"), operations.remove, "names", tombstones=False)
    scene.produce(rows.gone(rows.user(2, "")))
    scene.run()
    scene.add("names", fields=["id", "name"])
    scene.run()
    assert scene.documents("names") == scene.truth("names")
    assert scene.last_values(first) == {'{"id":1}': None, '{"id":2}': None, '{"id":3}': b'{"id":3,"name":"cyd"}'}


def test_edits_reach_a_job_that_runs(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), rows.star("ada", "r", note="ada"))
    with running(scene) as job:
        wait_for(scene, job, lambda: scene.documents() == scene.truth())
        scene.add("notes", fields=["id", "name"], embed=NOTES)
        wait_for(scene, job, lambda: "notes" in job.driver.plan.products)
        scene.produce(rows.user(2, "bob"), rows.star("ada", "s", note="bob"))
        wait_for(scene, job, lambda: scene.documents("notes") == scene.truth("notes"))
        assert scene.documents("notes")['{"id":2}']["notes"] == ["s"]
        scene.registry.operate(Signature("a test", "nobody reads it"), operations.remove, "notes", tombstones=True)
        wait_for(scene, job, lambda: "notes" not in job.driver.plan.products)
    topic = f"{scene.settings.job}.notes"
    assert scene.last_values(topic) == {'{"id":1}': None, '{"id":2}': None}
    assert scene.documents() == scene.truth()


@pytest.mark.slow
def test_a_paused_product_publishes_what_it_missed(scene: Scene, rows: SimpleNamespace) -> None:
    scene.add("names", fields=["id", "name"])
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"))
    scene.run()
    scene.registry.operate(Signature("a test", "a reader is ill"), operations.pause, "names", paused=True)
    scene.produce(rows.user(1, "ada2"), rows.gone(rows.user(2, "")), rows.user(3, "cyd"))
    scene.run()
    assert scene.documents("names")['{"id":1}'] == {"id": 1, "name": "ada"}
    assert scene.documents() == scene.truth()
    scene.registry.operate(Signature("a test", "the reader is well"), operations.pause, "names", paused=False)
    scene.run()
    assert scene.documents("names") == scene.truth("names")
    assert len(scene.published("names")) == 5


@pytest.mark.slow
def test_a_paused_job_reads_nothing_until_it_is_resumed(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    with running(scene) as job:
        wait_for(scene, job, lambda: scene.documents() == scene.truth())
        scene.registry.operate(Signature("a test", "maintenance"), operations.pause, None, paused=True)
        wait_for(scene, job, lambda: job.paused)
        scene.produce(rows.user(2, "bob"))
        scene.add("names", fields=["id", "name"])  # takes the job several looks at the registry: time for a batch
        wait_for(scene, job, lambda: "names" in job.driver.plan.products and not job.pending)
        assert '{"id":2}' not in scene.documents()
        scene.registry.operate(Signature("a test", ""), operations.pause, None, paused=False)
        wait_for(scene, job, lambda: scene.documents() == scene.truth())


@pytest.mark.rest
def test_a_paused_topic_waits_where_it_is(scene: Scene, rows: SimpleNamespace) -> None:
    """Its records wait in Kafka, also over a restart, and the other topics go on. Afterwards the job reads only what waited."""
    scene.produce(rows.user(1, "ada"), *(rows.star("ada", f"r{n}") for n in range(5)))
    operator = {"who": "a test", "why": "a source writes nonsense"}
    with running(scene) as job:
        wait_for(scene, job, lambda: scene.documents() == scene.truth())
        scene.registry.operate(Signature(**operator), operations.pause_topic, scene.topic("star"), paused=True)
        wait_for(scene, job, lambda: scene.topic("star") not in job.topics.streamed)
        scene.produce(rows.star("ada", "later"), rows.user(2, "bob"))
        wait_for(scene, job, lambda: '{"id":2}' in scene.documents())
        assert len(scene.documents()['{"id":1}']["stars"]) == 5
    scene.produce(rows.user(3, "cyd"))
    assert scene.run().tally["read"] == 1
    scene.registry.operate(Signature(**operator), operations.pause_topic, scene.topic("star"), paused=False)
    assert scene.run().tally["read"] == 1
    assert scene.documents() == scene.truth()


@pytest.mark.slow
def test_a_topic_paused_after_a_failed_batch_goes_on_where_that_batch_began(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(rows.user(1, "ada"), *(rows.star("ada", f"r{n}") for n in range(5)))
    scene.run()
    scene.uncommit_last()
    operator = {"who": "a test", "why": "a source writes nonsense"}
    scene.registry.operate(Signature(**operator), operations.pause_topic, scene.topic("star"), paused=True)
    assert scene.run().tally["read"] == 1
    scene.registry.operate(Signature(**operator), operations.pause_topic, scene.topic("star"), paused=False)
    assert scene.run().tally["read"] == 5
    assert scene.documents() == scene.truth()


@pytest.mark.rest
def test_a_job_starts_while_operators_edit(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_late(*given: Any, **more: Any) -> Any:
        scene.add("names", fields=["id", "name"])
        return take_lease(*given, **more)

    scene.produce(rows.user(1, "ada"))
    monkeypatch.setattr("processor.job.run.open_job.take_lease", take_late)
    scene.run()
    assert scene.documents("names") == scene.truth("names")
    assert scene.documents() == scene.truth()


@pytest.mark.rest
def test_a_job_that_runs_reads_the_topic_of_a_new_entity(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    with running(scene) as job:
        wait_for(scene, job, lambda: scene.documents() == scene.truth())
        scene.add_entity("badge", {"id": "int", "of": "int"}, product="badges", embed={"badges": BADGES})
        wait_for(scene, job, lambda: "badges" in job.driver.plan.products)
        scene.produce(("badge", {"id": 7}, {"id": 7, "of": 1}))
        wait_for(scene, job, lambda: scene.documents("badges") == {'{"id":1}': {"id": 1, "badges": [7]}})


@pytest.mark.rest
def test_a_topic_that_is_missing_stops_nothing(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processor.job.run.topics.LOOK_SECONDS", 0.5)
    scene.produce(rows.user(1, "ada"))
    lines: list[str] = []
    with running(scene, report=lambda event: lines.append(event.text)) as job:
        wait_for(scene, job, lambda: scene.documents() == scene.truth())
        columns = {"id": "int", "of": "int"}
        scene.add_entity("badge", columns, product="badges", embed={"badges": BADGES}, has_topic=False)
        wait_for(scene, job, lambda: any("badge of entity badge does not exist" in line for line in lines))
        scene.produce(rows.user(2, "bob"))
        wait_for(scene, job, lambda: scene.documents() == scene.truth() and len(scene.documents("badges")) == 2)
        scene.make_topic("badge")
        scene.produce(("badge", {"id": 7}, {"id": 7, "of": 1}))
        wait_for(scene, job, lambda: scene.documents("badges")['{"id":1}'] == {"id": 1, "badges": [7]})
    assert sum("does not exist" in line for line in lines) == 1


@pytest.mark.rest
def test_a_job_that_is_far_behind_publishes_each_root_once(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(20)))
    scene.produce(*(rows.star(f"u{n % 20}", f"r{n}") for n in range(100)))
    lines: list[str] = []
    with scene.opened(report=lambda event: lines.append(event.text), batch_size=20, catch_up_records=40) as job:
        run_job(job, once=True)
    assert any("records behind: rows first" in line for line in lines)
    assert scene.documents() == scene.truth()
    assert len(scene.published()) == 20
    scene.produce(rows.star("u1", "later"))
    scene.run()
    assert scene.documents() == scene.truth()


@pytest.mark.slow
def test_a_job_that_stays_behind_publishes_after_some_time_all_the_same(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(20)), *(rows.star(f"u{n % 20}", f"r{n}") for n in range(100)))
    with scene.opened(batch_size=20, catch_up_records=40, catch_up_seconds=1) as job:
        job.catch_up.since = -1e9
        job.driver.begin_catch_up()
        run_job(job, once=True)
    assert scene.documents() == scene.truth()
    assert len(scene.published()) > 20


BADGES = {"many": "badge", "on": {"of": "id"}, "value": "id"}


@contextmanager
def running(scene: Scene, **options: Any) -> Iterator[Job]:
    """A job that runs in a thread, until the end of the block."""
    with scene.opened(**options) as job:
        failures: list[BaseException] = []

        def run() -> None:
            try:
                run_job(job, once=False)
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield job
        finally:
            job.stopping.set()
            thread.join()
        assert failures == []


def wait_for(scene: Scene, job: Job, condition: Callable[[], bool]) -> None:
    """Waits until the condition holds, by the plan that the job has then; fails when the job has ended before."""
    while not condition():
        assert not job.stopping.is_set()
        time.sleep(0.2)
        scene.plan = job.driver.plan


def versions(scene: Scene, product: str) -> set[bytes]:
    return {dict(record.headers)["statestore.product_version"] for record in scene.published(product)}
