"""`statestore status`: what runs, how far it is behind, and what is wrong. The verb needs only the registry: the running job
writes its state into its lease every 5 s.

A state is wrong if it stays until a person acts: a job died, a product or a walk stopped, the job refuses a registry version, or
the job reports nothing any more. Dead letters are counted and are not wrong: `rejects list` shows those that wait.
"""

import argparse
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from processor.cli.job_log import lag_text
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.output import spending_line
from processor.cli.visible_text import visible_lines
from processor.cli.watch import add_forms, print_state
from processor.job.open_registry import open_registry
from registry.job_status import JobStatus
from registry.model import Snapshot
from registry.pending import pending_lines

if TYPE_CHECKING:
    from registry.repository import Registry

SILENT_SECONDS = 60.0
"""A living job whose report is older is wrong: it reports every 5 s."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "status", help="show what runs, how far it is behind, and what is wrong (then exit status 1)"
    )
    add_forms(parser)
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return print_state(options, lambda: _print_status(registry, options))


def _print_status(registry: "Registry", options: argparse.Namespace) -> int:
    """Prints the state of the registry's job, without its former names. Returns the exit status."""
    snapshot, bound = registry.snapshot(), registry.binding().job
    jobs = [job for job in registry.jobs() if bound in ("", job.job)]
    problems = [line for job in jobs for line in wrong_lines(job)]
    if options.json:
        print(json.dumps(status_json(snapshot, jobs, problems), indent=2))
    else:
        print(visible_lines(status_text(snapshot, jobs, problems)), flush=True)
    return 1 if problems else 0


def wrong_lines(job: JobStatus) -> Iterator[str]:
    """What a person must repair, a line each."""
    if not job.alive:
        if job.owner is not None:
            yield f"job {job.job} died: {job.owner} gave no sign of life since {_moment(job.renewed_at)}; start it again"
        return
    if (job.report_age or 0.0) > SILENT_SECONDS:
        yield f"job {job.job} renews its lease, and has reported nothing for {job.report_age:,.0f} s; see its log"
    yield from wrong_in_report(job.report or {})


def wrong_in_report(state: Mapping[str, Any]) -> Iterator[str]:
    """What a person must repair by the report of a job that lives."""
    for product, why in state.get("stopped_products", {}).items():
        yield f"product {product} stopped: {why}"
    for product, count in state.get("unfit_documents", {}).items():
        yield (
            f"product {product}: {count:,} documents do not fit its topic, which shows earlier ones: `statestore rejects list "
            "--each` says why and what to do; then start the job again"
        )
    for walk, why in state.get("stopped_walks", {}).items():
        yield f"{walk} stopped: {why}"
    if state.get("refusal"):
        yield state["refusal"]


def status_json(snapshot: Snapshot, jobs: Collection[JobStatus], problems: list[str]) -> dict[str, Any]:
    """The state as JSON values. `report`: see `processor.job.monitor`."""
    return {
        "version": snapshot.version,
        "paused": snapshot.paused,
        "wrong": problems,
        "jobs": [
            {
                "job": job.job,
                "owner": job.owner,
                "alive": job.alive,
                "since": job.acquired_at.isoformat() if job.acquired_at else None,
                "applied_version": job.applied_version,
                "report_age": job.report_age,
                "report": job.report,
            }
            for job in jobs
        ],
    }


def status_text(snapshot: Snapshot, jobs: Collection[JobStatus], problems: Collection[str]) -> Iterator[str]:
    """The state as lines for people."""
    if not jobs:
        yield "no job has run by this registry: `statestore run`"
    for job in jobs:
        yield from _job_lines(snapshot, job)
    yield from pending_lines(snapshot)
    yield from (f"wrong: {line}" for line in problems)


def _job_lines(snapshot: Snapshot, job: JobStatus) -> Iterator[str]:
    if not job.alive:
        yield f"job {job.job}: does not run, last registry version {job.applied_version} of {snapshot.version}"
        return
    state = job.report or {}
    since = f" since {_moment(job.acquired_at)}" if job.acquired_at else ""
    yield f"job {job.job}: runs as {job.owner}{since}, statestore {state.get('statestore', '?')}"
    yield f"  registry version {job.applied_version}, the newest is {snapshot.version}"
    if job.report is None:
        yield "  it has reported nothing yet"
        return
    yield f"  {state['doing']}; reported {job.report_age:,.0f} s ago"
    for topic, lag in state["topics"].items():
        yield f"  topic {topic}: {lag_text(lag)} behind"
    yield from (f"  topic {topic}: does not exist" for topic in state["missing_topics"])
    for entity, topic in state.get("former_topics", {}).items():
        yield f"  topic {topic}: entity {entity} has another topic, and leaves this one at its end, once the other has a record"
    yield f"  {state['events_per_second']:g} events/s, {state['documents_per_second']:g} documents/s"
    if batch := state["last_batch"]:
        yield (
            f"  last batch {batch['number']}: {_moment(datetime.fromtimestamp(batch['at']))}, {batch['records']:,} records, "
            f"{batch['documents']:,} documents"
        )
    yield from _open_lines(state)
    if counts := state.get("counts"):
        yield f"  {spending_line(counts)}"


def _open_lines(state: Mapping[str, Any]) -> Iterator[str]:
    """What is open: the lines of counts that a job works off."""
    yield f"  {state['open_changes']:,} open changes, {state['fan_outs']:,} fan-outs, {state['backlog']:,} roots in the backlog"
    if state["walks"]:
        yield f"  walks: {', '.join(state['walks'])}"
    letters = f"  {state['dead_letters']:,} dead letters in this run"
    yield letters + (f", the last: {state['last_dead_letter']}" if state["last_dead_letter"] else "")
    oldest = state["oldest_unpublished"]
    yield (
        "  oldest change without its documents: "
        + (
            f"{_moment(datetime.fromtimestamp(oldest))}, {state['at'] - oldest:,.0f} s before the report"
            if oldest
            else "none"
        )
    )


def _moment(at: datetime) -> str:
    """A time on the clock of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"
