"""How a run ended, noted in the registry for `statestore status`: the process may be gone when somebody asks.

A job that runs again forgets it. Does not: note the end of a process that a signal kills, or whose registry does not
answer. The log has that error, and `status` says that the run gave no sign of its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from processor.engine.rounds.job_event import JobEvent, Report
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.errors import Fenced, StatestoreError, Stopped
from registry.errors import LeaseLost, RegistryError, RegistryMissing
from registry.model import How
from statestore.errors import FencedWrite, StoreError

LOST = (Fenced, LeaseLost, FencedWrite)


@contextmanager
def noted_end(settings: Settings, owner: str, stopping: Event, report: Report) -> Iterator[None]:
    """Notes how the run within the block ends. `owner`: its name in the lease; `stopping`: an operator stops it."""
    try:
        yield
    except BaseException as failure:
        _note(settings, owner, *end_of(failure), report)
        raise
    _note(settings, owner, "stopped" if stopping.is_set() else "finished", "", report)


def end_of(failure: BaseException) -> tuple[How, str]:
    """How a run ended that raised this, and the message for an operator."""
    if isinstance(failure, Stopped | KeyboardInterrupt):
        return "stopped", ""
    expected = isinstance(failure, StatestoreError | RegistryError | StoreError)
    text = str(failure) if expected else f"unexpected {type(failure).__name__}: {failure}"
    return "lost" if isinstance(failure, LOST) else "failed", " ".join(text.split())


def _note(settings: Settings, owner: str, how: How, text: str, report: Report) -> None:
    try:
        with open_registry(settings) as registry:
            registry.runs.end(settings.job, owner, how, text)
    except RegistryMissing:  # the run ended before there was a registry
        pass
    except RegistryError as error:
        line = f"`statestore status` cannot say how this run ended, and its log can: {error}"
        report(JobEvent(what="end not noted", text=line, level="warning"))
