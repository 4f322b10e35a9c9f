"""SIGTERM and SIGINT (Ctrl-C) end a job within 10 s, and nothing is lost: the next start does unfinished work again.

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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from processor.cli.printing.job_log import JobLog
from processor.engine.rounds.events import JobEvent, Troubles
from processor.errors import Stopped

if TYPE_CHECKING:
    from processor.job.run.job import Job

CANCEL_SECONDS = 5.0
"""From the signal until Spark cancels tasks."""
END_SECONDS = 9.0
"""From the signal until the process ends in any case."""
RELEASE_SECONDS = 0.5


class StopSignals:
    """The handler of the signals. `stopping`: the first signal sets it. `job`: the job, once open. `log`: takes the lines.
    `troubles`: what the job waits for; they outlast a job that opens again."""

    def __init__(self, log: JobLog) -> None:
        self.stopping = Event()
        self.job: Job | None = None
        self.log, self._ended = log, Event()
        self.troubles = Troubles(log)

    @contextmanager
    def handled(self) -> Iterator["StopSignals"]:
        """Handles the signals within the block. After the first of them logs are silent: py4j logs a traceback for each request
        to a JVM that the same signal ended."""
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield self
        finally:
            self._ended.set()
            logging.disable(logging.NOTSET)
            for number, handler in before.items():
                signal.signal(number, handler)

    def watch(self, job: "Job | None") -> None:
        """Ends this job at a signal; None while no job is open."""
        self.job = job

    def _stop(self, number: int, _frame: object) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)
        logging.disable()
        self.stopping.set()
        Thread(target=self._end_in_time, name="end in time", daemon=True).start()
        opens = self.job is None or not self.job.begun
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
