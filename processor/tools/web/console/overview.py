"""The overview. First, each as a link: the state, the lag, the products, the dead letters that wait, the last failure, and the
next deadline. Then the products, and of each job its charts, how far it is behind, and what waits.

A job that a person stopped reports nothing. So the console asks the broker itself how many records wait, from where the last
report of the job ends.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from time import monotonic, time
from typing import Any, Final

from processor.engine.rounds.events import reject_lines, waiting_lines
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError, SettingError
from processor.job.kafka.lag import report_now
from processor.job.landing.landing import LandingState, landing_states, landings_of
from processor.job.metrics.status import (
    amber_lines,
    failed_text,
    freshness_text,
    gate_lines,
    lag_text,
    letters_json,
    missing_text,
    moment,
    oldest_text,
    requests_json,
    seconds_kept,
    status_json,
    topic_text,
    without_lag,
    wrong_lines,
)
from processor.job.run.monitor import MOST_SAMPLES, RANGES
from processor.text import DAY, duration_text, shortened
from processor.tools.inspect.board import ENDS, board_json, pending_lines
from processor.tools.inspect.prices import spending_line
from processor.tools.web.answers import Cached, LookUpProblem
from processor.tools.web.console.products import living_run, product_list
from processor.tools.web.console.screen import ConsoleParts, Content, KnownLandings, Screen, Visit
from registry.errors import RegistryError
from registry.model import JobStatus, KnownLanding, RunEnd

FRESH_SECONDS: Final = 5.0
"""For these seconds the console shows an answer of the broker without another look."""


class LandingCache:
    """The landings, as `status` shows them. Asks registry and broker when a page shows them, at most once in FRESH_SECONDS, in a
    thread: no page waits long. `known`: those of the registry."""

    def __init__(self, settings: Settings, known: Callable[[], Sequence[KnownLanding]]) -> None:
        self._settings, self._known = settings, known
        self._answers = Cached[KnownLandings]()

    def landings(self) -> KnownLandings:
        """The landings as the last answer had them."""
        self._answers.refresh(FRESH_SECONDS, self._ask)
        if (found := self._answers.last) is None:
            return KnownLandings(why="the broker has not answered yet")
        return replace(found[1], age=monotonic() - found[0])

    def _ask(self) -> None:
        states = self._answers.last[1].states if self._answers.last else ()
        why = "the broker could not be asked"
        try:
            known = self._known()
            states = states or tuple(landings_of(known, ()))
            states, why = tuple(landing_states(known, self._settings.bootstrap_servers, dict(self._settings.kafka))), ""
        except (KafkaError, SettingError, RegistryError) as error:
            why = str(error)
        finally:
            self._answers.put(KnownLandings(states=states, why=why))


def show_overview(parts: ConsoleParts, visit: Visit) -> Content:
    """The content of the overview."""
    chosen = visit.asked("range") or "1 h"
    if chosen not in RANGES:
        raise LookUpProblem(400, f"`range` must be one of {', '.join(RANGES)}, not {chosen[:40]!r}")
    registry = parts.registry
    snapshot, bound = registry.snapshot(), registry.binding().job
    jobs = [_with_lag(parts, job) for job in registry.jobs() if bound in ("", job.job)]
    wrong = [line for job in jobs for line in wrong_lines(job)]
    waits = [line for job in jobs if job.alive for line in waiting_lines(job.report or {})]
    poisoned = [line for job in jobs if job.alive for line in reject_lines(job.report or {})]
    stopped = [line for job in jobs if not job.alive for line in amber_lines(job)]
    walks = board_json(snapshot, walks=registry.progress())["walks"]
    landings, letters = parts.landings(), letters_json(registry.letters.waiting())
    products = product_list(parts, snapshot, living_run(jobs))
    report = next((one.report for one in jobs if one.report), None)
    first = _First(
        jobs=jobs,
        report=report,
        wrong=wrong,
        waits=waits,
        poisoned=poisoned,
        stopped=stopped,
        letters=letters,
        products=products,
    )
    return status_json(snapshot, jobs, wrong, [*waits, *poisoned, *stopped]) | {
        "waits": waits,
        "poisoned": poisoned,
        "stopped": stopped,
        "first": list(first.tiles()),
        "calm": first.calm,
        "product_rows": sorted(products, key=_urgency)[:MOST_PRODUCTS],
        "products": len(products),
        "letters_waiting": letters,
        "range": chosen,
        "ranges": list(RANGES),
        "cards": [_card(job, chosen) for job in jobs],
        "walks": [walk | _words(walk) for walk in walks if not walk["done"]],
        "pending": list(pending_lines(snapshot)),
        "landings": [_landing(one) for one in landings.states],
        "landings_unknown": landings.why,
        "landings_age": None if landings.age is None else duration_text(landings.age),
        "replay_requests": requests_json(registry.replays.waiting()),
    }


MOST_PRODUCTS: Final = 12
"""Of the overview; the page of products has all."""


def _urgency(product: Mapping[str, Any]) -> tuple[bool, float, str]:
    """The order of products: first those that do not publish, then the late ones."""
    return product["state"] == "live" and not product["stopped"], -(product["lag_seconds"] or 0), product["product"]


def _with_lag(parts: ConsoleParts, job: JobStatus) -> JobStatus:
    """The job; of one that does not run, with the lag of its topics now. The lag is unknown where the broker does not say it."""
    settings, report = parts.settings, job.report
    if job.alive or not report or not settings.bootstrap_servers:
        return job
    known = parts.broker.ask(
        ("lag", job.job, job.generation),
        lambda: report_now(settings.bootstrap_servers, dict(settings.kafka), report, time()),
        FRESH_SECONDS,
    )
    if known.value is not None:
        return replace(job, report=known.value)
    return replace(job, report=without_lag(report))


@dataclass(frozen=True, slots=True, kw_only=True)
class _First:
    """What a person sees first. `report`: of the job; of a job that does not run, with the present lag. `waits`, `poisoned`,
    `stopped`: the lines below the tiles. `letters`: the groups that wait."""

    jobs: Sequence[JobStatus]
    report: Mapping[str, Any] | None
    wrong: Sequence[str]
    waits: Sequence[str]
    poisoned: Sequence[str]
    stopped: Sequence[str]
    letters: Sequence[Mapping[str, Any]]
    products: Sequence[Mapping[str, Any]]

    @property
    def calm(self) -> bool:
        """Nothing needs a person."""
        return bool(self.jobs) and not (self.wrong or self.waits or self.poisoned or self.stopped or self.letters)

    def tiles(self) -> Iterator[dict[str, str]]:
        """The tiles, each with a link to what it sums up. `look`: good, fair, or bad."""
        yield self._state()
        yield self._lag()
        states = Counter("stopped" if one["stopped"] else one["state"] for one in self.products)
        counts = ", ".join(f"{count} {state}" for state, count in states.most_common())
        yield _tile("products", counts or "none", "/products", "" if states.keys() <= {"live"} else "fair")
        waiting = sum(one["letters"] for one in self.letters)
        oldest = min((one["oldest"] for one in self.letters), default=None)
        since = "" if oldest is None else f"the oldest for {duration_text(time() - oldest)}"
        yield _tile("dead letters that wait", f"{waiting:,}", "/letters", "fair" if waiting else "", since)
        yield self._failure()
        yield self._deadline()

    def _state(self) -> dict[str, str]:
        if self.wrong:
            return _tile("state", "needs a person", "#now", "bad", shortened(self.wrong[0], MOST_NOTE))
        if not self.jobs:
            return _tile("state", "no job", "#now", "fair", "none has run by this registry")
        if not any(job.alive for job in self.jobs):
            note = "its topics fill" if self.stopped else ""
            return _tile("state", "does not run", "#now", "fair" if self.stopped else "", note)
        if self.waits:
            return _tile("state", "waits for a part", "#now", "fair", "it continues by itself")
        if self.poisoned:
            return _tile("state", "bad records", "#now", "fair", "above the limit the job stops")
        if self.report is None:
            return _tile("state", "starts", "#now", "fair", "it has reported nothing yet")
        if self.report["doing"] == "paused":
            return _tile("state", "paused", "#now", "fair", "an operator paused all work")
        return _tile("state", "works", "#now", "" if self.letters else "good")

    def _lag(self) -> dict[str, str]:
        if self.report is None:
            return _tile("lag", "unknown", "#topics", "", "no job reports")
        lags = self.report["topics"].values()
        if any(lag["records"] is None for lag in lags):
            return _tile("lag", "unknown", "#topics", "fair", "the broker does not show it")
        records = sum(lag["records"] for lag in lags)
        seconds = max((lag["seconds"] or 0.0 for lag in lags), default=0.0)
        look, value = "fair" if seconds > LATE_SECONDS else "", duration_text(seconds) if records else "none"
        return _tile("lag", value, "#topics", look, f"{records:,} records to read")

    def _failure(self) -> dict[str, str]:
        """The last run that failed, as far as the registry knows."""
        found = [(one.past.last_failure, one.past.last_text) for one in self.jobs if one.past.last_failure is not None]
        ends = (
            end for one in self.jobs for end in (one.last_end, one.ended) if end and end.how in ("failed", "killed")
        )
        found += [(end.at.timestamp(), end.text or ENDS[end.how]) for end in ends]
        at, text = max(found, default=(None, ""))
        if at is None:
            return _tile("last failure", "none known", "#jobs")
        return _tile("last failure", f"{duration_text(time() - at)} ago", "#jobs", "", shortened(text, MOST_NOTE))

    def _deadline(self) -> dict[str, str]:
        """What happens next if nobody acts: the broker deletes unread records, or the job gives an outage up."""
        report = self.report or {"topics": {}}
        coming = [
            (left, f"the broker deletes unread records of {topic}", "#topics")
            for topic in report["topics"]
            if (left := seconds_kept(report, topic)) is not None and report["topics"][topic]["seconds"] > LATE_SECONDS
        ]
        coming += [
            (one["gives_up"] - time(), f"the job gives up: no answer of the {one['part']}", "#now")
            for one in report.get("troubles", ())
            if one.get("gives_up") is not None
        ]
        if not coming:
            return _tile("next deadline", "none", "#topics")
        left, text, href = min(coming)
        at = moment(datetime.fromtimestamp(time() + left))
        look = "fair" if left < DAY else ""
        return _tile("next deadline", f"in {duration_text(left)}", href, look, f"{at}: {text}")


MOST_NOTE: Final = 90
"""Characters below the value of a tile."""
LATE_SECONDS: Final = 300.0
"""From this lag on the tile is amber, as the alarm of the metric."""


def _tile(name: str, value: str, href: str, look: str = "", note: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "href": href, "look": look, "note": note}


def _card(job: JobStatus, chosen: str) -> dict[str, Any]:
    """A job in words. `tiles`: empty where it does not run, or has reported nothing yet."""
    report = job.report if job.alive else None
    doing = "does not run" if not job.alive else report["doing"] if report else "has reported nothing yet"
    return {
        "job": job.job,
        "doing": doing,
        "line": "; ".join(_facts(job)),
        "tiles": dict(_tiles(report)) if report else {},
        "facts": dict(_times(report)) if report else {},
        "gates": list(gate_lines(report)) if report else [],
        "charts": list(_charts(report, chosen)) if report else [],
        "means": duration_text(RANGES[chosen] / MOST_SAMPLES),
        "topics": list(_topics(report)) if report else [],
        "read": sum(
            lag["records"] == 0 and topic not in report["paused_topics"] for topic, lag in report["topics"].items()
        )
        if report
        else 0,
        "spent": spending_line(report["counts"]) if report and report.get("counts") else "",
    }


def _facts(job: JobStatus) -> Iterator[str]:
    if not job.alive:
        yield f"last registry version {job.applied_version}"
        yield from (_end(end) for end in (job.last_end,) if end)
        return
    yield f"runs as {job.owner}" + (f" since {moment(job.acquired_at)}" if job.acquired_at else "")
    yield f"registry version {job.applied_version}"
    if job.report is not None:
        yield f"these numbers are {duration_text(job.report_age or 0)} old"
    yield from (f"the run before {_end(end)}" for end in (job.ended,) if end)
    if job.past.failed == 1:  # more are wrong
        yield failed_text(job.past)


def _end(end: RunEnd) -> str:
    return f"{end.owner} {ENDS[end.how]} at {moment(end.at)}"


def _tiles(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "events a second", f"{report['events_per_second']:g}"
    yield "documents a second", f"{report['documents_per_second']:g}"
    yield "open changes", f"{report['open_changes']:,}"
    yield "fan-outs", f"{report['fan_outs']:,}"
    yield "backlog of roots", f"{report['backlog']:,}"
    yield "dead letters of this run", f"{report['dead_letters']:,}"


def _times(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    freshness = freshness_text(report.get("counts", {})).removeprefix("freshness ")
    yield "age of documents when published", freshness or "none published yet"
    yield "oldest change without its documents", oldest_text(report)
    if batch := report["last_batch"]:
        at = moment(datetime.fromtimestamp(batch["at"]))
        yield "last batch", f"{at}, {batch['records']:,} records, {batch['documents']:,} documents"
    if letter := report["last_dead_letter"]:
        yield "last dead letter", letter


def _charts(report: Mapping[str, Any], chosen: str) -> Iterator[dict[str, Any]]:
    """The charts of a range, once it has two samples. A report of an older release has those of an hour, without the lag."""
    charts = report.get("charts") or {"1 h": [[*one[:3], None, *one[3:]] for one in report.get("samples", ())]}
    if len(samples := charts.get(chosen, ())) > 1:
        for number, (name, unit) in enumerate(CHARTS, 1):
            known = [(one[0], one[number]) for one in samples if one[number] is not None]
            if len(known) > 1:
                yield chart(name, unit, known, RANGES[chosen])


def _topics(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Of the topics of the job those of which something waits, or is unknown, or that are paused."""
    for topic, lag in report["topics"].items():
        if lag["records"] == 0 and topic not in report["paused_topics"]:
            continue
        late = topic in report["paused_topics"] or (lag["seconds"] or 0.0) > LATE_SECONDS
        yield {"topic": topic, "behind": (topic_text if late else lag_text)(report, topic), "missing": False}
    for topic in report["missing_topics"]:
        yield {"topic": topic, "behind": missing_text(report, topic), "missing": True}
    for topic in {*report["paused_topics"]} - report["topics"].keys():  # of a release that knows no lag of them
        yield {"topic": topic, "behind": "paused: the job reads no records of it", "missing": True}


