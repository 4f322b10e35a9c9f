"""What `status` shows of the jobs, and what is wrong."""

import re
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from processor.cli.status import status_text
from processor.job.metrics.status import amber_lines, list_lines, status_json, wrong_lines
from processor.tools.inspect.prices import spending_line
from registry.model import How, JobStatus, PastRuns, RunEnd, Snapshot
from tests.unit.cli.job_state import STATE

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REPORT: dict[str, Any] = STATE | {
    "at": AT.timestamp(),
    "statestore": "0.1.0",
    "last_batch": {"number": 3, "at": AT.timestamp(), "records": 1200, "documents": 40},
    "backlog": 0,
    "walks": ["fill star"],
    "refused_version": 0,
    "refusal": "",
    "oldest_unpublished": AT.timestamp() - 90,
}
JOB = JobStatus(
    job="main",
    owner="host:7",
    alive=True,
    generation=3,
    applied_version=1,
    renewed_at=AT,
    acquired_at=AT,
    report=REPORT,
    report_age=2.2,
)
SNAPSHOT = Snapshot(version=2, slots=5, entities=(), assignments=(), joins=(), products=())


def shown(*jobs: JobStatus) -> list[str]:
    degraded = [line for job in jobs for line in amber_lines(job)]
    return list(status_text(SNAPSHOT, jobs, [line for job in jobs for line in wrong_lines(job)], degraded))


ROOT = {
    "entity": "user",
    "key": '{"email":"octo@example.org"}',
    "products": ["user_profile", "user_card"],
    "documents": 12,
    "rows": 240_012,
    "read_units": 123_024.0,
    "most_read_units": 10_252.0,
    "list": "star",
    "list_rows": 10_000,
}


def test_the_roots_that_read_the_most_are_named_with_their_products() -> None:
    cheap = ROOT | {"read_units": 99.5}
    state = REPORT | {"costly_roots": [ROOT, cheap], "counts": {"half units Query": 7}}
    lines = shown(replace(JOB, report=state))
    title = lines.index("  roots that read the most in the last hour:")
    assert lines[title + 1] == (
        '    user {"email":"octo@example.org"}: about 123,024 read units, 10,252 at most at once, 240,012 rows in 12 assemblies; '
        "up to 10,000 rows of star; of user_profile, user_card"
    )
    assert [line for line in lines[title + 2 :] if line.startswith("    ")] == []
    assert not any("read the most" in line for line in shown(replace(JOB, report=REPORT | {"costly_roots": [cheap]})))


def test_a_root_without_its_key_says_which_setting_shows_it_and_postgres_has_no_units() -> None:
    lines = shown(replace(JOB, report=REPORT | {"costly_roots": [ROOT | {"key": "0a1b2c3d4e5f6071"}]}))
    assert "  roots that read the most in the last hour (by their hash; log_values = true shows keys):" in lines
    assert any(line.startswith("    user 0a1b2c3d4e5f6071: 240,012 rows in 12 assemblies") for line in lines)


def test_plan_warns_of_the_longest_list_that_a_job_saw() -> None:
    seen = {"root": "user", "list": "star", "rows": 10_000, "read_units": 10_252.0}
    report = REPORT | {"longest_lists": [seen, seen | {"read_units": 99.0}], "counts": {"half units Query": 7}}
    (line,) = list_lines(replace(JOB, report=report))
    assert line.startswith("`star` of the largest `user`: 10,000 rows, 10,252 read units an event, as job main saw; ")
    assert list(list_lines(replace(JOB, report=None))) == []


def test_many_topics_at_their_end_are_one_line() -> None:
    topics = {f"t{n}": {"records": 0, "seconds": None} for n in range(11)} | {"star": {"records": 3, "seconds": None}}
    shown_topics = [line for line in shown(replace(JOB, report=REPORT | {"topics": topics})) if "behind" in line]
    assert shown_topics == ["  topic star: behind 3 records", "  11 other topics: behind 0 records"]


