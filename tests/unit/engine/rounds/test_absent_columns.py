"""A column that records lack is named, and loudly where products read it, until the entity says what it means."""

import json
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round_counts import SIGN, AbsentCounts, AbsentReport, count_absent
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.job.metrics.metrics import read_metrics
from processor.job.metrics.status import wrong_in_report
from processor.job.run.monitor import JobMonitor
from processor.language.definitions.load import load
from processor.values.record import AbsentColumns, Change, Record
from tests.unit.job.metrics.run_report import monitored

ENTITIES = "film: {key: [id], columns: {id: int, title: string, rating: int, note: string}, absent: ABSENT}"
PRODUCT = "product: film_doc\nroot: film\nfields: [title, rating]"
FIELDS = [{"field": name, "type": "string"} for name in ("id", "title", "stars", "note")]


def trial(absent: str = "{}") -> tuple[Trial, list[JobEvent]]:
    """A job without Spark, and the warnings that it shows."""
    text = ENTITIES.replace(", absent: ABSENT" if absent == "{}" else "ABSENT", "" if absent == "{}" else absent)
    made = Trial(plan=plan_alone(load({"entities.yaml": text, "film.yaml": PRODUCT}), 3), settings=Settings())
    events: list[JobEvent] = []
    made.driver.progress.report = events.append
    return made, events


def record(offset: int, row: dict[str, Any], form: str = "envelope") -> Record:
    value: Any = {
        "envelope": {"op": "u", "before": None, "after": row, "source": {}},
        "flattened": {**row, "__deleted": "false"},
        "schema": {"schema": {"type": "struct", "fields": FIELDS}, "payload": row},
        "plain": row,
    }[form]
    return Record(topic="film", partition=0, offset=offset, key=b'{"id":1}', value=json.dumps(value).encode())


def absent(events: list[JobEvent]) -> list[JobEvent]:
    return [one for one in events if one.what == "absent column"]


FULL = {"id": 1, "title": "Up", "rating": 5, "note": "n"}
RENAMED = {"id": 1, "title": "Up", "stars": 5, "note": "n"}


def state(one: Trial) -> dict[str, Any]:
    return JobMonitor(monitored(one), clock=lambda: 100.0).state({})


@pytest.mark.parametrize("form", ["envelope", "flattened", "schema"])
def test_a_renamed_column_that_a_product_reads_is_wrong_in_status_metric_and_log(form: str) -> None:
    job, events = trial()
    job.batch([record(0, FULL)])
    assert list(wrong_in_report(state(job))) == []
    job.batch([record(1, RENAMED, form), record(2, RENAMED, form)])
    report = state(job)
    (line,) = wrong_in_report(report)
    assert line.startswith("column rating of entity film is not in the last 2 records: it is null in their rows. If")
    assert read_metrics(report)["statestore_absent_columns"] == {("film", "rating"): 2}
    assert [(one.level, one.text) for one in absent(events)] == [("warning", line)]
    job.batch([record(3, RENAMED, form)])
    assert len(absent(events)) == 1
    job.batch([record(4, FULL)])
    assert list(wrong_in_report(state(job))) == []


def test_a_column_that_no_product_reads_is_named_and_is_not_wrong() -> None:
    job, _ = trial()
    job.batch([record(0, {name: value for name, value in FULL.items() if name != "note"})])
    report = state(job)
    assert list(wrong_in_report(report)) == []
    assert [one["column"] for one in report["absent_columns"].values()] == ["note"]
    assert read_metrics(report)["statestore_absent_columns"] == {("film", "note"): 1}


@pytest.mark.parametrize(
    ("absent", "document"),
    [
        ("{rating: keep}", {"title": "Up", "rating": 5}),
        ("keep", {"title": "Up", "rating": 5}),
        ("{rating: 'null'}", {"title": "Up", "rating": None}),
        ("null", {"title": "Up", "rating": None}),
    ],
)
def test_what_the_entity_says_of_an_absent_column_is_in_the_document_and_not_wrong(absent: str, document: Any) -> None:
    job, _ = trial(absent)
    job.batch([record(0, FULL)])
    job.batch([record(1, RENAMED)])
    report = state(job)
    assert list(wrong_in_report(report)) == []
    assert read_metrics(report)["statestore_absent_columns"] == {}
    job.finish()
    last = json.loads(job.published.messages[-1].value or b"null")
    assert last == document


def test_a_kept_column_is_null_in_a_row_that_never_had_it_and_after_a_delete() -> None:
    job, _ = trial("keep")
    job.batch([record(0, FULL)])
    gone = Record(topic="film", partition=0, offset=1, key=b'{"id":1}', value=None)
    job.batch([gone, record(2, RENAMED)])
    job.finish()
    assert json.loads(job.published.messages[-1].value or b"null") == {"title": "Up", "rating": None}


def plain(rows: int, lacking: int) -> dict[str, AbsentCounts]:
    return {"film": AbsentCounts(rows, {AbsentColumns(("rating",), False): lacking} if lacking else {})}


@pytest.mark.parametrize(
    ("rounds", "found"),
    [
        ([plain(1, 0), plain(SIGN, SIGN)], [SIGN]),
        ([plain(1, 0), plain(SIGN - 1, SIGN - 1)], []),
        ([plain(SIGN, SIGN), plain(SIGN, SIGN)], []),
        ([plain(9, 1), plain(SIGN, SIGN)], [SIGN + 1]),
        ([plain(1, 0), plain(SIGN, SIGN), plain(2, 1)], []),
        ([plain(1, 0), plain(SIGN, SIGN), plain(1, 0)], []),
        ([plain(1, 0), plain(SIGN, SIGN), {"other": AbsentCounts(1, {})}], [SIGN]),
    ],
    ids=["stops", "not long enough", "never there", "sometimes", "comes again with others", "comes again", "idle"],
)
def test_a_plain_row_may_leave_a_column_out_until_a_long_run_of_them_does(rounds: Any, found: list[int]) -> None:
    plan, report = trial()[0].plan, AbsentReport()
    for tasks in rounds:
        report = report.after([tasks])
    assert [one.records for one in report.found(plan)] == found


def test_the_tasks_of_a_round_count_together() -> None:
    plan = trial()[0].plan
    sure = {"film": AbsentCounts(1, {AbsentColumns(("rating",), True): 1})}
    report = AbsentReport().after([sure, plain(2, 2)])
    assert [(one.column, one.records) for one in report.found(plan)] == [("rating", 3)]
    almost = AbsentReport().after([plain(1, 0)]).after([plain(SIGN - 1, SIGN - 1)])
    assert list(almost.after([plain(1, 1)]).found(plan))
    assert not list(almost.after([plain(1, 0), plain(1, 1)]).found(plan))  # the record of the first task has the column


def test_counts_know_rows_and_leave_out_deletes() -> None:
    one = Record(topic="film", partition=0, offset=0, key=None, value=None)
    absent = AbsentColumns(("rating",), True)
    changes = [
        Change("film", (1,), {"id": 1}, one, absent=absent),
        Change("film", (2,), {"id": 2}, one),
        Change("film", (3,), None, one),
        Change("star", (3,), {"id": 3}, one),
    ]
    assert count_absent(changes) == {"film": AbsentCounts(2, {absent: 1}), "star": AbsentCounts(1, {})}