def _landing(one: LandingState) -> dict[str, Any]:
    """A landing, as `status --json` prints it, with its age."""
    landed = "unknown" if one.landed_at is None else f"{duration_text(time() - one.landed_at)} ago"
    return {**one._asdict(), "landed": landed}


def _words(walk: Mapping[str, Any]) -> dict[str, str]:
    of = f" of about {walk['of']:,}" if walk["of"] else ""
    left = walk["seconds_left"]
    known = "unknown" if left is None else f"about {duration_text(left)}"
    return {"rows_text": f"{walk['rows']:,}{of}", "left": known}


WIDTH, HEIGHT, LEFT, TOP = 320, 110, 38, 8
"""Of a chart with its labels; where its lines begin."""
RIGHT, BOTTOM = WIDTH - 6, HEIGHT - 20
CHARTS: Final = (
    ("events", "a second"),
    ("documents", "a second"),
    ("oldest unread record", "seconds"),
    ("backlog of roots", "documents"),
)
"""The charts, each with its unit, in the order of the samples."""
GAP: Final = 2.5
"""Periods without a sample, after which a line is cut."""


def chart(name: str, unit: str, samples: Sequence[tuple[float, float]], seconds: float) -> dict[str, Any]:
    """The chart of these values at these times, for SVG: its lines, and the labels of its axes. The time axis ends at the last
    sample, and is `seconds` long. `text`: what the chart shows, for people who do not see it."""
    end, most = samples[-1][0], nice_ceiling(max(value for _, value in samples))
    lines, before = list[list[str]](), None
    for at, value in samples:
        if before is None or at - before > GAP * seconds / MOST_SAMPLES:
            lines.append([])
        x = RIGHT - (RIGHT - LEFT) * (end - at) / seconds
        lines[-1].append(f"{max(x, LEFT):.1f},{BOTTOM - (BOTTOM - TOP) * value / most:.1f}")
        before = at
    values = [value for _, value in samples]
    of = f"{name} {unit}" if unit == "a second" else f"{name}, {unit}"
    length = duration_text(max(end - samples[0][0], 1.0))
    return {
        "name": name,
        "unit": unit,
        "lines": [" ".join(points) for points in lines],
        "y": [{"at": TOP + 4, "text": f"{most:,g}"}, {"at": BOTTOM, "text": "0"}],
        "x": [
            {"at": RIGHT - (RIGHT - LEFT) * part, "text": _clock(end - seconds * part), "anchor": anchor}
            for part, anchor in ((1.0, "start"), (0.5, "middle"), (0.0, "end"))
        ],
        "text": f"{of} in the last {length}: {min(values):g} to {max(values):g}, {values[-1]:g} at the end",
    }


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%H:%M}"


def nice_ceiling(value: float) -> float:
    """The least of 1, 2, 5, 10, 20, ... that is not below the value."""
    step = 1.0
    while step < value:
        step = next((one for one in (2 * step, 5 * step) if one >= value), 10 * step)
    return step


OVERVIEW = Screen(path="/", menu="Overview", template="overview.html", show=show_overview)