def test_a_running_job_shows_its_versions_its_lag_and_what_is_open() -> None:
    lines = shown(JOB)
    assert lines[0].startswith("job main: runs as host:7 since 20")
    assert lines[0].endswith(", statestore 0.1.0")
    for line in (
        "  registry version 1, the newest is 2",
        "  reads its topics; reported 2.2 s ago",
        "  topic repo: behind 0 records",
        "  topic star: behind 1,234 records, 17 s",
        "  120.5 events/s, 30 documents/s",
        "  7 open changes, 1 fan-outs",
        "  walks: fill star",
        "  0 records became dead letters in this run",
    ):
        assert line in lines
    assert any(
        line.startswith("  last batch 3: 20") and line.endswith(", 1,200 records, 40 documents") for line in lines
    )
    assert lines[-1].startswith("  oldest change without its documents: 20")
    assert lines[-1].endswith(", 1 min 30 s")


def test_a_missing_topic_is_named_with_what_is_empty_and_is_not_wrong_before_all_are_missing() -> None:
    missing = {
        "badges": {"entity": "badge", "near": None, "products": []},
        "users": {"entity": "user", "near": "dev.users", "products": ["profile"]},
    }
    lines = shown(replace(JOB, report=REPORT | {"missing_topics": missing}))
    assert "  topic badges: does not exist: entity badge has no rows yet" in lines
    assert (
        "  topic users: does not exist; the broker has dev.users: entity user has no rows yet, and product profile no document"
        in lines
    )
    assert not any(line.startswith("wrong:") for line in lines)
    lines = shown(replace(JOB, report=REPORT | {"missing_topics": missing, "no_topic": "the job reads nothing: ..."}))
    assert lines[-1] == "wrong: the job reads nothing: ..."


def test_a_paused_topic_shows_its_lag_who_paused_it_and_when_the_broker_deletes_what_waits() -> None:
    pauses = [
        {"kind": "topic", "name": "star", "at": AT.timestamp(), "who": "ada", "why": "the source is repaired"},
        {"kind": "product", "name": "profile", "at": AT.timestamp(), "who": "bob", "why": ""},
    ]

    def lines(seconds: float, paused: list[str]) -> list[str]:
        topics = {"star": {"records": 5, "seconds": seconds, "retention": 36_000.0}}
        return shown(replace(JOB, report=REPORT | {"topics": topics, "paused_topics": paused, "pauses": pauses}))

    found = "\n".join(lines(3_600.0, ["star"]))
    assert re.search(
        r"  topic star: behind 5 records, 1 h, paused since 20.* by ada: the source is repaired; in 9 h the", found
    )
    assert re.search(r"  product profile: paused since 20\d\d-\S+ \S+ by bob\n", found)
    assert "wrong:" not in found
    assert lines(32_400.0, ["star"])[-1] == (
        "wrong: topic star: in 1 h the broker deletes what the job has not read: `statestore resume --topic star`, or raise "
        "`retention.ms` of the topic"
    )
    assert lines(36_001.0, [])[-1].startswith(
        "wrong: topic star: from now on the broker deletes what the job has not read: let"
    )


def test_a_lag_that_the_broker_does_not_show_is_unknown() -> None:
    unknown = {"star": {"records": None, "seconds": None}}
    lines = shown(replace(JOB, report=REPORT | {"topics": unknown, "oldest_unpublished": None}))
    assert "  topic star: behind unknown" in lines
    assert lines[-1] == "  oldest change without its documents: unknown"
    assert shown(replace(JOB, report=REPORT | {"oldest_unpublished": None}))[-1].endswith("documents: none")


