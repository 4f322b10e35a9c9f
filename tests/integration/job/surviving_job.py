"""A job that runs in a thread as `statestore run` runs it: it opens again after an outage."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread
from typing import Any

from processor.engine.plan.planning import plan_of
from processor.engine.rounds.events import JobEvent, Troubles
from processor.environment.programs.downloads import spark_kafka_jars
from processor.job.run.open_job import RunRequest, prepare_job
from processor.job.run.run_job import run_again
from tests.integration.job.running_job import wait_until

Scene = Any  # conftest's


class Survivor:
    """A job that runs in a thread as `statestore run` runs it. `events`: its lines; `jobs`: each that it opened."""

    def __init__(self, scene: Scene, **changes: Any) -> None:
        self.events, self.jobs, self.failures = list[JobEvent](), list[Any](), list[BaseException]()
        self.stopping, self.troubles = Event(), Troubles(self.events.append)
        self._scene, self._settings = scene, replace(scene.settings, **changes)
        self.thread = Thread(target=self._run)

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(event.what, event.text) for event in list(self.events)]

    def says(self, what: str, part: str) -> bool:
        """Whether a line says that a part is degraded, or recovered."""
        return any(event.what == what and event.fields.get("part") == part for event in list(self.events))

    def failure(self) -> BaseException:
        self.thread.join(600)
        return self.failures[0]

    def _open(self) -> Any:
        scene = self._scene
        request = RunRequest(
            settings=self._settings,
            plan=plan_of(scene.registry.snapshot()),
            registry=scene.registry,
            owner="one",
            jars=sorted(spark_kafka_jars().glob("*.jar")),
            report=self.events.append,
            stopping=self.stopping,
            troubles=self.troubles,
        )
        job = prepare_job(request)
        self.jobs.append(job)
        return job

    def _run(self) -> None:
        try:
            run_again(self._open, once=False, stopping=self.stopping)
        except BaseException as failure:
            self.failures.append(failure)


@contextmanager
def surviving(scene: Scene, **changes: Any) -> Iterator[Survivor]:
    """A job that runs until the block ends."""
    survivor = Survivor(scene, **changes)
    survivor.thread.start()
    try:
        wait_until(lambda: ("open", "runs") in survivor.lines or bool(survivor.failures), survivor)
        yield survivor
    finally:
        survivor.stopping.set()
        survivor.thread.join()


def goes_on(scene: Scene, survivor: Survivor, *lines: Any) -> None:
    """Produces records, and waits until the job has published their documents."""
    scene.produce(*lines)
    wait_until(lambda: scene.documents() == scene.truth(), survivor)
