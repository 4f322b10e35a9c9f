"""The verbs of the registry: its edits, which a running job takes before its next batch, its history and its roles.

An edit prints its changes, the work that it leaves, who does this work, and the registry version.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial, update_wrapper
from time import sleep
from typing import TYPE_CHECKING

from processor.cli.options import (
    KAFKA,
    REGISTRY,
    TABLE,
    load_definitions,
    print_progress,
    reachable_settings,
    reason,
    require_settings,
    user_name,
)
from processor.cli.printing.output import warn
from processor.cli.printing.plan import counted
from processor.cli.verb import AUTHORS, DEFINITIONS, ENTITY, JSON, OPERATORS, PRODUCT, WHY, Flag, flag, positive, verb
from processor.engine.plan.planning import check_after, plan_of, requirements_of
from processor.engine.protocol.epochs import move_lines
from processor.environment.settings.resolve import open_registry
from processor.errors import SettingError, StatestoreError
from processor.language.definitions.problems import suggest
from processor.text import visible, visible_line
from processor.tools.inspect.board import history_lines, pending_lines
from processor.tools.inspect.estimate import index_statistics
from processor.tools.inspect.preview import backfill_text, row_effects
from processor.tools.inspect.prices import DEFAULT
from registry.edits import operations
from registry.edits.edit import Signature, plan_id
from registry.edits.operations import NoTopic, completed
from registry.errors import NoAssignment, NoProduct, PlanOutdated
from registry.fields import shown_fields
from registry.model import Applied, JobStatus, Snapshot, Statistics

if TYPE_CHECKING:
    from registry.repository import Registry

CHANGED_ENTITY = (
    "documents over a changed entity stay as they are until one of their rows changes; `statestore republish PRODUCT` publishes "
    "all documents of a product again"
)


@verb(
    "apply",
    AUTHORS,
    DEFINITIONS,
    flag("--why", "the reason, for the registry's history", default=""),
    flag("--plan", "make exactly the changes that `plan` showed with this id, or none", "ID"),
    flag("--wait", "wait until each running job works by the new version; 1 if a job refuses it or ends"),
    JSON,
    settings=REGISTRY,
)
def apply(options: argparse.Namespace) -> int:
    """Validate definitions and store them, with slots for their joins."""
    from processor.job.run.binding import refuse_lost_registry

    definitions = load_definitions(options)
    required = requirements_of(definitions)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        runs = check_after(definitions, settings.dead_letter_topic)
        effects: list[str] = []

        def check(before: Snapshot, after: Snapshot) -> None:
            if options.plan and options.plan != plan_id(after):
                raise PlanOutdated(options.plan)
            runs(before, after)
            effects.extend(_effect_lines(before, after, has_run, statistics))
            if not options.json:
                warn(*effects)

        refuse_lost_registry(settings, registry)
        registry.migrate(settings.slots)
        _, has_run = registry.snapshot_for_apply()
        statistics = registry.statistics.last()
        applied = registry.apply(required, who=user_name(), why=options.why, check=check)
        if options.json:
            print(json.dumps({**applied_json(applied, registry), "effects": effects}))
        else:
            print_applied(applied, registry)
        waited = wait_for_jobs(registry, applied.version) if options.wait else 0
    if not options.json and any(one.startswith("entity ") and one.endswith(": changed") for one in applied.changes):
        warn(CHANGED_ENTITY)
    return waited


def _effect_lines(
    before: Snapshot, after: Snapshot, has_run: frozenset[str], statistics: Statistics | None
) -> Iterator[str]:
    """What the apply does to stored rows, before it does so."""
    plan = plan_of(completed(after))
    index = index_statistics(statistics, plan) if statistics else None
    backfills, lines = row_effects(before, after, plan, has_run, index)
    yield from lines
    for one in backfills:
        yield f"entity {one.entity}: {one.holds}; {backfill_text(one, DEFAULT)}"


@verb("epoch", OPERATORS, flag("topic", metavar="TOPIC"), WHY, settings=(*REGISTRY, *KAFKA))
def epoch(options: argparse.Namespace) -> int:
    """Record that a topic was created again or got partitions (pause its producer)."""
    from processor.job.kafka.admin import Admin
    from processor.job.run.topics import record_boundary

    why = reason(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        require_settings(settings, "bootstrap_servers")
        admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
        boundaries = record_boundary(registry, admin, options.topic, who=user_name(), why=why)
    for b in boundaries:
        print(f"{b.topic}/{b.partition}: epoch {b.epoch} from offset {b.from_offset}")
    return 0


def slot_number(text: str) -> int:
    """The number of `GSI_3`, or of `3`."""
    found = re.fullmatch(r"(?:GSI_)?(\d{1,2})", text, re.IGNORECASE | re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a slot like GSI_3, not {text!r}")
    return int(found[1])


Operate = Callable[..., Applied]
"""Makes an operation of `registry.edits.operations` with the user's name and reason."""
MakeEdit = Callable[[argparse.Namespace, Operate], Applied]


