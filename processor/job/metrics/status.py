"""The state of a job from its report (`run.monitor`), in words and as JSON values: what a person must repair, the lag,
the freshness of documents, and what waits at gates. Pure.

A state is wrong if it stays until a person acts: a job died, or ended itself with an error, a product or a walk stopped, records
lack a column that a product reads, the job refuses a registry version, none of its topics exists, or the job reports nothing any
more. Dead letters are counted and are not wrong: `dead-letters list` shows those that wait.

A record that its producer wrote long before the job began does not wait for the job: an old topic is read from its first record.
Such a record is old, and the words say its age.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from enum import Enum
from math import inf
from typing import Any

from processor.counts import IGNORED_AS, IN_TOPIC, NULLED_OF, Count
from processor.engine.rounds.events import degraded_lines
from processor.engine.rounds.round_counts import AGE_BOUNDS, Freshness, read_freshness
from processor.job.metrics.metrics import RETENTION_PERCENT, counts_after
from processor.text import DAY, MINUTE, duration_text, first_of, visible_line
from registry.model import JobStatus, PastRuns, ReplayRequest, RunEnd, Snapshot, WaitingGroup
from statestore.store import HALF_UNITS

SILENT_SECONDS = 60.0
"""A living job whose report is older is wrong: it reports every 5 s."""
GROUPS_SHOWN = 5
OLD_SECONDS = DAY
"""A record that is older than the run by more than this is an old record."""


class JobPhase(Enum):
    """How far a job is. The value is for people."""

    STARTS = "starts"
    OPEN = "has taken over"
    """It took over what earlier runs left."""
    READS = "reads its topics"
    WAITS = "waits for its topics"
    RESTS = "waits for a part that does not answer"
    """It does nothing more, and keeps its lease."""
    ENDED = "has ended"
    """It gave its lease back."""


def wrong_lines(job: JobStatus) -> Iterator[str]:
    """What a person must repair, a line each."""
    if not job.alive:
        yield from _wrong_end(job)
        yield from wrong_runs(job.past)
        yield from _ending_topics(job.report or {})
        return
    if (job.report_age or 0.0) > SILENT_SECONDS:
        silence = duration_text(job.report_age or 0.0)
        yield f"job {job.job} renews its lease, and has reported nothing for {silence}; see its log"
    yield from wrong_runs(job.past) if job.report is None else wrong_in_report(job.report)


def amber_lines(job: JobStatus) -> list[str]:
    """What a person should know of a job that works or rests, and is not wrong, a line each. A job that a person stopped while
    its topics fill must start again. One that ended by itself (`--once`) starts at its time."""
    if job.alive:
        return degraded_lines(job.report or {})
    filling = list(filling_topics(job.report or {}))
    if not filling or (job.last_end is not None and job.last_end.how == "finished"):
        return []
    topics = "; ".join(f"{topic} {lag_text(job.report or {}, topic)}" for topic in filling)
    return [f"job {job.job} does not run, and its topics fill: {topics}: start it again"]


def filling_topics(report: Mapping[str, Any]) -> Iterator[str]:
    """The topics with records that the job has yet to read, or whose lag is unknown."""
    yield from (topic for topic, lag in report.get("topics", {}).items() if lag["records"] != 0)


def wrong_runs(past: PastRuns) -> Iterator[str]:
    """That the job fails again and again: a person must act, also while its next run lives. One failure may be over."""
    if past.failed > 1:
        yield f"{failed_text(past)}; no batch ended since then: repair the cause"


def failed_text(past: PastRuns) -> str:
    """That the last run failed, how often, and why."""
    first, last = (moment(datetime.fromtimestamp(at or 0)) for at in (past.since, past.at))
    runs = (
        f"the last {past.failed} runs failed, from {first} to {last}"
        if past.failed > 1
        else f"the last run failed at {last}"
    )
    return f"{runs}: {past.text}"


def _wrong_end(job: JobStatus) -> Iterator[str]:
    """Why a person must act after the end of the last run."""
    match job.last_end:
        case RunEnd(how="killed") as end:
            yield f"job {job.job} died: {end.owner} sent no heartbeat since {moment(end.at)}; start it again"
        case RunEnd(how="failed") as end:
            yield f"job {job.job} failed at {moment(end.at)}: {end.text}; then start it again"
        case RunEnd(how="lost") as end:
            yield f"job {job.job} does not run: {end.owner} lost its lease to a run that has ended; start it again"


def wrong_in_report(state: Mapping[str, Any]) -> Iterator[str]:
    """What a person must repair by the report of a job that lives. A report of an older release has no past runs."""
    yield from wrong_runs(PastRuns.of(state.get("past")))
    yield from _ending_topics(state)
    for product, why in state.get("stopped_products", {}).items():
        yield f"product {product} stopped: {why}"
    for product, count in state.get("unfit_documents", {}).items():
        yield (
            f"product {product}: {count:,} documents do not fit its topic, which shows earlier ones: `statestore "
            "dead-letters list --each` says why and what to do; then start the job again"
        )
    for walk, why in state.get("stopped_walks", {}).items():
        yield f"{walk} stopped: {why}"
    yield from (one["text"] for one in state.get("absent_columns", {}).values() if one["loud"])
    yield from (state[name] for name in ("refusal", "no_topic") if state.get(name))


def nulled_lines(tally: Mapping[str, int]) -> Iterator[str]:
    """The columns with values that their type cannot hold, which are null."""
    for place, count in counts_after(NULLED_OF, tally).items():
        entity, _, column = place.partition(".")
        yield f"column {column} of entity {entity}: {count:,} values that its type cannot hold are null"


def moment(at: datetime) -> str:
    """A time on the clock of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def lag_text(report: Mapping[str, Any], topic: str) -> str:
    """The lag of a topic: its unread records, and how long the oldest waits or how old it is."""
    lag = report["topics"][topic]
    if lag["records"] is None:
        return "unknown"
    wait = "" if not lag["records"] or lag["seconds"] is None else f", {age_text(report, lag['seconds'])}"
    return f"{lag['records']:,} records{wait}"


