"""The edits of an operator: their reasons, their report, and the wait for running jobs."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from processor.cli.edit import change_lines, wait_for_jobs, worker_line
from processor.cli.main import main
from registry.model import JobStatus

Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "words",
    [
        ["remove", "p"], ["republish", "p"], ["pause"], ["pause", "p"], ["resume"], ["retire", "e", "GSI_1"],
        ["move", "e", "GSI_1", "gsi_2"], ["pause", "--why", " "], ["undo", "3"], ["add-slots", "6"],
        ["epoch", "t"],
    ],
)  # fmt: skip
def test_an_edit_without_a_reason_is_refused(words: list[str], capsys: Printed) -> None:
    assert main(words) == 1
    message = f"statestore {words[0]}: --why is missing: give the reason, which `statestore history` shows later\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("slot", ["GSI", "x", "GSI_x", "GSI_1_", "-1", "100"])
def test_a_slot_that_is_no_slot_is_wrong_usage(slot: str, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as error:
        main(["retire", "star", slot, "--why", "a test"])
    assert error.value.code == 2


AT = datetime(2026, 1, 2, tzinfo=UTC)


def status(job: str, *, alive: bool) -> JobStatus:
    return JobStatus(job=job, owner="host:7", alive=alive, generation=1, applied_version=1, renewed_at=AT)


def test_the_job_that_runs_does_the_work_else_the_next_one() -> None:
    jobs = [status("old", alive=False), status("main", alive=True)]
    assert (
        worker_line(jobs) == "the running job main (host:7) takes this version before its next batch, and does the work"
    )
    assert worker_line(jobs[:1]).startswith("no job runs: `statestore run` does the work, or `statestore backfill`")


class Jobs:
    """A registry whose jobs change with each look."""

    def __init__(self, *looks: JobStatus) -> None:
        self.looks = list(looks)

    def jobs(self) -> list[JobStatus]:
        return [self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]]


RUNNING = status("main", alive=True)


@pytest.mark.parametrize(
    ("last", "found", "line"),
    [
        (replace(RUNNING, applied_version=4), 0, "job main works by registry version 4\n"),
        (replace(RUNNING, alive=False), 1, "job main ended before it took registry version 3\n"),
        (replace(RUNNING, report={"refused_version": 3, "refusal": "no: a reason"}), 1, "no: a reason\n"),
    ],
    ids=["taken", "ended", "refused"],
)
def test_a_wait_ends_when_the_running_job_took_the_version_or_never_will(
    last: JobStatus, found: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = replace(RUNNING, report={"refused_version": 2, "refusal": "an earlier version"})
    pauses: list[float] = []
    assert wait_for_jobs(Jobs(RUNNING, RUNNING, earlier, last), 3, pauses.append) == found  # type: ignore[arg-type]
    assert capsys.readouterr().err == line
    assert len(pauses) == 2


def test_an_edit_counts_what_follows_from_its_products_and_lists_the_rest() -> None:
    changes = (
        "entity user: added", "entity star: added", "entity star: GSI_1 holds who", "entity star: changed",
        "join star(who) = user(name): added, down by GSI_1, up by GSI_1", "join a(b) = c(d): dropped, no product uses it",
        "entity star: GSI_5 will hold username (planned)", "product p: added, version 1",
    )  # fmt: skip
    assert list(change_lines(changes)) == [
        "entity star: changed",
        "join a(b) = c(d): dropped, no product uses it",
        "entity star: GSI_5 will hold username (planned)",
        "product p: added, version 1",
        "added for them: 2 entities, 1 slot, 1 join (`statestore slots` shows them)",
    ]
    assert list(change_lines(())) == []
