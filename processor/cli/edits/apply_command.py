"""`statestore apply` and `epoch`: store definitions in the registry, record the epochs of a topic."""

import argparse
import json
import sys
from collections.abc import Iterator

from processor.cli.arguments import add_why, reason
from processor.cli.options import (
    KAFKA,
    REGISTRY,
    add_definitions,
    add_settings,
    load_definitions,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.edit_report import applied_json, print_applied, user_name, wait_for_jobs
from processor.engine.plan.planning import check_after, plan_of, requirements_of
from processor.environment.settings.open_registry import open_registry
from processor.text import visible_line
from processor.tools.inspect.estimate import index_statistics
from processor.tools.inspect.preview import backfill_text, row_effects
from processor.tools.inspect.price_list import DEFAULT
from registry.edits.edit import plan_id
from registry.edits.operations import completed
from registry.errors import PlanOutdated
from registry.model import Snapshot, Statistics

CHANGED_ENTITY = (
    "documents over a changed entity stay as they are until one of their rows changes; `statestore republish PRODUCT` publishes "
    "all documents of a product again"
)


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    apply = verbs.add_parser("apply", help="validate definitions and store them, with slots for their joins")
    add_definitions(apply)
    apply.add_argument("--why", default="", help="the reason, for the registry's history")
    apply.add_argument("--plan", metavar="ID", help="make exactly the changes that `plan` showed with this id, or none")
    apply.add_argument(
        "--wait",
        action="store_true",
        help="wait until each running job works by the new version; 1 if a job refuses it or ends",
    )
    apply.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(apply, *REGISTRY)
    apply.set_defaults(run=run_apply)
    epoch = verbs.add_parser(
        "epoch", help="record that a topic was created again or got partitions (pause its producer)"
    )
    epoch.add_argument("topic", metavar="TOPIC")
    add_why(epoch)
    add_settings(epoch, *REGISTRY, *KAFKA)
    epoch.set_defaults(run=run_epoch)


def run_apply(options: argparse.Namespace) -> int:
    definitions = load_definitions(options)
    required = requirements_of(definitions)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        runs = check_after(definitions, settings.rejects_topic)
        effects: list[str] = []

        def check(before: Snapshot, after: Snapshot) -> None:
            if options.plan and options.plan != plan_id(after):
                raise PlanOutdated(options.plan)
            runs(before, after)
            effects.extend(_effect_lines(before, after, has_run, statistics))
            if not options.json:
                for line in effects:
                    print(visible_line(line), file=sys.stderr)

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
        print(CHANGED_ENTITY, file=sys.stderr)
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


def run_epoch(options: argparse.Namespace) -> int:
    from processor.job.kafka.admin import Admin
    from processor.job.run.topic_epochs import record_boundary

    why = reason(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        require_settings(settings, "bootstrap_servers")
        admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
        boundaries = record_boundary(registry, admin, options.topic, who=user_name(), why=why)
    for b in boundaries:
        print(f"{b.topic}/{b.partition}: epoch {b.epoch} from offset {b.from_offset}")
    return 0
