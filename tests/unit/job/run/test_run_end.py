"""How a run ended, as the registry keeps it for `statestore status`."""

from threading import Event

import pytest

from processor.engine.rounds.events import JobEvent
from processor.environment.settings.settings import Settings
from processor.errors import BoundaryError, Fenced, Stopped
from processor.job.run import run_job as module
from processor.job.run.run_job import noted_end
from registry.errors import RegistryMissing, RegistryUnreachable
from statestore.store import FencedWrite, Transient


class Notes:
    """A registry that takes notes, or fails."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, ...]] = []
        self.lines: list[JobEvent] = []
        self.failure: Exception | None = None

    def __enter__(self) -> "Notes":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def runs(self) -> "Notes":
        return self

    def end(self, *note: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.notes.append(note)

    def run(self, failure: BaseException | None = None, *, stopping: bool = False) -> None:
        signal = Event()
        if stopping:
            signal.set()
        with noted_end(Settings(job="main"), "host:7", signal, self.lines.append):
            if failure is not None:
                raise failure


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    found = Notes()
    monkeypatch.setattr(module, "open_registry", lambda _settings: found)
    return found


def test_a_run_that_ends_is_finished_and_one_that_a_person_stops_is_stopped(notes: Notes) -> None:
    notes.run()
    notes.run(stopping=True)
    with pytest.raises(Stopped):
        notes.run(Stopped("stopped on request"), stopping=True)
    assert notes.notes == [("main", "host:7", how, "") for how in ("finished", "stopped", "stopped")]


@pytest.mark.parametrize(
    ("failure", "how", "text"),
    [
        (BoundaryError("topic x is gone:\n create it"), "failed", "topic x is gone: create it"),
        (Transient("no answer"), "failed", "no answer"),
        (TypeError("a defect"), "failed", "unexpected TypeError: a defect"),
        (Fenced("another job took over"), "lost", "another job took over"),
        (FencedWrite("a later run writes"), "lost", "a later run writes"),
    ],
)
def test_an_error_is_noted_with_its_message_and_goes_on(notes: Notes, failure: Exception, how: str, text: str) -> None:
    with pytest.raises(type(failure)):
        notes.run(failure)
    assert notes.notes == [("main", "host:7", how, text)]


def test_without_the_registry_the_log_says_that_status_cannot_tell(notes: Notes) -> None:
    notes.failure = RegistryUnreachable("no connection to the registry at db:5432/x")
    with pytest.raises(BoundaryError, match="gone"):
        notes.run(BoundaryError("topic x is gone"))
    (line,) = notes.lines
    assert (line.level, line.what) == ("warning", "end not noted")
    assert line.text.endswith("no connection to the registry at db:5432/x")


def test_a_run_that_ends_before_there_is_a_registry_notes_nothing(notes: Notes) -> None:
    notes.failure = RegistryMissing("schema x holds no registry")
    notes.run()
    assert notes.lines == []