def topic_text(report: Mapping[str, Any], topic: str) -> str:
    """The lag of a topic, its pause, when the broker deletes what the job has not read, and how many records of other tables this
    run ignored. A report of an older release has no pauses, and no retention."""
    pause = "".join(
        f", {pause_text(one)}" for one in report.get("pauses", ()) if (one["kind"], one["name"]) == ("topic", topic)
    )
    unknown = ", paused" if not pause and topic in report["paused_topics"] else ""
    left = seconds_kept(report, topic)
    kept = "" if left is None else f"; {_deletion_text(left)}"
    others = report.get("counts", {}).get(f"{IGNORED_AS}other table{IN_TOPIC}{topic}")
    ignored = f"; {others:,} records of other tables ignored" if others else ""
    return f"{lag_text(report, topic)}{pause or unknown}{kept}{ignored}"


AT_END = "0 records"
SHOWN_TOPICS = 3
"""A line of the log names this many topics that are behind; `status` names up to this many that are at their end."""
MOST_TOPICS = 6
"""`status` names this many of the topics that are behind, those with the most records."""


def topic_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The lag of each topic, a line each. Of many, those at their end share a line, and so do those that are behind by least,
    where nothing else is to say of them."""
    texts = {topic: topic_text(report, topic) for topic in report["topics"]}
    ended = [topic for topic, text in texts.items() if text == AT_END]
    if len(ended) <= SHOWN_TOPICS:
        ended = []
    lags = {topic: report["topics"][topic]["records"] for topic in texts}
    plain = [topic for topic, text in texts.items() if lags[topic] and text == lag_text(report, topic)]
    least = sorted(plain, key=lambda topic: -lags[topic])[MOST_TOPICS:]
    yield from (f"topic {topic}: behind {text}" for topic, text in texts.items() if topic not in (*ended, *least))
    if least:
        yield f"{len(least)} other topics: behind {sum(lags[topic] for topic in least):,} records"
    if ended:
        yield f"{len(ended)}{' other' if len(ended) < len(texts) else ''} topics: behind {AT_END}"


def behind_text(report: Mapping[str, Any]) -> str:
    """The topics that have unread records, those with the most first. Where there are many, the first ones, and how many more."""
    lags = {topic: lag["records"] for topic, lag in report["topics"].items() if lag["records"] != 0}
    behind = sorted(lags, key=lambda topic: (lags[topic] is not None, -(lags[topic] or 0)))
    return first_of([f"{topic} {lag_text(report, topic)}" for topic in behind], SHOWN_TOPICS) or AT_END


def pause_text(pause: Mapping[str, Any]) -> str:
    """Since when a pause lasts, by whom, and why."""
    why = f": {pause['why']}" if pause["why"] else ""
    return f"paused since {moment(datetime.fromtimestamp(pause['at']))} by {pause['who']}{why}"


def seconds_kept(report: Mapping[str, Any], topic: str) -> float | None:
    """For how long the broker keeps the oldest unread record of a topic at least. None without one, where its age does not end
    it, or where that is unknown."""
    lag = report["topics"][topic]
    if not lag["records"] or lag["seconds"] is None or lag.get("retention") is None:
        return None
    return float(lag["retention"] - lag["seconds"])


def _deletion_text(left: float) -> str:
    when = f"in {duration_text(left)}" if left > 0 else "from now on"
    return f"{when} the broker deletes what the job has not read"


def _ending_topics(report: Mapping[str, Any]) -> Iterator[str]:
    yield from ending_topics(report).values()


def ending_topics(report: Mapping[str, Any]) -> dict[str, str]:
    """The topics that lose unread records soon, each with a line about it."""
    found = {}
    for topic, lag in report.get("topics", {}).items():
        left = seconds_kept(report, topic)
        if left is not None and lag["seconds"] > lag["retention"] * RETENTION_PERCENT / 100:
            cure = (
                f"`statestore resume --topic {topic}`" if topic in report["paused_topics"] else "let the job catch up"
            )
            found[topic] = f"topic {topic}: {_deletion_text(left)}: {cure}, or raise `retention.ms` of the topic"
    return found


def age_text(report: Mapping[str, Any], seconds: float) -> str:
    """How long a record waits; of an old record its age."""
    old = seconds - (report["at"] - report["began"]) > OLD_SECONDS
    return duration_text(seconds) + (" old" if old else "")


def oldest_text(report: Mapping[str, Any]) -> str:
    """The age of the oldest change whose documents are not all published."""
    if (oldest := report["oldest_unpublished"]) is not None:
        return age_text(report, max(0.0, report["at"] - oldest))
    return "unknown" if unknown_topics(report) else "none"


def letters_json(groups: Iterable[WaitingGroup]) -> list[dict[str, Any]]:
    """The dead letters that wait, by topic, code and column, as JSON values."""
    return [group._asdict() for group in groups]


def letters_text(groups: Sequence[Mapping[str, Any]] | None, now: float) -> str:
    """How many dead letters wait, since when, and of what. None: unknown. `now`: in seconds since 1970."""
    if groups is None:
        return "unknown how many dead letters wait"
    if not groups:
        return "no dead letter waits"
    count, oldest = sum(one["letters"] for one in groups), min(one["oldest"] for one in groups)
    named = [
        f"{one['letters']:,} of {one['topic']}: {one['code']}" + (f" at {one['column']}" if one["column"] else "")
        for one in groups[:GROUPS_SHOWN]
    ]
    more = f", and {len(groups) - GROUPS_SHOWN} other groups" if len(groups) > GROUPS_SHOWN else ""
    wait = "dead letter waits" if count == 1 else "dead letters wait"
    return f"{count:,} {wait}, the oldest for {duration_text(max(0.0, now - oldest))}: {', '.join(named)}{more}"


def without_lag(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a job whose lag is unknown now: the broker does not show it."""
    topics = {topic: {**lag, "records": None, "seconds": None} for topic, lag in report["topics"].items()}
    return {**report, "topics": topics}


