"""`statestore status`, `slots` and `doctor`: what runs and what is wrong, the slots of the registry, and a check of the set-up.

`status` needs only the registry: the running job writes its state into its lease every 5 s. Where the settings name a broker,
the verb asks it how far the landings are. `processor.job.metrics.status` says which states are wrong. A job that waits for a
dependency is degraded: it continues by itself, so the exit status stays 0.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from time import sleep, time
from typing import TYPE_CHECKING, Any

from processor.cli.options import (
    JOB,
    REGISTRY,
    load_definitions,
    load_settings,
    reachable_settings,
    settings_of_shared_parts,
    source_address,
)
from processor.cli.verb import JSON, OPERATORS, STORED_DEFINITIONS, flag, one_of, source_flags, verb
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import kind_and_table, kind_of
from processor.errors import KafkaError, PartError, SettingError, StatestoreError
from processor.job.metrics.status import (
    amber_lines,
    costly_lines,
    failed_text,
    filling_topics,
    gate_lines,
    letters_json,
    letters_text,
    missing_text,
    moment,
    nulled_lines,
    oldest_text,
    pause_text,
    request_lines,
    requests_json,
    status_json,
    topic_lines,
    topic_text,
    without_lag,
    wrong_lines,
)
from processor.text import column_widths, duration_text, fitted, table_lines, visible, visible_lines
from processor.tools.inspect.board import ENDS, board_json, pending_lines
from processor.tools.inspect.prices import spending_line, throttled
from registry.fields import shown_fields
from registry.model import AssignmentState, JobStatus, Progress, RunEnd, Snapshot

if TYPE_CHECKING:
    from processor.job.landing.landing import LandingState
    from processor.tools.doctor.checks import CheckedFinding
    from registry.repository import Registry


WATCH_SECONDS = 2
FORMS = one_of(JSON, flag("--watch", f"print again every {WATCH_SECONDS} s, until Ctrl-C"))
"""The forms of a state: text, JSON, or text again and again."""


@verb("status", OPERATORS, FORMS, settings=REGISTRY)
def status(options: argparse.Namespace) -> int:
    """Show what runs, how far it is behind, and what is wrong (then exit status 1)."""
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return print_state(options, lambda: print_status(registry, settings, options))


def print_status(registry: "Registry", settings: Settings, options: argparse.Namespace) -> int:
    """Prints the state of the registry's job, without its former names. Returns the exit status."""
    landings, unknown = _landings(registry, settings)
    snapshot, bound = registry.snapshot(), registry.binding().job
    jobs = [_with_lag(job, settings) for job in registry.jobs() if bound in ("", job.job)]
    problems = [line for job in jobs for line in wrong_lines(job)]
    degraded = [line for job in jobs for line in amber_lines(job)]
    requests, letters = registry.replays.waiting(), letters_json(registry.letters.waiting())
    if options.json:
        more = {
            "letters_waiting": letters,
            "replay_requests": requests_json(requests),
            "landings": [one._asdict() for one in landings],
        }
        print(json.dumps(status_json(snapshot, jobs, problems, degraded) | more, indent=2))
    else:
        lines = [*status_text(snapshot, jobs, problems, degraded), *map(landing_line, landings), *unknown]
        lines += [letters_text(letters, time()), *request_lines(requests)]
        print(visible_lines(lines), flush=True)
    return 1 if problems else 0


def _with_lag(job: JobStatus, settings: Settings) -> JobStatus:
    """The job; of one that does not run, with the lag of its topics now. The lag is unknown where the broker does not say."""
    if job.alive or not job.report or not settings.bootstrap_servers:
        return job
    from processor.job.kafka.lag import report_now

    try:
        return replace(job, report=report_now(settings.bootstrap_servers, dict(settings.kafka), job.report, time()))
    except KafkaError:
        return replace(job, report=without_lag(job.report))


