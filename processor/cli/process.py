"""A job in this process: the signals that end it, its page, and the run of an operator's verb.

SIGTERM and SIGINT (Ctrl-C) end a job within 10 s, and nothing is lost: the next start does unfinished work again.

    1. the signal         one line; while the job opens, Stopped ends that at once; later the job ends after its batch or round
    2. 5 s later          Spark cancels the tasks that still run, and the batch is not committed
    3. 9 s later          the process gives the lease back and ends, whatever it waits for
    a second signal       the process ends at once; the next start waits until the lease expires

A cancelled task may still write for a moment, like a task of a killed job: the next start fences its producers and reloads
what it left (rules 5 and 7 of docs/architecture.md).
"""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import time
from typing import TYPE_CHECKING, Any

from processor.cli.printing.output import JobLog
from processor.engine.plan.planning import plan_of
from processor.engine.rounds.events import JobEvent, Report, Troubles, reject_lines, trouble_line
from processor.environment.settings.settings import Settings, WatchSettings, owner_name
from processor.errors import Stopped
from processor.job.metrics.status import SILENT_SECONDS, JobPhase, wrong_in_report, wrong_runs
from processor.text import duration_text
from registry.model import PastRuns

if TYPE_CHECKING:
    from processor.job.metrics.status_page import Pages, RunState
    from processor.job.run.job import Job
    from registry.repository import Registry

CANCEL_SECONDS = 5.0
"""From the signal until Spark cancels tasks."""
END_SECONDS = 9.0
"""From the signal until the process ends in any case."""
RELEASE_SECONDS = 0.5


@contextmanager
def end_signals(handler: Callable[[int, Any], object]) -> Iterator[None]:
    """Handles SIGTERM and Ctrl-C within the block."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


class StopSignals:
    """The handler of the signals. `stopping`: the first signal sets it. `job`: the job, once open. `log`: takes the lines.
    `troubles`: what the job waits for; they outlast a job that opens again. `past`: the runs before, by the registry."""

    def __init__(self, log: JobLog) -> None:
        self.stopping = Event()
        self.job: Job | None = None
        self.log, self._ended = log, Event()
        self.troubles = Troubles(log)
        self.past = PastRuns()

    @contextmanager
    def handled(self) -> Iterator["StopSignals"]:
        """Handles the signals within the block. After the first of them logs are silent: py4j logs a traceback for each request
        to a JVM that the same signal ended."""
        with end_signals(self._stop):
            try:
                yield self
            finally:
                self._ended.set()
                logging.disable(logging.NOTSET)

    def watch(self, job: "Job | None") -> None:
        """Ends this job at a signal; None while no job is open."""
        self.job = job

    def _stop(self, number: int, _frame: object) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)
        logging.disable()
        self.stopping.set()
        Thread(target=self._end_in_time, name="end in time", daemon=True).start()
        opens = self.job is None or self.job.phase is JobPhase.STARTS
        text = "ends before the first batch" if opens else "finishing this batch"
        self.log.write_at_once(JobEvent(what="stopping", text=f"{text}; a second signal ends the process at once"))
        if opens:
            raise Stopped("stopped on request")

    def _end_in_time(self) -> None:
        if not self._ended.wait(CANCEL_SECONDS) and self.job is not None:
            with suppress(Exception):
                self.job.spark.sparkContext.cancelAllJobs()
        if not self._ended.wait(END_SECONDS - CANCEL_SECONDS):
            release = Thread(target=self._release, daemon=True)
            release.start()
            release.join(RELEASE_SECONDS)
            text = "stopped in the middle of its work; the next start does that work again"
            self.log.write_at_once(JobEvent(what="stopped", text=text))
            os._exit(0)

    def _release(self) -> None:
        if self.job is not None:
            with suppress(Exception):
                self.job.registry.runs.end(self.job.lease.job, self.job.lease.owner, "stopped")


def open_operator_run(settings: Settings, registry: "Registry", signals: StopSignals, *, take_over: bool) -> "Job":
    """The open job, by the definitions in force now. A signal stops it. Raises LeaseHeld while another run lives, unless
    `take_over`: before the start of Spark."""
    from processor.job.run.lease import refuse_living_run
    from processor.job.run.open_job import RunRequest, open_job

    if not take_over:
        refuse_living_run(registry.jobs, settings.job, owner_name(), signals.stopping)
    request = RunRequest(
        settings=settings,
        plan=plan_of(registry.snapshot()),
        registry=registry,
        take_over=take_over,
        report=signals.log,
        stopping=signals.stopping,
        troubles=signals.troubles,
    )
    signals.job = open_job(request)
    return signals.job


@contextmanager
def shown_status(settings: WatchSettings, signals: StopSignals) -> Iterator[None]:
    """Serves the page within the block, if the settings name a port. Raises SettingError where the port is taken."""
    from processor.job.metrics.status_page import JOB_PAGES, RunState

    def read() -> RunState:
        now = time()
        degraded = tuple(trouble_line(trouble, now) for trouble in signals.troubles.now)
        report = signals.job.monitor.report if signals.job is not None else None
        if report is None:
            return RunState(None, tuple(wrong_runs(signals.past)), degraded)
        age, ended = now - report["at"], signals.job is None or signals.job.phase is JobPhase.ENDED
        lost = age > SILENT_SECONDS and not ended  # one that has ended gives its lease back, or another one opens
        silent = [f"the job has reported nothing for {duration_text(age)}; see its log"] if lost else []
        return RunState(report, (*silent, *wrong_in_report(report)), (*degraded, *reject_lines(report)))

    with served_page(settings, signals.log, read, JOB_PAGES):
        yield


@contextmanager
def served_page(settings: WatchSettings, log: Report, read: "Callable[[], RunState]", pages: "Pages") -> Iterator[None]:
    """Serves pages of a state within the block, if the settings name a port. Raises SettingError where the port is taken."""
    if not settings.status_port:
        yield
        return
    from processor.job.metrics.status_page import status_server

    with status_server(settings.status_host, settings.status_port, read, pages) as port:
        host = f"[{settings.status_host}]" if ":" in settings.status_host else settings.status_host
        log(JobEvent(what="status page", text=f"status page: http://{host}:{port}/"))
        yield
