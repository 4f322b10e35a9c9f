"""`statestore local up|status|down`: the embedded parts, kept running between commands.

Results go to stdout (with `--json` one object), what happens meanwhile to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from processor.errors import PartError
from processor.local.parts import Addresses
from processor.local.standing import Status, down, status, up

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

DIRECTORY = Path(".statestore") / "local"
DONE, FAILED = 0, 1


def add_parser(subparsers: Subparsers) -> None:
    """Add the verb `local` with its three actions."""
    local = subparsers.add_parser("local", help="Kafka, Postgres and DynamoDB on this machine, for trying out")
    actions = local.add_subparsers(dest="action", required=True, metavar="up|status|down")
    for name, run, help_text in (
        ("up", run_up, "start the parts that do not run, print their addresses"),
        ("status", run_status, "print the addresses and which parts run; 1 unless all do"),
        ("down", run_down, "stop the parts, and remove what they kept"),
    ):
        action = actions.add_parser(name, help=help_text, description=help_text)
        action.add_argument("--dir", type=Path, default=DIRECTORY, help="where state and data are (%(default)s)")
        action.add_argument("--json", action="store_true", help="print one JSON object")
        action.set_defaults(run=run)


def run_up(args: argparse.Namespace) -> int:
    """Start what does not run, and print where the parts answer."""
    try:
        addresses = up(args.dir, _say)
    except PartError as error:
        return _fail(error)
    _print(args, asdict(addresses), _lines(addresses))
    return DONE


def run_status(args: argparse.Namespace) -> int:
    """Print where the parts answer and which live; 1 unless all do."""
    try:
        found = status(args.dir)
    except PartError as error:
        return _fail(error)
    if found is None:
        _print(args, {"up": False}, ["not up; start with: statestore local up"])
        return FAILED
    _print(args, {"up": found.whole, "alive": found.alive} | asdict(found.addresses), _status_lines(found))
    return DONE if found.whole else FAILED


def run_down(args: argparse.Namespace) -> int:
    """Stop the parts; done also where none ran."""
    try:
        stopped = down(args.dir, _say)
    except PartError as error:
        return _fail(error)
    _print(args, {"stopped": stopped}, ["stopped" if stopped else "nothing was up"])
    return DONE


def _lines(addresses: Addresses) -> list[str]:
    return [f"{name:<18} {value}" for name, value in asdict(addresses).items()]


def _status_lines(found: Status) -> list[str]:
    words = {True: "runs", False: "ended; `statestore local up` starts it again"}
    return [*_lines(found.addresses), *(f"{name:<18} {words[alive]}" for name, alive in found.alive.items())]


def _print(args: argparse.Namespace, value: dict[str, object], lines: list[str]) -> None:
    print(json.dumps(value) if args.json else "\n".join(lines))


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _fail(error: PartError) -> int:
    _say(str(error))
    return FAILED