def _landings(registry: "Registry", settings: Settings) -> tuple[list["LandingState"], list[str]]:
    """The landings; and a line where the broker does not say how far they are."""
    from processor.job.landing.landing import landing_states, landings_of

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
        if job.report:
            report = job.report
            yield from (f"  topic {topic}: behind {topic_text(report, topic)}" for topic in filling_topics(report))
        return
    state = job.report or {}
    since = f" since {moment(job.acquired_at)}" if job.acquired_at else ""
    yield f"job {job.job}: runs as {job.owner}{since}, statestore {state.get('statestore', '?')}"
    yield from (f"  the run before: {_end_line(end)}" for end in (job.ended,) if end)
    if job.past.failed == 1:  # more are wrong
        yield f"  {failed_text(job.past)}"
    yield f"  registry version {job.applied_version}, the newest is {snapshot.version}"
    if job.report is None:
        yield "  it has reported nothing yet"
        return
    yield f"  {state['doing']}; reported {duration_text(job.report_age or 0)} ago"
    yield from (f"  {line}" for line in topic_lines(state))
    pauses = [one for one in state.get("pauses", ()) if one["kind"] == "product"]
    yield from (f"  product {one['name']}: {pause_text(one)}" for one in pauses)
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
    yield from (f"  {line}" for line in costly_lines(state))
    if counts := state.get("counts"):
        yield f"  {spending_line(counts)}"
        if throttled(counts):
            yield "  the store throttles: `--walk-rate`, `pause --topic` and more capacity help at once (docs/stores.md)"


def _end_line(end: RunEnd) -> str:
    """How a run ended."""
    return f"{end.owner} {ENDS[end.how]} at {moment(end.at)}"


def _open_lines(state: Mapping[str, Any]) -> Iterator[str]:
    """What is open: the lines of counts that a job works off."""
    counts = {"open changes": "open_changes", "fan-outs": "fan_outs", "roots in the backlog": "backlog"}
    if left := [f"{state[field]:,} {name}" for name, field in counts.items() if state[field]]:
        yield f"  {', '.join(left)}"
    yield from (f"  {line}" for line in gate_lines(state))
    if state["walks"]:
        yield f"  walks: {', '.join(state['walks'])}"
    yield from (f"  {one['text']}" for one in state.get("absent_columns", {}).values() if not one["loud"])
    yield from (f"  {line}" for line in nulled_lines(state.get("counts", {})))
    letters = f"  {state['dead_letters']:,} records became dead letters in this run"
    yield letters + (f", the last: {state['last_dead_letter']}" if state["last_dead_letter"] else "")
    oldest = state["oldest_unpublished"]
    since = f"{moment(datetime.fromtimestamp(oldest))}, " if oldest is not None else ""
    yield f"  oldest change without its documents: {since}{oldest_text(state)}"


@verb("slots", OPERATORS, FORMS, settings=REGISTRY)
def slots(options: argparse.Namespace) -> int:
    """Show the slots of each entity with their joins, the products that wait, jobs and walks."""
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return print_state(options, lambda: _print_board(registry, options, settings.store))


def _print_board(registry: "Registry", options: argparse.Namespace, store: str) -> int:
    snapshot, jobs, walks = registry.snapshot(), registry.jobs(), registry.progress()
    if options.json:
        print(json.dumps(board_json(snapshot, jobs, walks), indent=2))
    else:
        lines = list(status_lines(snapshot, jobs, walks))
        table = registry.binding().table
        store = kind_and_table(table)[0] if table else store
        print(
            visible("\n".join([board_text(snapshot, kind_of(store).slot), *([""] if lines else []), *lines])),
            flush=True,
        )
    return 0


def board_text(snapshot: Snapshot, slot: str) -> str:
    """The board of slots as a table, with a rule below its header. `slot`: what the store calls one, before its number."""
    header, *rows = fitted(_board_rows(snapshot, slot))
    rule = ["-" * width for width in column_widths([header, *rows])]
    return "\n".join(table_lines([header, rule, *rows]))


def status_lines(snapshot: Snapshot, jobs: Iterable[JobStatus], walks: Iterable[Progress]) -> Iterator[str]:
    """The lines below the board: the work that waits, each job, and each walk that is not done."""
    board = board_json(snapshot, jobs, walks)
    yield from pending_lines(snapshot)
    yield from (_job_line(board["version"], job) for job in board["jobs"])
    yield from (_walk_line(walk) for walk in board["walks"] if not walk["done"])


def _board_rows(snapshot: Snapshot, name: str) -> list[list[str]]:
    """The rows of the board, the header first: entity, key, and the slots up to the last one in use.

    A cell has several lines: the columns joined by `#`, the state when it is not serving, and the joins. The key's cell holds
    its key reads, and below them each edge with its joins.
    """
    last = max((one.slot for one in snapshot.assignments), default=0)
    slots = range(1, last + 1)
    header = [["entity"], ["key"], *([f"{name}{slot}"] for slot in slots)]
    rows = [
        [[entity["entity"]], _key_cell(entity), *(_slot_cell(entity, slot) for slot in slots)]
        for entity in board_json(snapshot)["entities"]
    ]
    return [["\n".join(cell) for cell in row] for row in [header, *rows]]


