"""The report of a run in which all happened that the metrics count: a trial, and the monitor of a job around its driver."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from processor.counts import BATCH
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import Report, Troubles, no_report
from processor.engine.rounds.round_counts import count_ages, stage_time
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.job.kafka.lag import TopicLag
from processor.job.metrics.status import JobPhase
from processor.job.run.monitor import JobMonitor, LastBatch
from processor.language.definitions.load import load
from processor.values.record import Record
from registry.model import PastRuns, WaitingGroup
from statestore.memory import MemoryStore, MeteredStore
from tests.unit.engine.rounds.logged_job import DEFINITIONS

WITH_BADGE = {
    **DEFINITIONS,
    "entities.yaml": """
        user: {key: [id], columns: {id: int, name: string}}
        star: {key: [id], columns: {id: int, who: string, note: string, on: date}, unrepresentable: {on: null}}
    """,
    "badge.yaml": """
        product: badge
        root: star
        fields: [id]
        embed: {user: {one: user, on: {name: who}, fields: [name]}}
    """,
}
SETTINGS = Settings(fan_out_page=2, wait_seconds=1, settle_seconds=1, lanes=1)
JOB = "main"
WAITING = (
    WaitingGroup("user", "column-type", "id", 60, 40.0, 90.0),
    WaitingGroup("repo", "not-json", "", 8, 80.0, 90.0),
)
"""Of the dead letters of all runs."""


class ThrottledStore(MeteredStore):
    """A store that counts units, and as many throttles and retries as requests."""

    @property
    def spent(self) -> Counter[str]:
        units = {"half units UpdateItem": 2 * self.written, "half units Query": int(2 * self.read_units)}
        each = {f"{kind} {name}": n for kind in ("throttles", "retries") for name, n in self.requests.items()}
        return Counter({**units, **each})

    @spent.setter
    def spent(self, _: Counter[str]) -> None:
        """The store above keeps its own here."""


def record(topic: str, offset: int, value: object) -> Record:
    return Record(topic=topic, partition=0, offset=offset, key=None, value=json.dumps(value).encode(), timestamp=1_000)


def busy_trial() -> Trial:
    """A trial over late indexes: fan-outs, settling, a dead letter, replays and ignored records."""
    trial = Trial(plan=plan_alone(load(WITH_BADGE), 5), settings=SETTINGS)
    store: MemoryStore = ThrottledStore(5, lag=30, clock=trial.clock.now)
    trial.driver.progress.store = store
    trial.driver.rounds.executor = replace(trial.driver.rounds.executor, store=store)  # type: ignore[type-var]
    stars = [record("star", n, {"id": n, "who": "ada"}) for n in range(9)]
    trial.batch([record("user", 0, {"id": 1, "name": "ada"}), *stars])
    trial.batch([record("user", 1, {"id": 1, "name": "eve"}), record("user", 2, {"id": "x", "name": 1})])
    trial.batch([record("user", 1, {"id": 1, "name": "eve"}), record("nothing", 0, {}), record("star", 9, {"id": 9})])
    trial.batch([record("star", 10, {"id": 9}), record("star", 11, {"id": 9})])
    trial.batch(
        [record("star", 12, {"op": "c", "before": None, "after": {"id": 10, "who": None, "on": "infinity"}})]
    )  # no `note`
    trial.finish()
    return trial


def monitored(trial: Trial, report: Report = no_report) -> Any:
    """A job around the driver of a trial, as the monitor reads it."""
    return SimpleNamespace(
        driver=trial.driver,
        lease=SimpleNamespace(
            job=JOB,
            past=PastRuns(restarts=3, seen=2, failed=1, since=20.0, at=20.0, text="out of memory", last_failure=20.0),
            charts=None,
        ),
        renewal=SimpleNamespace(age=3.2),
        follower=None,
        topics=SimpleNamespace(missing={}, streamed={"user"}, wrong=""),
        moves=SimpleNamespace(former={"star": "star"}),
        positions={},
        left={},
        readers={"user": "user"},
        troubles=Troubles(report, clock=lambda: 40.0),
        phase=JobPhase.READS,
        last_batch=LastBatch(number=3, at=90.0, records=12, documents=5),
        settings=trial.settings,
        paused=False,
        work=None,
    )


def run_report() -> dict[str, Any]:
    """The report. A trial lacks Spark's tasks, which count ages, and the stream, which times batches; this one has no walk, and
    its overlay leaves nothing to correct. So these counts are put in."""
    trial = busy_trial()
    trial.driver.tally.update(count_ages([0.3, 2.0, 7.0, 1_000.0]) + stage_time(BATCH, 0.0))
    trial.driver.tally.update(Counter(walked=4, deleted=2, corrections=1, held=3, released=2))
    trial.driver.tally["released incomplete"] = 1
    job = monitored(trial)
    job.troubles.begin("registry", "127.0.0.1:5432/statestore does not answer", "start Postgres")
    monitor = JobMonitor(job, clock=lambda: 100.0)
    registry: Any = SimpleNamespace(letters=SimpleNamespace(waiting=lambda: WAITING))
    monitor._look_at_letters(registry)
    state = monitor.state({"user": TopicLag(7, 40.0), "star": TopicLag(0, None)})
    awaited = {"topic": "app.transaction", "id": "760", "missing": {"public.star": [1, 2]}}
    state["topics"]["user"]["retention"] = 600.0
    state["rejects"] = [{"topic": "user", "read": 100, "dead": 12, "text": ""}]
    pause = {"kind": "topic", "name": "star", "at": 70.0, "who": "ada", "why": "the source is repaired"}
    return state | {"gates": {"badge": {"waiting": 2, "since": 92.0, "transaction": awaited}}, "pauses": [pause]}
