"""`statestore apply`, `slots` and `epoch`: store definitions in the registry, show its slots, record the epochs of a topic."""

import argparse
import getpass
import json
import os
import sys

from processor.cli.options import add_definitions, add_settings, load_definitions, reachable_settings
from processor.job.open_registry import open_registry
from processor.plan.planning import check_after, requirements_of
from processor.text_table import column_widths, table_lines
from registry.model import Snapshot
from registry.slot_board import board_json, board_rows

UNCHANGED_DOCUMENTS = (
    "published documents stay as they are until one of their rows changes; while no job runs, `statestore verify --repair` "
    "publishes those that the edit makes different"
)


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    apply = verbs.add_parser("apply", help="validate definitions and store them, with slots for their joins")
    add_definitions(apply)
    apply.add_argument("--why", default="", help="the reason, for the registry's history")
    add_settings(apply)
    apply.set_defaults(run=run_apply)
    slots = verbs.add_parser(
        "slots", help="show the slots of each entity, their columns, and the joins that they serve"
    )
    slots.add_argument("--json", action="store_true", help="print one JSON object")
    add_settings(slots)
    slots.set_defaults(run=run_slots)
    epoch = verbs.add_parser(
        "epoch", help="record that a topic was created again or got partitions (pause its producer)"
    )
    epoch.add_argument("topic", metavar="TOPIC")
    add_settings(epoch)
    epoch.set_defaults(run=run_epoch)


def run_apply(options: argparse.Namespace) -> int:
    definitions = load_definitions(options)
    required = requirements_of(definitions)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        check = check_after(definitions, settings.rejects_topic)
        registry.migrate(settings.slots)
        applied = registry.apply(required, who=user_name(), why=options.why, check=check)
    for change in applied.changes:
        print(change)
    if any(": changed" in change for change in applied.changes):
        print(UNCHANGED_DOCUMENTS, file=sys.stderr)
    print(f"registry version {applied.version}{'' if applied.changes else ': nothing changed'}", file=sys.stderr)
    return 0


def user_name() -> str:
    """The user's name for the registry's history, or the number of a user without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def run_slots(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        snapshot = registry.snapshot()
    print(json.dumps(board_json(snapshot), indent=2) if options.json else board_text(snapshot))
    return 0


def run_epoch(options: argparse.Namespace) -> int:
    from processor.job.kafka.admin import Admin
    from processor.job.topic_epochs import record_boundary

    with reachable_settings(options) as settings, open_registry(settings) as registry:
        admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
        boundaries = record_boundary(registry, admin, options.topic)
    for b in boundaries:
        print(f"{b.topic}/{b.partition}: epoch {b.epoch} from offset {b.from_offset}")
    return 0


def board_text(snapshot: Snapshot) -> str:
    """The board of slots as a table, with a rule below its header."""
    header, *rows = board_rows(snapshot)
    rule = ["-" * width for width in column_widths([header, *rows])]
    return "\n".join(table_lines([header, rule, *rows]))