def unknown_topics(report: Mapping[str, Any]) -> list[str]:
    """The topics whose lag is unknown: the broker does not show their ends."""
    return [topic for topic, lag in report["topics"].items() if lag["records"] is None]


def missing_text(report: Mapping[str, Any], topic: str) -> str:
    """A topic that does not exist: the nearest name of the broker, and what is empty meanwhile."""
    missing = report["missing_topics"][topic]
    near = f"; the broker has {missing['near']}" if missing["near"] else ""
    empty = "".join(f", and product {name} no document" for name in missing["products"])
    return f"does not exist{near}: entity {missing['entity']} has no rows yet{empty}"


def freshness_text(tally: Mapping[str, int]) -> str:
    """The median and the 99th percentile of the ages of documents; of old records their mean age; empty without documents."""
    freshness = read_freshness(tally)
    if not freshness.count:
        return ""
    if freshness.bucket(0.5)[1] == inf:
        mean = freshness.seconds / freshness.count
        longest = f"freshness {document_age(freshness, 0.5)}"
        return f"freshness of old records: {duration_text(mean)} on average" if mean > DAY else longest
    return f"freshness p50 {document_age(freshness, 0.5)}, p99 {document_age(freshness, 0.99)}"


def document_age(freshness: Freshness, share: float) -> str:
    """The age that this share of the documents does not exceed: the bounds of its bucket, since nothing else is known of it."""
    lower, upper = freshness.bucket(share)
    if upper == inf:
        return f"over {duration_text(AGE_BOUNDS[-1])}"
    if not lower:
        return f"under {_seconds(upper)} s"
    if upper < MINUTE:
        return f"{_seconds(lower)} to {_seconds(upper)} s"
    return f"{duration_text(lower)} to {duration_text(upper)}"


