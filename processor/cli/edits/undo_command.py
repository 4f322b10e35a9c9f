"""`statestore undo VERSION`: new edits that put back the definitions and the pauses as they were before a version."""

import argparse
import sys

from processor.cli.arguments import add_why, positive, reason
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.edit_report import print_applied, user_name
from processor.environment.settings.resolve import open_registry
from processor.tools.operate.undo_version import plan_undo, undo
from registry.edits.edit import Signature


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("undo", help="put back the definitions and pauses as they were before a registry version")
    parser.add_argument("version", metavar="VERSION", type=positive, help="the version, as `history` shows it")
    add_why(parser)
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    by = Signature(user_name(), f"undo of version {options.version}: {reason(options)}")
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        plan = plan_undo(registry, options.version)
        applied = undo(registry, plan, settings.rejects_topic, by)
        for name in plan.kept:
            print(f"entity {name} stays as it is: other products and stored rows may need it", file=sys.stderr)
        print_applied(applied, registry)
    return 0
