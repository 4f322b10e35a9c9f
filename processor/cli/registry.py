"""`statestore apply`, `slots` and `epoch`: what the registry holds, and what an operator tells it."""

import argparse
import getpass
import json
import sys

from processor.cli.options import add_definitions, add_settings, addressed, definitions_of
from processor.planning import registry_plan


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    apply = verbs.add_parser("apply", help="validate definitions and store them, with slots for their joins")
    add_definitions(apply)
    apply.add_argument("--why", default="", help="kept in the registry's history")
    add_settings(apply)
    apply.set_defaults(run=run_apply)
    slots = verbs.add_parser("slots", help="the board: entity x slot, what each holds, which joins it serves")
    slots.add_argument("--json", action="store_true")
    add_settings(slots)
    slots.set_defaults(run=run_slots)
    epoch = verbs.add_parser("epoch", help="record that a topic was created anew or got partitions (producer paused)")
    epoch.add_argument("topic")
    add_settings(epoch)
    epoch.set_defaults(run=run_epoch)


def run_apply(options: argparse.Namespace) -> int:
    from registry.repository import Registry

    plan = registry_plan(definitions_of(options))
    with addressed(options) as settings, Registry(settings.registry, settings.registry_schema) as registry:
        registry.migrate(settings.slots)
        applied = registry.apply(plan, who=getpass.getuser(), why=options.why)
    for change in applied.changes:
        print(change)
    print(f"registry version {applied.version}{'' if applied.changes else ': nothing changed'}", file=sys.stderr)
    return 0


def run_slots(options: argparse.Namespace) -> int:
    from registry.board import board, board_json
    from registry.repository import Registry

    with addressed(options) as settings, Registry(settings.registry, settings.registry_schema) as registry:
        snapshot = registry.snapshot()
    print(json.dumps(board_json(snapshot), indent=2) if options.json else board(snapshot))
    return 0


def run_epoch(options: argparse.Namespace) -> int:
    from processor.kafka import Admin
    from processor.topics import record_boundary
    from registry.repository import Registry

    with addressed(options) as settings, Registry(settings.registry, settings.registry_schema) as registry:
        admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
        boundaries = record_boundary(registry, admin, options.topic)
    for b in boundaries:
        print(f"{b.topic}/{b.partition}: epoch {b.epoch} from offset {b.from_offset}")
    return 0
