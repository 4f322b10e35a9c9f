"""The lines of a job: as text, as JSON, on a terminal."""

import io
import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.cli.printing.output import JobLog, event_text, status_summary
from processor.engine.rounds.events import JobEvent
from registry.model import WaitingGroup
from tests.unit.cli.job_state import STATE

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=2)))
BATCH = JobEvent(what="batch", text="batch 3", fields={"read": 5, "applied": 4, "dead letters": 1, "published": 2})
STATUS = JobEvent(what="status", fields=STATE)
STOPPED = JobEvent(what="product stopped", text="product profile stopped:\n too large", level="warning")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(*events: JobEvent, stream: io.StringIO | None = None, **flags: Any) -> str:
    stream = stream or io.StringIO()
    log = JobLog(stream=stream, clock=lambda: AT, **flags)
    for event in events:
        log(event)
    log.end()
    return stream.getvalue()


def test_a_line_has_the_local_time_the_level_and_the_text_in_one_line() -> None:
    assert written(BATCH, STOPPED) == (
        "2026-01-02T03:04:05 info    batch 3: 5 read = 4 applied + 1 dead letters, 2 published\n"
        "2026-01-02T03:04:05 warning product profile stopped: too large\n"
    )


def test_the_status_line_names_the_topics_that_wait() -> None:
    assert event_text(STATUS) == (
        "status: behind star 1,234 records, 17 s, 120.5 events/s, 30 documents/s, 7 open changes, 1 fan-outs, "
        "no dead letter waits"
    )


def test_the_status_line_shows_the_dead_letters_that_wait_and_what_stopped_or_waits() -> None:
    group = WaitingGroup("repo", "key-missing", "owner", 68, STATE["at"] - 7200, STATE["at"])
    state = STATE | {
        "doing": "paused",
        "topics": {},
        "letters_waiting": [group._asdict()],
        "stopped_products": {"profile": "too large"},
        "stopped_walks": {"fill star": "refused"},
        "waiting_products": ["names"],
        "missing_topics": {"badge": {"entity": "badge", "near": None, "products": []}},
        "paused_topics": ["star"],
    }
    assert status_summary(state) == (
        "paused, behind 0 records, 120.5 events/s, 30 documents/s, 7 open changes, 1 fan-outs, "
        "68 dead letters wait, the oldest for 2 h: 68 of repo: key-missing at owner, "
        "stopped: profile, fill star, waiting: names, "
        "missing topics: badge, paused topics: star"
    )


def test_the_status_line_says_that_a_lag_is_unknown_and_that_records_are_old() -> None:
    topics = {"repo": {"records": 158, "seconds": 375_389_347.0}, "star": {"records": None, "seconds": None}}
    assert status_summary(STATE | {"topics": topics}).startswith(
        "behind star unknown, repo 158 records, 11 years old, "
    )
    many = {f"t{n}": {"records": n, "seconds": None} for n in range(11)}
    assert status_summary(STATE | {"topics": many}).startswith(
        "behind t10 10 records, t9 9 records, t8 8 records and 7 more, "
    )


def test_json_lines_are_one_object_each_with_the_figures() -> None:
    first, second = map(json.loads, written(BATCH, STOPPED, form="json").splitlines())
    assert first["fields"] == BATCH.fields
    assert {**first, "fields": {}} == {
        "time": "2026-01-02T03:04:05+02:00",
        "level": "info",
        "event": "batch",
        "text": "batch 3: 5 read = 4 applied + 1 dead letters, 2 published",
        "fields": {},
    }
    assert (second["level"], "fields" in second) == ("warning", False)


def test_quiet_leaves_only_warnings_and_errors() -> None:
    assert written(BATCH, STATUS, STOPPED, quiet=True) == (
        "2026-01-02T03:04:05 warning product profile stopped: too large\n"
    )


def test_on_a_terminal_the_status_line_stays_below_the_other_lines() -> None:
    lines = screen(written(BATCH, STATUS, STOPPED, STATUS, BATCH, stream=Terminal()))
    assert [line[28:36] for line in lines] == ["batch 3:", "product ", "status: ", ""]


def test_a_terminal_shows_json_lines_as_they_are() -> None:
    shown = written(BATCH, STATUS, form="json", stream=Terminal())
    assert [json.loads(line)["event"] for line in shown.splitlines()] == ["batch", "status"]


