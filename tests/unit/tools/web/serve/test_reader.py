"""What a reader knows of open changes, what this costs it, and how old the state is at most."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from processor.engine.protocol.segments import OpenChange, changes_key, make_segments
from processor.tools.web import answers
from processor.tools.web.answers import LookUpProblem
from processor.tools.web.serve import reader as views
from processor.tools.web.serve.reader import OpenView, state_age
from registry.model import JobStatus
from statestore.keys import Key
from statestore.memory import MeteredStore
from statestore.store import Delete
from statestore.writes import write_note


@dataclass
class OpenedTable:
    """A table with open changes, and a view whose clock a test sets."""

    store: MeteredStore
    view: OpenView
    now: float = 0.0

    def opens(self, run: int, round_: int, *names: str, task: str = "0") -> None:
        """A task of a round makes changes of the rows with these names durable; each has its name as join key."""
        changes = [OpenChange("star", Key("TABLE#star", name), "1", ((1, name),), frozenset()) for name in names]
        for segment in make_segments(changes, run, round_, task):
            self.store.write(segment.write())

    def sees(self, *names: str) -> list[str]:
        """Those of the names under which the view has an open row, after a second."""
        self.now += 1
        overlays = self.view.overlays(self.store)
        return [name for name in names if any(list(one.rows(("GSI_1", name))) for one in overlays)]

    def units(self) -> int:
        """The read units of a look after a second."""
        before = self.store.read_units
        self.sees()
        return int(self.store.read_units - before)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> OpenedTable:
    table = OpenedTable(MeteredStore(3), OpenView())
    for module in (answers, views):
        monkeypatch.setattr(module, "monotonic", lambda: table.now)
    return table


def test_a_look_finds_the_changes_of_new_rounds_and_of_other_tasks_of_the_last_one(table: OpenedTable) -> None:
    table.opens(1, 5, "a", task="7")
    assert table.sees("a", "b") == ["a"]
    table.opens(1, 5, "b", task="3")
    table.opens(2, 1, "c")
    assert table.sees("a", "b", "c", "d") == ["a", "b", "c"]


def test_a_change_that_closed_or_came_late_counts_with_the_next_whole_look(table: OpenedTable) -> None:
    table.opens(1, 5, "closed")
    table.opens(1, 6, "new")
    table.sees()
    table.store.delete(Delete(key=changes_key(1, 5, "0", 0)))
    table.opens(1, 4, "late")
    assert table.sees("closed", "late", "new") == ["closed", "new"]
    table.now += views.WHOLE_SECONDS
    assert table.sees("closed", "late", "new") == ["late", "new"]


def test_open_changes_that_the_view_knows_cost_a_look_nothing(table: OpenedTable) -> None:
    empty = table.units()
    for round_ in range(20):
        table.opens(1, round_, *(f"{round_}-{n}" for n in range(600)))
    table.now += views.WHOLE_SECONDS
    whole = table.units()
    table.opens(1, 20, "next")
    table.sees("next")
    assert table.units() == empty < whole < 500  # no read for each of 12,000 rows
    assert table.sees("19-599") == ["19-599"]


def test_more_open_changes_than_a_process_holds(table: OpenedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MOST_CHANGES", 2)
    table.opens(1, 1, "a", "b", "c")
    with pytest.raises(LookUpProblem, match="3 changes are open, more than 2: wait until the job settles"):
        table.sees("a")
    table.store.delete(Delete(key=changes_key(1, 1, "0", 0)))
    table.now += views.WHOLE_SECONDS
    assert table.sees("a") == []


def test_a_durable_item_without_changes_is_nothing(table: OpenedTable) -> None:
    table.store.write(write_note(changes_key(1, 1, "erase", 0), {}))
    assert table.sees("b") == []


def job(report: Any, age: float | None = 2.0) -> JobStatus:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return JobStatus(
        job="one",
        owner=None,
        alive=False,
        generation=1,
        applied_version=1,
        renewed_at=moment,
        report=report,
        report_age=age,
    )


def report(**seconds: float | None) -> dict[str, Any]:
    return {
        "at": 104.0,
        "looked": 100.0,
        "topics": {name: {"records": 1, "seconds": one} for name, one in seconds.items()},
    }


def test_the_age_of_the_report_of_the_look_at_kafka_and_of_the_oldest_unread_record() -> None:
    assert state_age([job(report(user=0.0, star=30.0, repo=90.0))], {"user", "star"}) == 2 + 4 + 30
    assert state_age([job(report(user=0.0))], {"user"}) == 6


def test_the_newest_report_counts() -> None:
    assert state_age([job(report(user=9.0), 500.0), job(report(user=0.0), 1.0)], {"user"}) == 5


@pytest.mark.parametrize(
    "jobs",
    [[], [job(None, None)], [job(report(user=None))], [job(report(star=1.0))], [job({"at": 1.0, "topics": {}})]],
)
def test_without_a_report_of_each_topic_the_age_is_unknown(jobs: list[JobStatus]) -> None:
    assert state_age(jobs, {"user"}) is None
