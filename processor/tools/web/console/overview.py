"""The overview: what runs, how far it is behind, what is wrong with its cure, what waits, and how old these numbers are."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic, time
from typing import Any, Final

from processor.engine.rounds.events import degraded_lines
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError, SettingError
from processor.job.landing.landing import LandingState, landing_states, landings_of
from processor.job.metrics.status import (
    failed_text,
    freshness_text,
    gate_lines,
    missing_text,
    moment,
    oldest_text,
    requests_json,
    status_json,
    topic_text,
    wrong_lines,
)
from processor.text import duration_text
from processor.tools.inspect.board import ENDS, board_json, pending_lines
from processor.tools.inspect.prices import spending_line
from processor.tools.web.answers import Cached
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


def show_overview(parts: ConsoleParts, _: Visit) -> Content:
    """The content of the overview."""
    registry = parts.registry
    snapshot, bound = registry.snapshot(), registry.binding().job
    jobs = [job for job in registry.jobs() if bound in ("", job.job)]
    wrong = [line for job in jobs for line in wrong_lines(job)]
    degraded = [line for job in jobs if job.alive for line in degraded_lines(job.report or {})]
    walks = board_json(snapshot, walks=registry.progress())["walks"]
    landings = parts.landings()
    return status_json(snapshot, jobs, wrong, degraded) | {
        "products": len(snapshot.products) + len(snapshot.waiting),
        "cards": [_card(job) for job in jobs],
        "walks": [walk | _words(walk) for walk in walks if not walk["done"]],
        "pending": list(pending_lines(snapshot)),
        "landings": [_landing(one) for one in landings.states],
        "landings_unknown": landings.why,
        "landings_age": None if landings.age is None else duration_text(landings.age),
        "replay_requests": requests_json(registry.replays.waiting()),
    }


def _card(job: JobStatus) -> dict[str, Any]:
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
        "charts": list(_charts(report)) if report else [],
        "topics": list(_topics(report)) if report else [],
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
    yield "dead letters", f"{report['dead_letters']:,}"


def _times(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    freshness = freshness_text(report.get("counts", {})).removeprefix("freshness ")
    yield "age of documents when published", freshness or "none published yet"
    yield "oldest change without its documents", oldest_text(report)
    if batch := report["last_batch"]:
        at = moment(datetime.fromtimestamp(batch["at"]))
        yield "last batch", f"{at}, {batch['records']:,} records, {batch['documents']:,} documents"
    if letter := report["last_dead_letter"]:
        yield "last dead letter", letter


def _charts(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The last hour of the run, once it has two samples."""
    if len(samples := report.get("samples", ())) > 1:
        times, *columns = zip(*samples, strict=True)
        for name, values in zip(("events a second", "documents a second", "backlog of roots"), columns, strict=True):
            yield small_chart(name, times, values)


def _topics(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for topic in report["topics"]:
        yield {"topic": topic, "behind": topic_text(report, topic), "missing": False}
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


WIDTH: Final = 240
HEIGHT: Final = 40


def small_chart(name: str, times: Sequence[float], values: Sequence[float]) -> dict[str, Any]:
    """The chart of these values at these times; at least two of them. `points`: of its line, for SVG; `text`: what it shows."""
    begin, length, most = times[0], max(times[-1] - times[0], 1.0), max(*values, 1.0)
    places = [
        (WIDTH * (at - begin) / length, HEIGHT - HEIGHT * value / most) for at, value in zip(times, values, strict=True)
    ]
    text = f"{name} in the last {duration_text(length)}: {min(values):g} to {max(values):g}, {values[-1]:g} at the end"
    return {"name": name, "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in places), "text": text}


OVERVIEW = Screen(path="/", menu="Overview", template="overview.html", show=show_overview)