def test_records_that_are_older_than_the_run_by_far_are_old_and_do_not_wait() -> None:
    old = {"star": {"records": 158, "seconds": 375_389_347.0}}
    lines = shown(replace(JOB, report=REPORT | {"topics": old, "oldest_unpublished": AT.timestamp() - 375_389_347}))
    assert "  topic star: behind 158 records, 11 years old" in lines
    assert lines[-1].startswith("  oldest change without its documents: 2014-")
    assert lines[-1].endswith(", 11 years old")


def test_a_job_that_counts_its_requests_shows_what_they_cost_in_one_line() -> None:
    counts = {
        "request UpdateItem": 1200,
        "request Query": 34,
        "throttles Query": 2,
        "retries Query": 3,
        "half units UpdateItem": 7201,
        "half units Query": 17,
        "ms batch": 2500,
        "ms write": 1000,
    }
    assert shown(replace(JOB, report=REPORT | {"counts": counts}))[-2:] == [
        "  1,234 requests (2 throttled, 3 retries), 3,600 write units, 8 read units, $0.0023 on demand in us-east-1 (2026-11); "
        "batch 2.5 s, write 1.0 s, publish 0.0 s",
        "  the store throttles: `--walk-rate`, `pause --topic` and more capacity help at once (docs/stores.md)",
    ]


READ = REPORT | {"topics": {"star": {"records": 0, "seconds": 0.0}}}
"""The job has read all."""


def test_a_job_that_gave_its_lease_back_is_not_wrong_and_a_job_that_died_is() -> None:
    assert shown(replace(JOB, owner=None, alive=False, report=READ)) == [
        "job main: does not run, last registry version 1 of 2"
    ]
    assert shown(replace(JOB, alive=False))[1].startswith("  host:7 sent its last heartbeat at 20")
    (line,) = wrong_lines(replace(JOB, alive=False))
    assert line.startswith("job main died: host:7 sent no heartbeat since 20")


def ended(how: How, text: str = "") -> JobStatus:
    return replace(JOB, owner=None, alive=False, report=READ, ended=RunEnd(how=how, owner="host:7", text=text, at=AT))


@pytest.mark.parametrize(
    ("how", "words"), [("stopped", "stopped on request"), ("finished", "finished all records (--once)")]
)
def test_a_job_that_a_person_ended_is_not_wrong_and_the_line_says_how_it_ended(how: How, words: str) -> None:
    first, second = shown(ended(how))
    assert first == "job main: does not run, last registry version 1 of 2"
    assert second.startswith(f"  host:7 {words} at 20")


def test_a_job_that_an_error_ended_is_wrong_and_the_line_has_the_message_with_its_cure() -> None:
    lines = shown(ended("failed", "topic user is gone: create it again"))
    assert lines[1].startswith("  host:7 ended with an error at 20")
    assert lines[2].startswith("wrong: job main failed at 20")
    assert lines[2].endswith(": topic user is gone: create it again; then start it again")


def test_a_job_whose_lease_a_verb_took_over_is_wrong_once_nobody_runs() -> None:
    (line,) = wrong_lines(ended("lost", "another job took over"))
    assert line == "job main does not run: host:7 lost its lease to a run that has ended; start it again"


def test_a_job_that_took_over_shows_the_run_before_and_is_not_wrong() -> None:
    lines = shown(replace(JOB, ended=RunEnd(how="lost", owner="host:6", text="another job took over", at=AT)))
    assert lines[1].startswith("  the run before: host:6 lost its lease to another run at 20")
    assert not any(line.startswith("wrong:") for line in lines)