def _key_cell(entity: Mapping[str, Any]) -> list[str]:
    lines = ["#".join(entity["key"]), *entity["key_serves"]]
    for edge in entity["edges"]:
        lines += [f"edges {shown_fields(edge['fields'])}", *edge["serves"]]
    return lines


def _slot_cell(entity: Mapping[str, Any], slot: int) -> list[str]:
    assignment = next((one for one in entity["assignments"] if one["slot"] == slot), None)
    if assignment is None:
        return []
    state = [] if assignment["state"] == AssignmentState.SERVING else [f"({assignment['state']})"]
    return [shown_fields(assignment["columns"]), *state, *assignment["serves"]]


def _job_line(version: int, job: Mapping[str, Any]) -> str:
    applied = job["applied_version"]
    if not job["alive"]:
        last = f", last version {applied}" if applied is not None else ""
        return f"job {job['job']}: does not run{last}"
    behind = f", and the registry has version {version}" if applied != version else ""
    return f"job {job['job']}: runs as {job['owner']}, by version {applied}{behind}"


def _walk_line(walk: Mapping[str, Any]) -> str:
    """How far a walk is. The rate is the mean since the walk began."""
    rows = f"{walk['rows']:,} of about {walk['of']:,} rows" if walk["of"] else f"{walk['rows']:,} rows"
    rate, left = walk["rows_per_second"], walk["seconds_left"]
    times = "" if rate is None else f", {rate:,.0f} rows/s"
    times += "" if left is None else f", about {timedelta(seconds=round(left))} left"
    return f"{walk['walk']}: {rows}, {walk['written']:,} written{times}"


@verb(
    "doctor",
    OPERATORS,
    JSON,
    STORED_DEFINITIONS,
    *source_flags("look at this source database, too: postgresql:// or mysql://"),
    settings=(*JOB, "checkpoint"),
)
def doctor(options: argparse.Namespace) -> int:
    """Check the set-up of a job: this machine, the ways, the table, the registry, the topics."""
    from processor.tools.doctor.checks import checks_of, examine
    from processor.tools.doctor.context import CheckContext
    from processor.tools.doctor.source import source_check

    with ExitStack() as stack:
        settings, dead = _settings(options, stack)
        definitions = load_definitions(options) if options.definitions else None
        around = CheckContext(settings, embedded=options.embedded, definitions=definitions)
        stack.callback(around.close)
        checks = [*checks_of(kind_of(settings.store), dead)]
        checks += [source_check(source_address(options))] if options.source else []
        found = list(examine(checks, around))
    print(json.dumps(findings_json(found), indent=2) if options.json else visible_lines(findings_text(found)))
    return 1 if any(one.finding.state == "failure" for one in found) else 0


def _settings(options: argparse.Namespace, stack: ExitStack) -> tuple[Settings, StatestoreError | None]:
    """The settings as far as they can be read, and why not farther: a part of `local up` died, or a secret is missing."""
    try:
        return stack.enter_context(reachable_settings(options)), None
    except PartError as dead:
        if (settings := settings_of_shared_parts(options)) is None:
            raise
        return settings, dead
    except SettingError as unreadable:
        return load_settings(options), unreadable  # raises another error of the settings again


def findings_json(found: Sequence["CheckedFinding"]) -> dict[str, Any]:
    """The findings as JSON values, and how many have each state."""
    return {
        "counts": _counts(found),
        "findings": [{"check": check.name, "looks_at": check.looks_at, **asdict(finding)} for check, finding in found],
    }


def findings_text(found: Sequence["CheckedFinding"]) -> Iterator[str]:
    """The findings as aligned lines, a cure below its finding, and the counts."""
    cells = [
        [finding.state, check.name, finding.text + (f"\ncure: {finding.cure}" if finding.cure else "")]
        for check, finding in found
    ]
    yield from table_lines(fitted(cells))
    yield ", ".join(f"{count} {state}" for state, count in _counts(found).items())


def _counts(found: Sequence["CheckedFinding"]) -> dict[str, int]:
    counts = Counter(one.finding.state for one in found)
    return {state: counts[state] for state in ("ok", "warning", "failure", "skipped")}


def print_state(options: argparse.Namespace, print_once: Callable[[], int]) -> int:
    """Prints the state once, or with `--watch` until Ctrl-C. Returns the exit status of the last time."""
    if not options.watch:
        return print_once()
    status = 0
    with suppress(KeyboardInterrupt):
        while True:
            print(f"\n{datetime.now():%Y-%m-%d %H:%M:%S}")
            status = print_once()
            sleep(WATCH_SECONDS)
    return status
