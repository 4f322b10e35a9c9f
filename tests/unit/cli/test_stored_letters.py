"""`statestore dead-letters replay` next to a running job, which gets a request: the verb waits for the outcome of each letter."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli import dead_letters, status, stored_letters
from processor.cli.main import main
from processor.cli.stored_letters import NOBODY_SECONDS, follow, living_job
from processor.errors import StatestoreError
from processor.job.metrics.status import request_lines
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record, Rejected
from registry.errors import RegistryUnreachable
from registry.model import JobStatus, LetterOutcome, LetterPosition, ReplayRequest

NOW = datetime(2026, 3, 2, tzinfo=UTC)
JOB = JobStatus(
    job="main", owner="here:7", generation=2, applied_version=1, renewed_at=NOW, acquired_at=NOW, alive=True
)
WORDS = ["dead-letters", "replay", "--job", "main", "--bootstrap-servers", "nowhere:1"]


def letter(offset: int) -> DeadLetter:
    record = Record(topic="user", partition=0, offset=offset, epoch=1, timestamp=5, key=b"1", value=b"{")
    rejected = Rejected(record=record, reason=f"value 'x{offset}' is no int", code="column-type", entity="user")
    return DeadLetter(rejected=rejected, kept_since=0, last_seen=0)


def place(offset: int) -> LetterPosition:
    return LetterPosition("user", 0, offset, 1)


@dataclass(kw_only=True)
class Desk:
    """A registry with one request. `looks`: what each look of the verb finds: how the job has gone on, or an error."""

    looks: list[Callable[["Desk"], None]] = field(default_factory=list)
    jobs_now: list[JobStatus] = field(default_factory=lambda: [JOB])
    request: ReplayRequest | None = None
    noted: list[LetterOutcome] = field(default_factory=list)
    asked: list[tuple[LetterPosition, ...]] = field(default_factory=list)
    settled: list[Any] = field(default_factory=list)

    @property
    def replays(self) -> "Desk":
        return self

    def jobs(self) -> list[JobStatus]:
        return self.jobs_now

    def snapshot(self) -> Any:
        return SimpleNamespace(paused=False)

    @property
    def letters(self) -> Any:
        return SimpleNamespace(settle=lambda found, _: self.settled.append(found), waiting=tuple)

    def ask(self, places: Any, *, who: str, why: str, selection: str) -> int:
        self.asked.append(tuple(places))
        self.request = ReplayRequest(
            number=3,
            who=who,
            why=why,
            at=NOW,
            state="waiting",
            letters=len(self.asked[-1]),
            ended=0,
            selection=selection,
        )
        return 3

    def recent(self) -> tuple[ReplayRequest, ...]:
        return (self.request,) if self.request and self.request.state != "waiting" else ()

    def find(self, number: int) -> ReplayRequest | None:
        if self.looks:
            self.looks.pop(0)(self)
        return self.request if number == 3 else None

    def waiting(self) -> tuple[ReplayRequest, ...]:
        return (self.request,) if self.request and self.request.state == "waiting" else ()

    def outcomes(self, _: int) -> list[LetterOutcome]:
        return self.noted

    def withdraw(self, _: int) -> bool:
        return self.request is not None and self.request.state == "waiting"

    def note(self, *outcomes: LetterOutcome, state: Any = "done") -> None:
        assert self.request is not None
        self.noted += outcomes
        self.request = replace(self.request, ended=len(self.noted), state=state)


def asked(desk: Desk) -> int:
    """The number of a request for one letter."""
    return desk.ask([place(1)], who="ann", why="", selection="")


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()
    for module in (dead_letters, status):
        monkeypatch.setattr(module, "open_registry", lambda _: nullcontext(desk))
    monkeypatch.setattr(stored_letters, "LOOK_SECONDS", 0)
    for module in (stored_letters, dead_letters):
        monkeypatch.setattr(module, "read_stored_letters", lambda _: [(letter(1), ""), (letter(2), "")])
    return desk


def test_the_running_job_gets_one_request_and_the_verb_prints_each_outcome(desk: Desk, capsys: Any) -> None:
    applied, refused = LetterOutcome(place(1), "applied"), LetterOutcome(place(2), "refused", "")
    desk.looks = [lambda _: None, lambda desk: desk.note(applied, refused)]
    assert main([*WORDS, "--why", "the column is text now"]) == 0
    assert desk.asked == [(place(1), place(2))]
    printed = capsys.readouterr()
    assert printed.out == "2 of 2 dead letters replayed = 1 applied + 0 superseded + 0 ignored + 1 refused\n"
    first, *_, last = printed.err.splitlines()
    assert first == "request 3: the running job main (here:7) replays 2 dead letters, in turn with batches"
    assert last == "still waits: user/0 offset 2 epoch 1: value 'x2' is no int"


def test_a_letter_that_the_job_refuses_for_a_new_reason_gives_exit_status_1(desk: Desk, capsys: Any) -> None:
    noted = LetterOutcome(place(1), "applied"), LetterOutcome(place(2), "refused", "the row is too large")
    desk.looks = [lambda desk: desk.note(*noted)]
    assert main(WORDS) == 1
    assert "refused for a new reason: user/0 offset 2 epoch 1: the row is too large" in capsys.readouterr().err


def test_a_withdrawn_request_ends_the_wait_with_what_the_job_has_done(desk: Desk, capsys: Any) -> None:
    desk.looks = [lambda desk: desk.note(LetterOutcome(place(1), "applied"), state="withdrawn")]
    assert main(WORDS) == 1
    printed = capsys.readouterr()
    assert "request 3 was withdrawn: 1 of 2 letters replayed" in printed.err
    assert printed.out.startswith("1 of 2 dead letters replayed = 1 applied")


def test_ctrl_c_ends_the_wait_and_says_that_the_request_continues(desk: Desk, capsys: Any) -> None:
    def interrupt(_: Desk) -> None:
        raise KeyboardInterrupt

    desk.looks = [interrupt]
    assert main(WORDS) == 1
    line = capsys.readouterr().err
    assert (
        "the request continues without this command: `statestore dead-letters list` and `statestore status` show it"
        in line
    )
    assert "`statestore dead-letters replay --withdraw 3` withdraws it" in line


def test_a_registry_that_does_not_answer_for_a_while_ends_no_wait(desk: Desk, capsys: Any) -> None:
    def away(_: Desk) -> None:
        raise RegistryUnreachable("no connection to the registry")

    desk.looks = [away, away, lambda desk: desk.note(*(LetterOutcome(place(n), "applied") for n in (1, 2)))]
    assert main(WORDS) == 0
    assert capsys.readouterr().err.count("the wait continues: no connection to the registry") == 1


def test_a_job_that_ends_leaves_the_request_and_the_verb_says_how_to_go_on(desk: Desk) -> None:
    now = 0.0

    def pause(_: float) -> None:
        nonlocal now
        now += NOBODY_SECONDS / 4
        desk.jobs_now = []

    registry: Any = desk
    with pytest.raises(StatestoreError, match="runs no more, and request 3 waits for its next run") as ended:
        follow(registry, JOB, [letter(1)], asked(desk), pause=pause, clock=lambda: now)
    assert "--withdraw 3" in str(ended.value)


def test_a_run_that_begins_again_in_time_ends_no_wait(desk: Desk) -> None:
    now = 0.0

    def pause(_: float) -> None:
        nonlocal now
        now += NOBODY_SECONDS / 4
        desk.jobs_now = [] if now < NOBODY_SECONDS else [replace(JOB, owner="here:8")]
        if now > 2 * NOBODY_SECONDS:
            desk.note(LetterOutcome(place(1), "applied"))

    registry: Any = desk
    (report,) = follow(registry, JOB, [letter(1)], asked(desk), pause=pause, clock=lambda: now)
    assert report.outcome == "applied"


def test_a_run_has_the_whole_time_to_begin_again_once_the_registry_answers(desk: Desk) -> None:
    now = 0.0

    def away(_: Desk) -> None:
        raise RegistryUnreachable("no connection to the registry")

    def pause(_: float) -> None:
        nonlocal now
        now += NOBODY_SECONDS / 2

    desk.jobs_now = []
    desk.looks = [away, away, away, lambda _: None, lambda _: None]
    registry: Any = desk
    with pytest.raises(StatestoreError, match="runs no more"):
        follow(registry, JOB, [letter(1)], asked(desk), pause=pause, clock=lambda: now)
    assert (now, desk.looks) == (2 * NOBODY_SECONDS, [])


@pytest.mark.parametrize("changes", [{"alive": False}, {"job": "other"}])
def test_only_a_run_whose_lease_lives_gets_requests(desk: Desk, changes: dict[str, Any]) -> None:
    registry: Any = desk
    assert living_job(registry, "main") == JOB
    desk.jobs_now = [replace(JOB, **changes)]
    assert living_job(registry, "main") is None


def test_list_and_status_show_a_request_that_waits(desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    desk.ask([place(1), place(2)], who="ann", why="text now", selection="topic user, column age")
    assert main(["dead-letters", "list", "--bootstrap-servers", "nowhere:1"]) == 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("request")]
    assert line.startswith("request 3 of ann for topic user, column age (text now) since ")
    assert line.endswith(": the job has replayed 0 of 2 dead letters")
    assert list(request_lines(desk.waiting())) == [line]


def test_withdraw_takes_a_request_back_and_refuses_one_that_does_not_wait(desk: Desk, capsys: Any) -> None:
    desk.ask([place(1), place(2)], who="ann", why="", selection="")
    assert main([*WORDS, "--withdraw", "3"]) == 0
    assert capsys.readouterr().out == "request 3 withdrawn: 0 of 2 dead letters were replayed before\n"
    desk.note(LetterOutcome(place(1), "applied"), state="done")
    assert main([*WORDS, "--withdraw", "3"]) == 1
    assert "request 3 is done already: none waits" in capsys.readouterr().err
    assert main([*WORDS, "--withdraw", "4"]) == 1
    assert "request 4 does not exist" in capsys.readouterr().err


def test_list_says_what_became_of_a_request_and_brings_the_account_up_to_date(desk: Desk, capsys: Any) -> None:
    desk.ask([place(1), place(2)], who="ann", why="text now", selection="code column-type")
    desk.note(LetterOutcome(place(1), "applied"), LetterOutcome(place(2), "refused", ""))
    assert desk.request is not None
    desk.request = replace(desk.request, ended_at=NOW, outcomes={"applied": 1, "refused": 1})
    assert main(["dead-letters", "list", "--bootstrap-servers", "nowhere:1"]) == 0
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("request 3 of ann for code column-type (text now) replayed 2 dead letters at 2026-03-0")
    assert first.endswith(" = 1 applied + 1 refused again")
    assert last == "2 dead letters wait, 0 were replayed"
    ((found,),) = [desk.settled]
    assert {one.place: outcome for one, outcome in found.items()} == {place(1): "", place(2): ""}


def test_a_replay_keeps_the_group_that_the_person_chose(desk: Desk) -> None:
    desk.looks = [lambda desk: desk.note(LetterOutcome(place(1), "applied"))]
    assert main([*WORDS, "--topic", "user", "--offsets", "1", "--since", "1970-01-01"]) == 0
    assert desk.request is not None
    assert desk.request.selection == "topic user, offsets 1-1, since 1970-01-01T00:00:00+00:00"