def _seconds(bound: float) -> str:
    return f"{bound:.3g}"


CLOCK_AHEAD = 5.0
"""Seconds: the clocks of two machines differ by less."""


def gate_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """A line for each product of which documents wait, one where documents went out too early, and one where the clock of
    products is ahead. A report of an older release has neither gates nor a clock."""
    for product, gate in sorted(report.get("gates", {}).items()):
        if gate["waiting"]:
            waits_for = f"; it waits for {_awaited_text(found)}" if (found := gate["transaction"]) else ""
            age = duration_text(max(0.0, report["at"] - gate["since"]))
            yield f"gate of {product}: {gate['waiting']:,} documents wait, the oldest for {age}{waits_for}"
    if (ahead := (report.get("clock") or 0) - report["at"]) > CLOCK_AHEAD:
        yield (
            f"clock: products are {duration_text(ahead)} ahead of this machine, and stay until its time is theirs; a machine "
            "whose clock was ahead ran the job"
        )
    if count := report.get("counts", {}).get(Count.RELEASED_INCOMPLETE):
        yield f"gates: {count:,} documents went out at `at_most`, perhaps with a part of a transaction (docs/formats.md#gates)"


LEAST_UNITS = 100
"""Read units in an hour from which on `status` names a root."""


def costly_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """The roots that read the most in the last hour, a line each below a title. A report of an older release has none."""
    roots = [one for one in report.get("costly_roots", ()) if one["read_units"] >= LEAST_UNITS]
    if roots:
        hint = (
            "" if any(one["key"].startswith("{") for one in roots) else " (by their hash; log_values = true shows keys)"
        )
        yield f"roots that read the most in the last hour{hint}:"
        yield from (f"  {costly_text(one, has_units(report))}" for one in roots)