def test_runs_that_failed_in_a_row_are_wrong_while_the_next_run_lives_and_after_it() -> None:
    past = PastRuns(restarts=9, seen=9).with_failure(AT.timestamp() - 240, "no memory")
    once = shown(replace(JOB, past=past))
    assert any(line.startswith("  the last run failed at 20") and line.endswith(": no memory") for line in once)
    assert not any(line.startswith("wrong:") for line in once)
    past = past.with_failure(AT.timestamp(), "150 of 200 records are bad")
    for job in (
        replace(JOB, report=None, past=past),
        replace(JOB, report=REPORT | {"past": asdict(past)}, past=past),
        replace(ended("failed", "150 of 200 records are bad"), past=past),
    ):
        line = shown(job)[-1]
        assert line.startswith("wrong: the last 2 runs failed, from 20")
        assert line.endswith(": 150 of 200 records are bad; no batch ended since then: repair the cause")
        assert status_json(SNAPSHOT, [job], [], [])["jobs"][0]["past"]["restarts"] == 11


def test_json_has_the_end_of_the_last_run_and_none_while_it_lives() -> None:
    ends = [
        status_json(SNAPSHOT, [job], [], [])["jobs"][0]["ended"]
        for job in (JOB, replace(JOB, alive=False), ended("failed", "no"))
    ]
    assert ends == [
        None,
        {"how": "killed", "owner": "host:7", "text": "", "at": AT.isoformat()},
        {"how": "failed", "owner": "host:7", "text": "no", "at": AT.isoformat()},
    ]


def test_stopped_products_and_walks_a_refused_version_and_silence_are_wrong() -> None:
    report = REPORT | {
        "stopped_products": {"profile": "too large"},
        "unfit_documents": {"profile": 2},
        "stopped_walks": {"fill star": "refused"},
        "refusal": "the job cannot run version 2",
    }
    assert list(wrong_lines(replace(JOB, report=report, report_age=61.0))) == [
        "job main renews its lease, and has reported nothing for 1 min 1 s; see its log",
        "product profile stopped: too large",
        "product profile: 2 documents do not fit its topic, which shows earlier ones: `statestore dead-letters list --each` says "
        "why and what to do; then start the job again",
        "fill star stopped: refused",
        "the job cannot run version 2",
    ]
    assert list(wrong_lines(JOB)) == []


def test_a_job_that_waits_for_a_part_is_degraded_and_nothing_is_wrong() -> None:
    trouble = {
        "part": "store",
        "text": "127.0.0.1:8000 does not answer",
        "cure": "start it",
        "since": AT.timestamp() - 90,
        "said": AT.timestamp(),
    }
    waiting = replace(JOB, report=REPORT | {"troubles": [trouble]})
    assert shown(waiting)[-1] == "degraded: store, for 1 min 30 s: 127.0.0.1:8000 does not answer: start it"
    assert list(wrong_lines(waiting)) == []


def test_a_job_that_has_yet_to_report_and_a_registry_without_jobs_have_lines_too() -> None:
    assert shown(replace(JOB, report=None, report_age=None))[-1] == "  it has reported nothing yet"
    assert shown() == ["no job has run by this registry: `statestore run`"]


def test_json_holds_the_report_as_the_job_wrote_it() -> None:
    found = status_json(SNAPSHOT, [JOB], ["x"], ["y"])
    assert (found["version"], found["wrong"], found["degraded"]) == (2, ["x"], ["y"])
    assert found["jobs"][0]["report"] == REPORT


def test_the_requests_of_a_table_in_postgres_have_no_units_and_no_price() -> None:
    assert spending_line({"request Query": 7}).startswith("7 requests (0 throttled, 0 retries); batch ")


def test_documents_that_wait_at_gates_are_counted_by_product() -> None:
    gates = {
        "bill": {
            "waiting": 12,
            "since": AT.timestamp() - 8,
            "transaction": {"topic": "app.transaction", "id": "760", "missing": None},
        },
        "order": {"waiting": 1_000, "since": AT.timestamp() - 61, "transaction": None},
        "star": {"waiting": 0, "since": None, "transaction": None},
    }
    report = REPORT | {"gates": gates, "counts": {"released incomplete": 3}}
    lines = [line for line in shown(replace(JOB, report=report)) if "gate" in line]
    assert lines == [
        "  gate of bill: 12 documents wait, the oldest for 8 s; "
        "it waits for transaction 760 of topic app.transaction, its end is unknown",
        "  gate of order: 1,000 documents wait, the oldest for 1 min 1 s",
        "  gates: 3 documents went out at `at_most`, perhaps with a part of a transaction (docs/formats.md#gates)",
    ]


