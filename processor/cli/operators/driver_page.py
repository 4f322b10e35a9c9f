"""The page of a job or of a landing while it runs (`--status-port`)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING

from processor.cli.operators.stop_signals import StopSignals
from processor.engine.rounds.events import JobEvent, Report, trouble_line
from processor.environment.settings.setting_groups import WatchSettings
from processor.job.metrics.status import SILENT_SECONDS, wrong_in_report
from processor.text import duration_text

if TYPE_CHECKING:
    from processor.job.metrics.status_page import Pages, RunState


@contextmanager
def shown_status(settings: WatchSettings, signals: StopSignals) -> Iterator[None]:
    """Serves the page within the block, if the settings name a port. Raises SettingError where the port is taken."""
    from processor.job.metrics.status_page import JOB_PAGES, RunState

    def read() -> RunState:
        now = time()
        degraded = tuple(trouble_line(trouble, now) for trouble in signals.troubles.now)
        report = signals.job.monitor.report if signals.job is not None else None
        if report is None:
            return RunState(None, (), degraded)
        age, ended = now - report["at"], signals.job is None or signals.job.ended
        lost = age > SILENT_SECONDS and not ended  # one that has ended gives its lease back, or another one opens
        silent = [f"the job has reported nothing for {duration_text(age)}; see its log"] if lost else []
        return RunState(report, (*silent, *wrong_in_report(report)), degraded)

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