def costly_text(root: Mapping[str, Any], units: bool) -> str:
    """A root and what it read. `units`: whether the store has read units."""
    each = (
        f"about {root['read_units']:,.0f} read units, {root['most_read_units']:,.0f} at most at once, " if units else ""
    )
    longest = f"; up to {root['list_rows']:,} rows of {root['list']}" if root["list"] else ""
    return (
        f"{root['entity']} {root['key']}: {each}{root['rows']:,} rows in {root['documents']:,} assemblies{longest}; of "
        f"{', '.join(root['products'])}"
    )


def list_lines(job: JobStatus) -> Iterator[str]:
    """A warning for each list that costs the largest root much, as the last run of the job saw it."""
    report = job.report or {}
    for one in report.get("longest_lists", ()):
        if one["read_units"] >= LEAST_UNITS:
            units = f", {one['read_units']:,.0f} read units an event" if has_units(report) else ""
            yield (
                f"`{one['list']}` of the largest `{one['root']}`: {one['rows']:,} rows{units}, as job {job.job} saw; a list "
                "with `limit` and `ordered: true` reads no more than it shows"
            )


def has_units(report: Mapping[str, Any]) -> bool:
    """Whether the store of a job has read units."""
    return any(name.startswith(HALF_UNITS) and count for name, count in report.get("counts", {}).items())


def _awaited_text(transaction: Mapping[str, Any]) -> str:
    from processor.engine.protocol.gates import AwaitedTransaction  # slow to import, and few jobs have gates

    return AwaitedTransaction(**transaction).text


def status_json(
    snapshot: Snapshot, jobs: Collection[JobStatus], problems: list[str], degraded: list[str]
) -> dict[str, Any]:
    """The state as JSON values. `report`: see `processor.job.run.monitor`."""
    return {
        "version": snapshot.version,
        "paused": snapshot.paused,
        "wrong": problems,
        "degraded": degraded,
        "jobs": [
            {
                "job": job.job,
                "owner": job.owner,
                "alive": job.alive,
                "since": job.acquired_at.isoformat() if job.acquired_at else None,
                "ended": asdict(end) | {"at": end.at.isoformat()} if (end := job.last_end) else None,
                "past": asdict(job.past),
                "applied_version": job.applied_version,
                "report_age": job.report_age,
                "report": job.report,
            }
            for job in jobs
        ],
    }


def requests_json(requests: Sequence[ReplayRequest]) -> list[Mapping[str, object]]:
    """The requests that wait, as JSON values."""
    return [
        {
            "request": one.number,
            "who": one.who,
            "why": one.why,
            "selection": one.selection,
            "at": one.at.isoformat(),
            "letters": one.letters,
            "ended": one.ended,
        }
        for one in requests
    ]


def request_lines(requests: Sequence[ReplayRequest]) -> Iterator[str]:
    """The requests that wait, a line each."""
    for one in requests:
        yield visible_line(
            f"request {one.number} of {one.who}{_words(one)} since {one.at.astimezone():%Y-%m-%d %H:%M:%S}: the job has "
            f"replayed {one.ended} of {one.letters} dead letters"
        )


def result_lines(requests: Sequence[ReplayRequest]) -> Iterator[str]:
    """What became of requests that ended, a line each."""
    for one in requests:
        act = "dropped" if one.act == "drop" else "replayed"
        counts = " + ".join(f"{count} {AGAIN.get(name, name)}" for name, count in sorted(one.outcomes.items()))
        left = "" if one.ended == one.letters else f"; {one.letters - one.ended} left when it was withdrawn"
        yield visible_line(
            f"request {one.number} of {one.who}{_words(one)} {act} {one.ended} dead letters at "
            f"{(one.ended_at or one.at).astimezone():%Y-%m-%d %H:%M:%S}" + (f" = {counts}" if counts else "") + left
        )


AGAIN = {"refused": "refused again"}


def _words(one: ReplayRequest) -> str:
    """Which letters a request names, and why."""
    return (f" for {one.selection}" if one.selection else "") + (f" ({one.why})" if one.why else "")
