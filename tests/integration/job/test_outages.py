"""A job whose registry or store goes away waits, says so, and continues by itself: no exit, and no wrong document."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from processor.engine.plan.planning import plan_of
from processor.engine.rounds import events as events_module
from processor.engine.rounds.events import JobEvent, Troubles
from processor.errors import Outage
from processor.job.run import outages
from processor.job.run.open_job import RunRequest
from processor.job.run.run_job import run_to_end
from tests.contract.postgres_servers import crashing_postgres, execute
from tests.faulty.proxy import WRITES, Answer, Relay, Request, proxy
from tests.integration.job.plain_engine import plain_engine
from tests.integration.job.running_job import wait_until
from tests.integration.job.surviving_job import goes_on, surviving
from tests.outages.cut_connections import CutConnections

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "LONGEST_SECONDS", 1.0)
    monkeypatch.setattr(outages, "LONGEST_THROTTLED_SECONDS", 1.0)


@pytest.fixture(scope="module")
def server() -> Iterator[SimpleNamespace]:
    """A Postgres that tests may crash: its address, and how."""
    with crashing_postgres() as (url, crash):
        yield SimpleNamespace(url=url, crash=crash)


@pytest.mark.rest
def test_an_idle_job_outlives_crashes_of_its_registry(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, server: SimpleNamespace
) -> None:
    scene = new_scene(registry=server.url)
    with surviving(scene) as survivor:
        goes_on(scene, survivor, rows.user(1, "ada"))
        for number in range(2, 4):
            server.crash()  # for about a second: the job may not even notice
            goes_on(scene, survivor, rows.user(number, f"user{number}"))
        server.crash(lambda: wait_until(lambda: survivor.says("degraded", "registry"), survivor))
        goes_on(scene, survivor, rows.user(4, "dan"))
        wait_until(lambda: not survivor.troubles.now, survivor)
    assert survivor.failures == []
    assert survivor.says("recovered", "registry")
    (first, *_) = [text for what, text in survivor.lines if what == "degraded"]
    assert "(--registry)" in first
    assert server.url.rpartition("@")[2] in first
    assert "no state is lost" in first


@pytest.mark.rest
def test_a_job_in_a_batch_outlives_a_registry_that_takes_no_writes(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, server: SimpleNamespace
) -> None:
    """A failover's first seconds: the registry answers reads, and the publisher of a lane cannot begin its attempt."""
    scene = new_scene(registry=server.url)
    database = server.url.rpartition("/")[2]
    with surviving(scene) as survivor:
        goes_on(scene, survivor, rows.user(1, "ada"))
        before = scene.published()
        execute(server.url, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        end_sessions(server.url)
        scene.produce(rows.user(2, "bob"))
        wait_until(lambda: survivor.says("degraded", "registry"), survivor)
        assert scene.published() == before
        execute(server.url, f"BEGIN READ WRITE; ALTER DATABASE {database} RESET default_transaction_read_only; COMMIT")
        end_sessions(server.url)
        goes_on(scene, survivor, rows.user(3, "cyd"))
    assert survivor.failures == []


@pytest.mark.plain
def test_an_outage_is_said_with_one_voice_and_the_next_start_is_by_the_newest_version(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, server: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, events, crashes = new_scene(registry=server.url), list[JobEvent](), list[Thread]()
    monkeypatch.setattr(events_module, "SAY_AGAIN_SECONDS", 3.0)
    scene.produce(rows.user(1, "ada"))
    troubles, down = Troubles(events.append), Event()

    def until_said_again() -> None:
        down.set()
        wait_until(lambda: sum(event.what == "degraded" for event in list(events)) == 2, None)

    def opened(job: Any) -> None:
        """An operator edits the registry of the first run, which then goes away until the log has said it twice."""
        if job is not None and not crashes:
            scene.widen()
            crashes.append(Thread(target=server.crash, args=(until_said_again,)))
            crashes[0].start()
            assert down.wait(60)

    with plain_engine(scene.positions):
        request = RunRequest(
            settings=replace(scene.settings, checkpoint=""),
            plan=plan_of(scene.registry.snapshot()),
            registry=scene.registry,
            report=events.append,
            troubles=troubles,
        )
        run_to_end(request, once=True, opened=opened)
    crashes[0].join()
    starts = [event.fields["registry_version"] for event in events if event.what == "start"]
    assert (starts[0], starts[-1]) == (1, 2)
    said = [event for event in events if event.what in ("degraded", "recovered")]
    assert [event.what for event in said] == ["degraded", "degraded", "recovered"]
    ends = {text for event in said[:2] for text in re.findall(r"the job gives up at [\d :-]{8,19}", event.text)}
    assert len(ends) == 1
    assert scene.documents() == scene.truth()


def end_sessions(url: str) -> None:
    execute(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL",
    )


@pytest.mark.rest
def test_a_job_outlives_crashes_of_the_postgres_of_its_store(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, server: SimpleNamespace
) -> None:
    scene = new_scene(store="postgres", store_url=server.url)
    with surviving(scene) as survivor:
        for number in range(3):
            goes_on(scene, survivor, rows.user(number, f"user{number}"), rows.star(f"user{number}", "repo"))
            server.crash()
            scene.produce(rows.star(f"user{number}", "next"))
        goes_on(scene, survivor, rows.star("user1", "another"))
    assert survivor.failures == []


@pytest.mark.rest
@pytest.mark.parametrize("part", ["store", "registry"])
def test_a_job_names_a_part_that_holds_its_connections_and_never_answers(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, server: SimpleNamespace, part: str
) -> None:
    place = urlsplit(server.url)
    cut = CutConnections((str(place.hostname), int(place.port or 0)))
    behind = urlunsplit(place._replace(netloc=f"{place.netloc.rpartition(':')[0]}:{cut.port}"))
    where = {"store": "postgres", "store_url": behind} if part == "store" else {"registry": behind}
    scene = new_scene(**where)
    try:
        with surviving(scene) as survivor:
            goes_on(scene, survivor, rows.user(1, "ada"))
            cut.silence()
            scene.produce(rows.user(2, "bob"))
            wait_until(lambda: survivor.says("degraded", part), survivor)
            (text,) = [text for what, text in survivor.lines if what == "degraded"]
            assert f"the {part} at 127.0.0.1:{cut.port}/" in text
            assert "has given no answer since" in text
            cut.open()
            wait_until(lambda: scene.documents() == scene.truth(), survivor)
            wait_until(lambda: not survivor.troubles.now, survivor)
    finally:
        cut.close()
    assert survivor.failures == []
    assert survivor.says("recovered", part)


class Weather:
    """A layer that answers writes, or every request, as a DynamoDB in trouble does, while `bad` is set."""

    def __init__(self, status: int, error: str, operations: tuple[str, ...] = ()) -> None:
        self.bad, self.refused = Event(), Event()
        self._answer = Answer(status=status, body={"__type": f"x#{error}", "message": "Throughput exceeds ..."})
        self._operations = operations

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if self.bad.is_set() and (not self._operations or request.operation in self._operations):
            self.refused.set()
            return self._answer
        return relay(request)


@pytest.mark.rest
def test_a_job_outlives_a_store_that_throttles_every_write(scene: Scene, rows: SimpleNamespace) -> None:
    weather = Weather(400, "ProvisionedThroughputExceededException", WRITES)
    with proxy(scene.settings.endpoint, weather) as endpoint, surviving(scene, endpoint=endpoint) as survivor:
        goes_on(scene, survivor, rows.user(1, "ada"))
        weather.bad.set()
        scene.produce(*(rows.user(number, f"user{number}") for number in range(2, 12)))
        wait_until(lambda: survivor.says("degraded", "store"), survivor)
        (trouble,) = survivor.troubles.now
        assert "throttled" in trouble.text
        assert "--batch-size" in trouble.cure
        # a run at rest shows what waits: the first user too, if the store refused the end of its round
        wait_until(lambda: waiting(survivor.jobs[-1]) in (10, 11), survivor)
        assert survivor.jobs[-1].monitor.report["oldest_unpublished"] is not None
        weather.bad.clear()
        wait_until(lambda: scene.documents() == scene.truth(), survivor)
        wait_until(lambda: survivor.says("recovered", "store"), survivor)
    assert survivor.failures == []


def waiting(job: Any) -> int:
    """How many records wait, by the last report of the job's monitor."""
    report = job.monitor.report
    return sum(lag["records"] for lag in report["topics"].values()) if report else 0


@pytest.mark.rest
def test_a_job_ends_after_its_longest_wait_with_what_where_since_when_and_the_cure(
    scene: Scene, rows: SimpleNamespace
) -> None:
    weather = Weather(500, "InternalServerError")
    with (
        proxy(scene.settings.endpoint, weather) as endpoint,
        surviving(scene, endpoint=endpoint, outage_seconds=1) as survivor,
    ):
        goes_on(scene, survivor, rows.user(1, "ada"))
        weather.bad.set()
        scene.produce(rows.user(2, "bob"))
        failure = survivor.failure()
    assert isinstance(failure, Outage)
    for words in (
        f" at {endpoint}",
        "InternalServerError",
        "has waited for the store for ",
        "since 20",
        "No state is lost",
        "start the job again",
    ):
        assert words in str(failure)
    assert scene.run().published >= 1
    assert scene.documents() == scene.truth()
