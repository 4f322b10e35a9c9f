"""The lines of a job: as text, as JSON, on a terminal."""

import io
import json
from datetime import datetime, timedelta, timezone
from typing import Any

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
        "2026-01-02T03:04:05 info    batch 3: 5 read, 4 applied, 1 dead letters, 2 published\n"
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
        "behind repo 158 records, 11 years old, star unknown, "
    )


def test_json_lines_are_one_object_each_with_the_figures() -> None:
    first, second = map(json.loads, written(BATCH, STOPPED, form="json").splitlines())
    assert first["fields"] == BATCH.fields
    assert {**first, "fields": {}} == {
        "time": "2026-01-02T03:04:05+02:00",
        "level": "info",
        "event": "batch",
        "text": "batch 3: 5 read, 4 applied, 1 dead letters, 2 published",
        "fields": {},
    }
    assert (second["level"], "fields" in second) == ("warning", False)


def test_quiet_leaves_only_warnings_and_errors() -> None:
    assert written(BATCH, STATUS, STOPPED, quiet=True) == (
        "2026-01-02T03:04:05 warning product profile stopped: too large\n"
    )


def test_on_a_terminal_the_status_line_stays_below_the_other_lines() -> None:
    lines = screen(written(BATCH, STATUS, STOPPED, STATUS, BATCH, stream=Terminal()))
    assert [line[28:36] for line in lines] == ["batch 3:", "product ", "batch 3:", "status: ", ""]


def test_a_terminal_shows_json_lines_as_they_are() -> None:
    shown = written(BATCH, STATUS, form="json", stream=Terminal())
    assert [json.loads(line)["event"] for line in shown.splitlines()] == ["batch", "status"]


def screen(text: str) -> list[str]:
    """The lines that a terminal shows at the end."""
    lines = [""]
    for part in text.split("\n"):
        lines[-1] = (lines[-1] + part).rpartition("\r\x1b[K")[2]
        lines.append("")
    return lines[:-1]
