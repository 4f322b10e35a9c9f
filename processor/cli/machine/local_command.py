"""`statestore local up|status|down`: starts embedded parts that run on between commands, shows them, stops them.

Results go to stdout (with `--json` one object), progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from processor.embedded.parts import Addresses
from processor.embedded.shared_parts import PartsStatus, down, status, up
from processor.errors import PartError
from processor.local.state import LOCAL_DIR
from processor.stores.kinds import KINDS, embedded_kind
from processor.text_table import table_lines

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

DONE, FAILED = 0, 1


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb `local` with its three actions."""
    local = subparsers.add_parser(
        "local",
        help="start, show or stop embedded parts on this machine: Kafka and Postgres, or also the part of another store",
    )
    actions = local.add_subparsers(dest="action", required=True, metavar="up|status|down")
    for name, run, help_text in (
        ("up", run_up, "start the parts that do not run, and print their addresses"),
        ("status", run_status, "print the addresses and which parts run; exit with 1 unless all run"),
        ("down", run_down, "stop the parts, and remove their data"),
    ):
        action = actions.add_parser(name, help=help_text, description=help_text)
        action.add_argument(
            "--dir", type=Path, default=LOCAL_DIR, help="directory of the parts and their data (%(default)s)"
        )
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=run)
        if name == "up":
            usual = embedded_kind().name
            text = f"where jobs keep their table ({usual} by default); a store with a part of its own also starts that"
            action.add_argument("--store", choices=tuple(KINDS), default=usual, help=text)


def run_up(args: argparse.Namespace) -> int:
    """Starts the parts that do not run, and prints the addresses."""
    try:
        addresses = up(args.dir, _print_progress, args.store)
    except PartError as error:
        return _fail(error)
    _print(args, addresses.named, _address_lines(addresses))
    return DONE


def run_status(args: argparse.Namespace) -> int:
    """Prints the addresses and which parts run. Returns 1 unless all run."""
    try:
        found = status(args.dir)
    except PartError as error:
        return _fail(error)
    if found is None:
        _print(args, {"up": False}, ["no part is running; start them with `statestore local up`"])
        return FAILED
    _print(args, {"up": found.all_alive, "alive": found.alive} | found.addresses.named, _status_lines(found))
    return DONE if found.all_alive else FAILED


def run_down(args: argparse.Namespace) -> int:
    """Stops the parts. Returns 0 also if none ran."""
    try:
        stopped = down(args.dir, _print_progress)
    except PartError as error:
        return _fail(error)
    _print(args, {"stopped": stopped}, ["stopped" if stopped else "no part was running"])
    return DONE


def _address_lines(addresses: Addresses) -> list[str]:
    return list(table_lines(list(addresses.named.items())))


def _status_lines(found: PartsStatus) -> list[str]:
    words = {True: "runs", False: "ended; `statestore local up` starts it again"}
    parts = [(name, words[alive]) for name, alive in found.alive.items()]
    return list(table_lines([*found.addresses.named.items(), *parts]))


def _print(args: argparse.Namespace, value: Mapping[str, object], lines: list[str]) -> None:
    print(json.dumps(value) if args.json else "\n".join(lines))


def _print_progress(message: str) -> None:
    print(message, file=sys.stderr)


def _fail(error: PartError) -> int:
    _print_progress(str(error))
    return FAILED