def test_columns_with_values_that_their_type_cannot_hold_are_named_with_their_number() -> None:
    report = REPORT | {"counts": {"nulled: booking.until.day": 1_200, "nulled: star.at": 1}}
    lines = [line for line in shown(replace(JOB, report=report)) if "cannot hold" in line]
    assert lines == [
        "  column until.day of entity booking: 1,200 values that its type cannot hold are null",
        "  column at of entity star: 1 values that its type cannot hold are null",
    ]


def test_the_report_of_an_older_release_has_no_gates() -> None:
    report = {name: value for name, value in REPORT.items() if name != "gates"}
    assert not [line for line in shown(replace(JOB, report=report)) if "gate" in line]


STOPPED = RunEnd(how="stopped", owner="host:7", text="", at=AT)


def test_a_job_that_a_person_stopped_is_degraded_while_its_topics_fill_and_nothing_is_wrong() -> None:
    lines = shown(replace(JOB, alive=False, ended=STOPPED, owner=None))
    assert "  topic star: behind 1,234 records, 17 s" in lines
    assert lines[-1] == (
        "degraded: job main does not run, and its topics fill: star 1,234 records, 17 s: start it again"
    )
    unknown = REPORT | {"topics": {"star": {"records": None, "seconds": None}}}
    assert shown(replace(JOB, alive=False, ended=STOPPED, owner=None, report=unknown))[-1].startswith("degraded: ")


def test_a_job_that_a_person_stopped_and_that_has_read_all_is_green() -> None:
    assert not [
        line for line in shown(replace(JOB, alive=False, ended=STOPPED, owner=None, report=READ)) if "grad" in line
    ]


def test_a_job_that_runs_at_its_times_shows_its_lag_and_is_not_degraded() -> None:
    lines = shown(replace(JOB, alive=False, owner=None, ended=replace(STOPPED, how="finished")))
    assert "  topic star: behind 1,234 records, 17 s" in lines
    assert not [line for line in lines if line.startswith("degraded")]


def test_a_stopped_job_whose_records_the_broker_soon_deletes_is_wrong() -> None:
    topics = {"star": {"records": 5, "seconds": 90_000.0, "retention": 100_000.0}}
    lines = shown(
        replace(JOB, alive=False, owner=None, ended=STOPPED, report=REPORT | {"topics": topics, "paused_topics": []})
    )
    assert any(
        line.startswith("wrong: topic star: in 2 h 46 min the broker deletes what the job has not read")
        for line in lines
    )


def test_a_clock_of_products_that_is_ahead_of_the_machine_is_named() -> None:
    at = REPORT["at"]
    lines = [line for line in shown(replace(JOB, report=REPORT | {"clock": at + 7_200})) if "clock" in line]
    assert lines == [
        "  clock: products are 2 h ahead of this machine, and stay until its time is theirs; a machine whose clock was ahead "
        "ran the job"
    ]
    for clock in (None, at - 60, at + 1):
        assert not [line for line in shown(replace(JOB, report=REPORT | {"clock": clock})) if "clock" in line]


def test_of_eleven_topics_behind_the_status_names_those_with_the_most_records() -> None:
    topics = {f"t{n}": {"records": n, "seconds": None} for n in range(1, 12)}
    lines = [
        line.strip()
        for line in shown(replace(JOB, report={**(JOB.report or {}), "topics": topics}))
        if " topic" in line
    ]
    assert [line for line in lines if line.startswith("topic t")] == [
        f"topic t{n}: behind {n} records" for n in range(6, 12)
    ]
    assert "5 other topics: behind 15 records" in lines
