"""`statestore status`: what runs, how far it is behind, and what is wrong. The verb needs only the registry: the running job
writes its state into its lease every 5 s. Where the settings name a broker, the verb asks it how far the landings are.

`processor.job.metrics.status` says which states are wrong. A job that waits for a part outside of it is degraded: it goes
on by itself, so the exit status stays 0.
"""

import argparse
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from processor.cli.operators.ask_for_replay import request_lines
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.watch import add_forms, print_state
from processor.engine.rounds.troubles import degraded_lines
from processor.environment.settings.open_registry import open_registry
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.metrics.status import (
    gate_lines,
    lag_text,
    missing_text,
    moment,
    oldest_text,
    requests_json,
    status_json,
    wrong_lines,
)
from processor.text import duration_text, visible_lines
from processor.tools.inspect.board import ENDS, pending_lines
from processor.tools.inspect.spending import spending_line, throttled
from registry.model import JobStatus, RunEnd, Snapshot

if TYPE_CHECKING:
    from processor.job.landing.landing_states import LandingState
    from registry.repository import Registry


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "status", help="show what runs, how far it is behind, and what is wrong (then exit status 1)"
    )
    add_forms(parser)
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return print_state(options, lambda: _print_status(registry, settings, options))


def _print_status(registry: "Registry", settings: Settings, options: argparse.Namespace) -> int:
    """Prints the state of the registry's job, without its former names. Returns the exit status."""
    landings, unknown = _landings(registry, settings)
    snapshot, bound = registry.snapshot(), registry.binding().job
    jobs = [job for job in registry.jobs() if bound in ("", job.job)]
    problems = [line for job in jobs for line in wrong_lines(job)]
    degraded = [line for job in jobs if job.alive for line in degraded_lines(job.report or {})]
    requests = registry.replays.waiting()
    if options.json:
        more = {"replay_requests": requests_json(requests), "landings": [one._asdict() for one in landings]}
        print(json.dumps(status_json(snapshot, jobs, problems, degraded) | more, indent=2))
    else:
        lines = [*status_text(snapshot, jobs, problems, degraded), *map(landing_line, landings), *unknown]
        lines += request_lines(requests)
        print(visible_lines(lines), flush=True)
    return 1 if problems else 0


def _landings(registry: "Registry", settings: Settings) -> tuple[list["LandingState"], list[str]]:
    """The landings; and a line where the broker does not say how far they are."""
    from processor.job.landing.landing_states import landing_states, landings_of

    known = registry.landings.all()
    try:
        return landing_states(known, settings.bootstrap_servers, dict(settings.kafka)), []
    except KafkaError as error:
        return landings_of(known, ()), [f"landings: how far they are is unknown, {error}"]


def landing_line(one: "LandingState") -> str:
    """A landing in one line, for people."""
    runs = f"{one.processes} processes" if one.processes else "does not run"
    behind = "its lag is unknown" if one.behind is None else f"{one.behind:,} messages behind"
    facts = [runs, behind]
    facts += [f"the last landed at {moment(datetime.fromtimestamp(one.landed_at))}"] if one.landed_at else []
    facts += [f"seen at {moment(datetime.fromtimestamp(one.seen_at))}"] if one.seen_at else []
    facts.append(f"id {one.id}" if one.id else "the registry does not know it: start its `land` of this release")
    return f"landing of {one.product} in {one.place}: {', '.join(facts)}"


def status_text(
    snapshot: Snapshot, jobs: Collection[JobStatus], problems: Collection[str], degraded: Collection[str]
) -> Iterator[str]:
    """The state as lines for people."""
    if not jobs:
        yield "no job has run by this registry: `statestore run`"
    for job in jobs:
        yield from _job_lines(snapshot, job)
    yield from pending_lines(snapshot)
    yield from (f"degraded: {line}" for line in degraded)
    yield from (f"wrong: {line}" for line in problems)


def _job_lines(snapshot: Snapshot, job: JobStatus) -> Iterator[str]:
    if not job.alive:
        yield f"job {job.job}: does not run, last registry version {job.applied_version} of {snapshot.version}"
        yield from (f"  {_end_line(end)}" for end in (job.last_end,) if end)
        return
    state = job.report or {}
    since = f" since {moment(job.acquired_at)}" if job.acquired_at else ""
    yield f"job {job.job}: runs as {job.owner}{since}, statestore {state.get('statestore', '?')}"
    yield from (f"  the run before: {_end_line(end)}" for end in (job.ended,) if end)
    yield f"  registry version {job.applied_version}, the newest is {snapshot.version}"
    if job.report is None:
        yield "  it has reported nothing yet"
        return
    yield f"  {state['doing']}; reported {duration_text(job.report_age or 0)} ago"
    yield from (f"  topic {topic}: behind {lag_text(state, topic)}" for topic in state["topics"])
    yield from (f"  topic {topic}: {missing_text(state, topic)}" for topic in state["missing_topics"])
    for entity, topic in state.get("former_topics", {}).items():
        yield f"  topic {topic}: entity {entity} has another topic, and leaves this one at its end, once the other has a record"
    yield f"  {state['events_per_second']:g} events/s, {state['documents_per_second']:g} documents/s"
    if batch := state["last_batch"]:
        yield (
            f"  last batch {batch['number']}: {moment(datetime.fromtimestamp(batch['at']))}, {batch['records']:,} records, "
            f"{batch['documents']:,} documents"
        )
    yield from _open_lines(state)
    if counts := state.get("counts"):
        yield f"  {spending_line(counts)}"
        if throttled(counts):
            yield "  the store throttles: `--walk-rate`, `pause --topic` and more capacity help at once (docs/stores.md)"


def _end_line(end: RunEnd) -> str:
    """How a run ended."""
    return f"{end.owner} {ENDS[end.how]} at {moment(end.at)}"


def _open_lines(state: Mapping[str, Any]) -> Iterator[str]:
    """What is open: the lines of counts that a job works off."""
    yield f"  {state['open_changes']:,} open changes, {state['fan_outs']:,} fan-outs, {state['backlog']:,} roots in the backlog"
    yield from (f"  {line}" for line in gate_lines(state))
    if state["walks"]:
        yield f"  walks: {', '.join(state['walks'])}"
    yield from (f"  {one['text']}" for one in state.get("absent_columns", {}).values() if not one["loud"])
    letters = f"  {state['dead_letters']:,} dead letters in this run"
    yield letters + (f", the last: {state['last_dead_letter']}" if state["last_dead_letter"] else "")
    oldest = state["oldest_unpublished"]
    since = f"{moment(datetime.fromtimestamp(oldest))}, " if oldest is not None else ""
    yield f"  oldest change without its documents: {since}{oldest_text(state)}"
