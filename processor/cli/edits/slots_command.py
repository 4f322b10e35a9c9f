"""`statestore slots`: the board of the registry: slots, products that wait, jobs and walks."""

import argparse
import json
from typing import TYPE_CHECKING

from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.watch import add_forms, print_state
from processor.settings.open_registry import open_registry
from processor.wording.text_table import column_widths, fitted, table_lines
from processor.wording.visible_text import visible
from registry.model import Snapshot
from registry.slot_board import board_json, board_rows, status_lines

if TYPE_CHECKING:
    from registry.repository import Registry


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "slots", help="show the slots of each entity with their joins, the products that wait, jobs and walks"
    )
    add_forms(parser)
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        return print_state(options, lambda: _print_board(registry, options))


def _print_board(registry: "Registry", options: argparse.Namespace) -> int:
    snapshot, jobs, walks = registry.snapshot(), registry.jobs(), registry.progress()
    if options.json:
        print(json.dumps(board_json(snapshot, jobs, walks), indent=2))
    else:
        lines = list(status_lines(snapshot, jobs, walks))
        print(visible("\n".join([board_text(snapshot), *([""] if lines else []), *lines])), flush=True)
    return 0


def board_text(snapshot: Snapshot) -> str:
    """The board of slots as a table, with a rule below its header."""
    header, *rows = fitted(board_rows(snapshot))
    rule = ["-" * width for width in column_widths([header, *rows])]
    return "\n".join(table_lines([header, rule, *rows]))
