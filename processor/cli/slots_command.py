"""`statestore slots`: the board of the registry: slots, products that wait, jobs and walks."""

import argparse
import json
from contextlib import suppress
from datetime import datetime
from time import sleep
from typing import TYPE_CHECKING

from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.job.open_registry import open_registry
from processor.text_table import column_widths, fitted, table_lines
from registry.model import Snapshot
from registry.slot_board import board_json, board_rows, status_lines

if TYPE_CHECKING:
    from registry.repository import Registry

WATCH_SECONDS = 2


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "slots", help="show the slots of each entity with their joins, the products that wait, jobs and walks"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--watch", action="store_true", help=f"print again every {WATCH_SECONDS} s, until Ctrl-C")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        if options.json:
            print(json.dumps(board_json(registry.snapshot(), registry.jobs(), registry.progress()), indent=2))
        elif options.watch:
            _watch(registry)
        else:
            print(_board(registry))
    return 0


def _watch(registry: "Registry") -> None:
    with suppress(KeyboardInterrupt):
        while True:
            print(f"\n{datetime.now():%Y-%m-%d %H:%M:%S}\n{_board(registry)}", flush=True)
            sleep(WATCH_SECONDS)


def _board(registry: "Registry") -> str:
    snapshot = registry.snapshot()
    lines = list(status_lines(snapshot, registry.jobs(), registry.progress()))
    return "\n".join([board_text(snapshot), *([""] if lines else []), *lines])


def board_text(snapshot: Snapshot) -> str:
    """The board of slots as a table, with a rule below its header."""
    header, *rows = fitted(board_rows(snapshot))
    rule = ["-" * width for width in column_widths([header, *rows])]
    return "\n".join(table_lines([header, rule, *rows]))
