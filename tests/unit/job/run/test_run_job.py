"""How the stream of a job ends, and whether the job begins it again, ends with it, or fails."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.events import JobEvent, Troubles
from processor.environment.settings.settings import Settings
from processor.errors import Fenced, Outage, StatestoreError, Stopped
from processor.job.metrics.status import JobPhase
from processor.job.run import run_job as module
from processor.job.run.job import Job
from processor.job.run.run_job import run_job
from processor.job.run.source import OffsetRanges
from processor.job.run.topics import LOOK_SECONDS
from registry.errors import RegistryUnreachable
from registry.model import Lease

UNREPORTED = (
    '[STREAM_FAILED] Query [id = 2a, runId = 91] terminated with exception: Cannot invoke "scala.collection.IterableOps.map'
    '(scala.Function1)" because the return value of "scala.Option.get()" is null SQLSTATE: XXKST'
)
USERS, STARS = "users", "stars"
NO_REQUESTS = SimpleNamespace(next_letters=lambda _most: None)
"""Of replays, in the registry."""


class Query:
    """A stream of Spark. `waits`: what happens in each wait for its end; the stream ends by itself after them."""

    def __init__(self, *waits: Callable[[], None], failure: Exception | None = None) -> None:
        self.waits, self.failure, self.isActive = list(waits), failure, True

    def awaitTermination(self, _seconds: int) -> bool:
        if self.waits:
            self.waits.pop(0)()
        self.isActive = self.isActive and bool(self.waits)
        return not self.isActive

    def stop(self) -> None:
        self.isActive = False

    def exception(self) -> Exception | None:
        return self.failure


class FakeJob(Job):
    """A job without Spark: its streams are those that the test gives it. The broker has `existing` topics, and an operator pauses
    topics by `pauses`: the follower takes the pause between two batches."""

    def __init__(self, *queries: Query) -> None:
        self.existing, self.pauses, self.lines = {USERS}, set[str](), list[JobEvent]()
        self.queries, self.streams = list(queries), list[frozenset[str]]()
        snapshot = SimpleNamespace(paused=False, paused_topics=())
        clock = count(0, LOOK_SECONDS)
        entities = {name: SimpleNamespace(entity=SimpleNamespace(topic=name)) for name in (USERS, STARS)}
        driver = SimpleNamespace(
            settings=Settings(),
            clock=SimpleNamespace(now=lambda: next(clock)),
            report=self.lines.append,
            plan=SimpleNamespace(entities=entities),
            busy=False,
            background_work=lambda: None,
            note_read=lambda _positions: None,
            needs_topic_ends=False,
            store=SimpleNamespace(close=lambda: None),
            transactions=SimpleNamespace(close=lambda: None),
            pending=False,
            unsettled=False,
            progress=SimpleNamespace(walks=SimpleNamespace(behind=False)),
            rounds=SimpleNamespace(incarnations={}),
        )
        given: dict[str, Any] = {
            "driver": driver,
            "spark": None,
            "registry": SimpleNamespace(epochs=lambda *_: [], give_back=lambda _lease: None, replays=NO_REQUESTS),
            "admin": SimpleNamespace(
                topics=lambda names, _seconds: dict.fromkeys(self.existing & {*names}, 1),
                names=lambda _seconds: frozenset(),
            ),
            "lease": Lease(job="main", generation=1, owner="one", lanes=1),
            "renewal": SimpleNamespace(check=lambda: None, stop=lambda: None),
            "troubles": Troubles(self.lines.append),
            "follower": SimpleNamespace(snapshot=snapshot, turn=self._take_pauses, pending=False),
        }
        super().__init__(**given)

    def _take_pauses(self) -> None:
        self.snapshot.paused_topics = tuple(self.pauses)  # type: ignore[union-attr,misc]

    def stream(self, once: bool) -> Any:
        self.topics.streamed = self.topics.present
        self.streams.append(self.topics.present)
        return self.queries.pop(0)


@pytest.fixture(autouse=True)
def no_signal_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIGNAL_SECONDS", 0.0)


def test_an_outdated_stream_begins_again_though_a_pause_makes_it_right_before_it_has_ended() -> None:
    """A topic appears, which outdates the stream. An operator pauses this topic before the stream has ended."""

    def appears() -> None:
        job.existing.add(STARS)

    def is_paused() -> None:
        job.pauses.add(STARS)

    def is_stopped() -> None:
        job.stopping.set()

    long = Query(appears, is_paused, lambda: None)
    job = FakeJob(long, Query(is_stopped, lambda: None))
    run_job(job, once=False)
    assert job.streams == [{USERS}, {USERS}]
    assert job.lines[-1].what == "stopped"


def test_a_stream_that_ends_by_itself_is_a_failure_and_the_job_says_so() -> None:
    with pytest.raises(StatestoreError, match=r"^Spark ended the stream without an error.*start the job again$"):
        run_job(FakeJob(Query()), once=False)


def test_with_once_a_stream_that_ends_by_itself_has_done_its_work() -> None:
    job = FakeJob(Query())
    run_job(job, once=True)
    assert [line.what for line in job.lines] == ["missing topic"]


def test_a_lost_lease_ends_the_job_with_an_error() -> None:
    def lost() -> None:
        raise Fenced("job main: generation 1 lost its lease; another job took over")

    job = FakeJob(Query(lambda: None, lambda: None))
    job.renewal.check = lost  # type: ignore[method-assign]
    with pytest.raises(Fenced):
        run_job(job, once=False)


def test_a_batch_that_begins_after_the_job_ends_the_stream_ends_for_the_same_reason() -> None:
    job = FakeJob()
    job.topics.look(job.readers)
    job.topics.streamed = job.topics.present
    assert not job.ends_stream()
    job.stopping.set()
    assert job.ends_stream()
    with pytest.raises(Stopped):
        job.on_batch(SimpleNamespace(), 0)  # type: ignore[arg-type]


def test_while_a_batch_runs_the_stream_does_not_end() -> None:
    job = FakeJob()
    job.stopping.set()
    with job.turn:
        assert not job.ends_stream()
    assert job.ends_stream()


def streams_of(*failures: Exception | None) -> Sequence[Query]:
    """Streams that end at once, each with a failure or without one."""
    return [Query(failure=failure) for failure in failures]


def test_a_stream_whose_batch_spark_cannot_report_begins_again() -> None:
    job = FakeJob(*streams_of(RuntimeError(UNREPORTED), None))
    run_job(job, once=True)
    assert len(job.streams) == 2


def test_another_failure_of_a_stream_ends_the_job() -> None:
    job = FakeJob(*streams_of(StatestoreError("topic x is gone")))
    with pytest.raises(StatestoreError, match="topic x is gone"):
        run_job(job, once=True)
    assert len(job.streams) == 1


def test_a_job_whose_store_had_trouble_takes_small_pieces_until_a_batch_has_ended() -> None:
    job = FakeJob()
    assert job.batch_troubles.most_records(10_000) == 10_000
    job.troubles.begin("store", "table t: throttled", "wait")
    job.troubles.begin("registry", "no connection", "wait")
    assert job.batch_troubles.most_records(10_000) == 625
    job.note_batch(0, OffsetRanges(ranges={(USERS, 0): (0, 4)}), Counter(read=4))
    assert job.troubles.now == ()
    assert job.batch_troubles.most_records(10_000) == 10_000
    assert [line.what for line in job.lines] == ["degraded", "degraded", "recovered", "recovered"]


def test_a_batch_whose_requests_the_store_throttled_makes_the_job_degraded_until_one_without_has_ended() -> None:
    job = FakeJob()
    ranges = OffsetRanges(ranges={(USERS, 0): (0, 4)})
    job.note_batch(0, ranges, Counter({"request UpdateItem": 100, "throttles UpdateItem": 10}))
    assert job.lines == []
    for batch in (1, 2):
        job.note_batch(batch, ranges, Counter({"request UpdateItem": 100, "throttles UpdateItem": 11}))
        texts = [trouble.text.partition(";")[0] for trouble in job.troubles.now]
        assert texts == ["the store throttled 11 of 100 requests of the last batch"]
        assert job.batch_troubles.most_records(10_000) == 625
    job.note_batch(3, ranges, Counter({"request UpdateItem": 100}))
    assert [line.what for line in job.lines] == ["degraded", "recovered"]


class AwayRegistry:
    """The registry of a job after an outage began: the look for requests comes before it."""

    replays = NO_REQUESTS

    def epochs(self, *_: object) -> list[object]:
        raise RegistryUnreachable("no connection to the registry")

    def give_back(self, _lease: Lease) -> None:
        raise RegistryUnreachable("no connection to the registry")


def test_a_job_without_its_registry_rests_and_keeps_its_lease_and_its_monitor() -> None:
    job = FakeJob(Query(failure=RuntimeError("registry.errors.RegistryUnreachable: no connection to the registry")))
    job.registry = AwayRegistry()  # type: ignore[assignment]
    with pytest.raises(Outage, match="the batch failed: no connection to the registry"):
        run_job(job, once=False)
    assert job.phase.value == "waits for a part that does not answer"
    job.end()
    assert job.phase is JobPhase.ENDED


def test_a_paused_topic_keeps_where_the_stream_continues_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a start the checkpoint says it. In a run the positions said it before the stream left the topic."""
    job = FakeJob()
    job.positions = {(USERS, 0): 3, (STARS, 0): 5}
    job.pauses.add(STARS)
    job.take_version()
    monkeypatch.setattr(FakeJob, "_committed", lambda _: {(USERS, 0): 4})
    job.read_positions()
    assert (job.left, job.positions) == ({(STARS, 0): 5}, {(USERS, 0): 4})
    kept = SimpleNamespace(paused_at=lambda topic: {0: 7} if topic == STARS else {})
    monkeypatch.setattr(FakeJob, "checkpoint", kept)
    job.read_positions()
    assert job.left == {(STARS, 0): 7}
    job.pauses.clear()
    job.take_version()
    job.read_positions()
    assert job.left == {}