def edit(name: str, *flags: Flag) -> Callable[[MakeEdit], MakeEdit]:
    """Declares the verb of an edit, whose function follows."""

    def declare(make: MakeEdit) -> MakeEdit:
        verb(name, OPERATORS, WHY, *flags, settings=REGISTRY)(update_wrapper(partial(_make, make), make))
        return make

    return declare


def _make(make: MakeEdit, options: argparse.Namespace) -> int:
    """Makes the edit, and prints it. The error of an unknown product or slot names the nearest ones."""
    by = _signed(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        try:
            applied = make(options, partial(registry.operate, by))
        except NoProduct as error:
            stored = registry.snapshot()
            known = sorted({one.name for one in (*stored.products, *stored.waiting)})
            raise StatestoreError(f"{error}; {suggest(error.name, known)}") from None
        except NoTopic as error:
            known = sorted(one.topic for one in registry.snapshot().entities)
            raise StatestoreError(f"{error}; {suggest(error.topic, known)}") from None
        except NoAssignment as error:
            raise StatestoreError(f"{error}; {_near_slots(registry.snapshot(), options.entity)}") from None
        print_applied(applied, registry)
    return 0


def _near_slots(stored: Snapshot, entity: str) -> str:
    known = [one.name for one in stored.entities]
    if entity not in known:
        return f"there is no entity `{entity}`; {suggest(entity, known)}"
    held = [f"GSI_{one.slot} {shown_fields(one.columns)}" for one in stored.assignments_of(entity)]
    return f"{entity} has {', '.join(held) or 'no slots'}"


def _signed(options: argparse.Namespace) -> Signature:
    """The user, with the reason of `--why`."""
    return Signature(user_name(), reason(options))


@edit("remove", PRODUCT, flag("--tombstones", "let the job replace all documents by tombstones first"))
def _remove(options: argparse.Namespace, operate: Operate) -> Applied:
    """Remove a product: at once, or after its documents (--tombstones)."""
    return operate(operations.remove, options.product, tombstones=options.tombstones)


@edit("republish", PRODUCT)
def _republish(options: argparse.Namespace, operate: Operate) -> Applied:
    """Let the job publish all documents of a product again."""
    return operate(operations.republish, options.product)


PAUSED = (
    flag("product", "the product (default: all work)", "PRODUCT", nargs="?"),
    flag("--topic", "the topic of an entity, in place of a product", "TOPIC"),
)


@edit("pause", *PAUSED)
def _pause(options: argparse.Namespace, operate: Operate) -> Applied:
    """Let the job publish nothing of a product, or read no topic, or nothing at all."""
    return _set_pause(options, operate, paused=True)


@edit("resume", *PAUSED)
def _resume(options: argparse.Namespace, operate: Operate) -> Applied:
    """End a pause: the job publishes all that the product missed."""
    return _set_pause(options, operate, paused=False)


def _set_pause(options: argparse.Namespace, operate: Operate, *, paused: bool) -> Applied:
    if options.topic and options.product:
        raise SettingError(f"give {options.product} or --topic {options.topic}, not both")
    if options.topic:
        return operate(operations.pause_topic, options.topic, paused=paused)
    return operate(operations.pause, options.product, paused=paused)


SLOT = flag("slot", "", "GSI_n", type=slot_number)


@edit("retire", ENTITY, SLOT)
def _retire(options: argparse.Namespace, operate: Operate) -> Applied:
    """Give up a slot that no product uses: the job frees it."""
    return operate(operations.retire, options.entity, options.slot)


@edit("move", ENTITY, SLOT, flag("target", "a free slot", "GSI_m", type=slot_number))
def _move(options: argparse.Namespace, operate: Operate) -> Applied:
    """Move the columns of a slot, with its joins, to a free slot."""
    return operate(operations.move, options.entity, options.slot, options.target)


@verb(
    "add-slots",
    OPERATORS,
    flag("number", "the new number of slots, at most 20", "N", type=positive),
    WHY,
    settings=(*REGISTRY, *TABLE),
)
def add_slots(options: argparse.Namespace) -> int:
    """Give the table and the registry more slots.

    The table gets more indexes, one after another, and then the registry more slots. So a job never uses an index that
    is not ready. A call that broke off changed indexes only, and the next call continues.
    """
    from processor.job.run.binding import widen_table

    by = _signed(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        operations.add_slots(registry.snapshot(), options.number)  # refuses a wrong number before the table changes
        widen_table(settings, registry, options.number, print_progress)
        print_applied(registry.operate(by, operations.add_slots, options.number), registry)
    return 0


@verb(
    "undo",
    OPERATORS,
    flag("version", "the version, as `history` shows it", "VERSION", type=positive),
    WHY,
    settings=REGISTRY,
)
def undo_version(options: argparse.Namespace) -> int:
    """Put back the definitions and pauses as they were before a registry version."""
    from processor.tools.operate.registry import plan_undo, undo

    by = Signature(user_name(), f"undo of version {options.version}: {reason(options)}")
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        plan = plan_undo(registry, options.version)
        applied = undo(registry, plan, settings.dead_letter_topic, by)
        warn(*(f"entity {name} stays as it is: other products and stored rows may need it" for name in plan.kept))
        print_applied(applied, registry)
    return 0


@verb(
    "rebuild-registry",
    OPERATORS,
    DEFINITIONS,
    flag(
        "--registry-is-lost",
        "no job of the lost registry runs any more: the verb takes the table away from it",
        required=True,
    ),
    settings=(*REGISTRY, *TABLE, *KAFKA),
)
def rebuild(options: argparse.Namespace) -> int:
    """Make a new registry from definitions take over the table of a registry that is lost."""
    from processor.environment.stores.kinds import open_store
    from processor.tools.operate.registry import rebuild_registry

    definitions = load_definitions(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        require_settings(settings, "bootstrap_servers")
        with closing(open_store(settings)) as store:
            applied = rebuild_registry(
                settings,
                definitions,
                registry,
                store,
                who=user_name(),
                check=check_after(definitions, settings.dead_letter_topic),
                report=print_progress,
            )
        print_applied(applied, registry)
    return 0


RIGHTS = {
    "reader": "reads the registry",
    "job": "runs the job: reads, reports, and takes the steps of edits",
    "operator": "edits: apply, move, retire, add-slots, pause, republish, remove, undo",
    "lander": "lands documents: reads, and notes its landings",
}


@verb("roles", OPERATORS, settings=REGISTRY)
def roles(options: argparse.Namespace) -> int:
    """Create the roles of the registry in Postgres, for an administrator to grant."""
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        registry.create_roles()
        for role, rights in RIGHTS.items():
            print(f"{settings.registry_schema}_{role}  {rights}")
    return 0


LIMIT = 20


@verb(
    "history",
    OPERATORS,
    flag("--limit", f"the last N changed entries (default {LIMIT})", "N", type=positive, default=LIMIT),
    flag("--json", "print a JSON object for each entry, with all its values"),
    settings=REGISTRY,
)
def history(options: argparse.Namespace) -> int:
    """Show who changed which entry of the registry, when and why."""
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        entries = registry.history(options.limit)
    if options.json:
        for entry in entries:
            print(json.dumps(asdict(entry) | {"at": entry.at.isoformat()}))
    else:
        print(visible("\n".join(history_lines(entries))))
    return 0


WAIT_SECONDS = 0.5
"""Between two looks at the jobs that take a version."""


FOLLOWING = {
    "entity": re.compile(r"entity \S+: added"),
    "slot": re.compile(r"entity \S+: GSI_\d+ holds "),
    "join": re.compile(r"join .*: added, "),
}
"""The changes that follow from products, by what they add."""


def change_lines(changes: Collection[str]) -> Iterator[str]:
    """The changes of an edit, and of those that follow from its products how many."""
    counts = Counter[str]()
    for change in changes:
        kind = next((kind for kind, form in FOLLOWING.items() if form.match(change)), None)
        if kind is None:
            yield visible_line(change)
        else:
            counts[kind] += 1
    if counts:
        added = ", ".join(counted(count, kind) for kind, count in counts.items())
        yield f"added for them: {added} (`statestore slots` shows them)"


def print_applied(applied: Applied, registry: "Registry") -> None:
    """Prints the changes to stdout, and to stderr the work that waits in the registry, who does it, and the version."""
    for line in change_lines(applied.changes):
        print(line)
    pending, jobs = _next_lines(registry), registry.jobs()
    warn(*(f"next: {line}" for line in pending))
    if jobs and (pending or applied.changes):
        warn(worker_line(jobs))
    warn(f"registry version {applied.version}{'' if applied.changes else ': nothing changed'}")


def applied_json(applied: Applied, registry: "Registry") -> dict[str, object]:
    """The report as one JSON object."""
    return {
        "version": applied.version,
        "changes": list(applied.changes),
        "next": _next_lines(registry),
        "jobs": [{"job": job.job, "owner": job.owner, "alive": job.alive} for job in registry.jobs()],
    }


def _next_lines(registry: "Registry") -> list[str]:
    """The work that waits: of slots and products, and of entities that have another topic than they read."""
    stored = registry.snapshot()
    topics = {entity.name: entity.topic for entity in stored.entities}
    boundaries = registry.epochs(sorted(topics.values()), sorted(topics))
    return [*pending_lines(stored), *move_lines(topics, boundaries)]


def worker_line(jobs: Collection[JobStatus]) -> str:
    """Who does the work that an edit leaves: the job that runs, or the next one."""
    for job in jobs:
        if job.alive:
            return (
                f"the running job {job.job} ({job.owner}) takes this version before its next batch, and does the work"
            )
    return "no job runs: `statestore run` does the work, or `statestore backfill`, which reads no topics"


def wait_for_jobs(registry: "Registry", version: int, pause: Callable[[float], object] = sleep) -> int:
    """Waits until each job that runs now works by this version or a later one. Prints a line for each. Returns the exit status: 1
    if a job refused the version, or ended without it."""
    waiting, failed = {job.job for job in registry.jobs() if job.alive}, False
    while waiting:
        for job in (one for one in registry.jobs() if one.job in waiting):
            report = job.report or {}
            if (job.applied_version or 0) >= version:
                line = f"job {job.job} works by registry version {job.applied_version}"
            elif not job.alive:
                line, failed = f"job {job.job} ended before it took registry version {version}", True
            elif report.get("refused_version", 0) >= version:
                line, failed = str(report["refusal"]), True
            else:
                continue
            print_progress(line)
            waiting.discard(job.job)
        if waiting:
            pause(WAIT_SECONDS)
    return 1 if failed else 0
