"""`statestore add-slots N`: gives the table more indexes, one after another, and then the registry more slots.

The registry's number rises last, so a job never uses an index that is not ready. A call that broke off changed indexes only, and
the next call continues.
"""

import argparse

from processor.cli.arguments import add_why, positive, reason
from processor.cli.options import REGISTRY, TABLE, add_settings, print_progress, reachable_settings
from processor.cli.printing.edit_report import print_applied, user_name
from processor.environment.settings.resolve import open_registry
from registry.edits import operations
from registry.edits.edit import Signature


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("add-slots", help="give the table and the registry more slots")
    parser.add_argument("number", metavar="N", type=positive, help="the new number of slots, at most 20")
    add_why(parser)
    add_settings(parser, *REGISTRY, *TABLE)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    why = reason(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        from processor.job.run.binding import widen_table

        operations.add_slots(registry.snapshot(), options.number)  # refuses a wrong number before the table changes
        widen_table(settings, registry, options.number, print_progress)
        print_applied(registry.operate(Signature(user_name(), why), operations.add_slots, options.number), registry)
    return 0