def log_of(*events: tuple[float, JobEvent]) -> list[str]:
    """The texts of the lines of events, each with the second in which it comes."""
    stream, now = io.StringIO(), [AT]
    log = JobLog(stream=stream, clock=lambda: now[0])
    for second, event in events:
        now[0] = AT + timedelta(seconds=second)
        log(event)
    return [line[28:] for line in stream.getvalue().splitlines()]


def batch(n: int, seconds: float = 0.1, **counts: int) -> JobEvent:
    fields = {name.replace("_", " "): count for name, count in counts.items()}
    return JobEvent(what="batch", text=f"batch {n}", fields=fields, seconds=seconds)


def test_the_log_has_one_line_a_minute_whose_sums_add_up() -> None:
    many = [(n / 2, batch(n, read=10, applied=7, superseded=3, published=5)) for n in range(120)]
    statuses = [(float(second), STATUS) for second in range(5, 130, 10)]
    lines = log_of(*sorted([*many, *statuses], key=lambda pair: pair[0]))
    assert [line.partition(",")[0] for line in lines] == [
        "batch 0: 10 read = 7 applied + 3 superseded",
        "status: 110 read = 77 applied + 33 superseded in 11 batches",
        "status: 1",
        "status: behind star 1",
    ]
    assert lines[2].startswith(
        "status: 1,090 read = 763 applied + 327 superseded in 109 batches, 545 published, behind star"
    )


def test_a_batch_that_took_long_or_lost_a_document_has_a_line_of_its_own() -> None:
    lines = log_of(
        (0, batch(0, read=1, applied=1)),
        (1, batch(1, read=1, applied=1)),
        (2, batch(2, read=2, applied=2, seconds=7.0)),
        (3, batch(3, read=1, applied=1, unfit=1)),
        (4, JobEvent(what="settled", text="settled", fields={"settled": 4})),
        (5, JobEvent(what="stopped", text="stopped; the next start does unfinished work again")),
    )
    assert lines == [
        "batch 0: 1 read = 1 applied, 0 published",
        "batch 2: 2 read = 2 applied, 0 published, took 7.0 s",
        "batch 3: 1 read = 1 applied, 0 published",
        "since the last status: 5 read = 5 applied in 4 batches, 4 settled",
        "stopped; the next start does unfinished work again",
    ]


@given(
    st.lists(
        st.tuples(
            st.floats(0, 30),
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(0, 9),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_every_record_read_is_in_exactly_one_sum(rounds: list[tuple[float, int, int, int, int, bool]]) -> None:
    now, events, read = 0.0, [], 0
    for n, (pause, applied, superseded, ignored, dead, status) in enumerate(rounds):
        now, count = now + pause, applied + superseded + ignored + dead
        read += count
        counts = {"read": count, "applied": applied, "superseded": superseded, "ignored": ignored, "dead letters": dead}
        events.append((now, JobEvent(what="batch", text=f"batch {n}", fields=counts)))
        events += [(now, STATUS)] if status else []
    lines = log_of(*events, (now, JobEvent(what="stopped", text="stopped")))
    sums = [line for line in lines if line.startswith(("status: ", "since the last status: ")) and " read" in line]
    account = [re.search(r"([\d,]+) read(?: = (.*?))? in ", line) for line in sums]
    found = [(number(one[1]), sum(map(number, re.findall(r"[\d,]+", one[2] or "")))) for one in account if one]
    assert all(total == parts for total, parts in found)
    assert sum(total for total, _ in found) == read


def number(text: str) -> int:
    return int(text.replace(",", ""))


def screen(text: str) -> list[str]:
    """The lines that a terminal shows at the end."""
    lines = [""]
    for part in text.split("\n"):
        lines[-1] = (lines[-1] + part).rpartition("\r\x1b[K")[2]
        lines.append("")
    return lines[:-1]


def test_a_line_for_a_person_who_watches_has_no_time_and_at_most_a_hundred_characters() -> None:
    lines = written(BATCH, STATUS, form="short").splitlines()
    assert lines[0] == "batch 3: 5 read = 4 applied + 1 dead letters, 2 published"
    assert lines[1].startswith("status: 5 read")
    assert len(lines[1]) == 100
