"""`statestore local up|status|produce|down`: starts embedded parts that run on between commands, shows them, puts recorded topics
into their Kafka, stops them.

Results go to stdout (with `--json` one object), progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from processor.environment.embedded import BROKER, CONSOLE, OPENSEARCH, SERVER, Addresses, PartsStatus, down, status, up
from processor.environment.programs.program import LOCAL_DIR
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import KINDS, embedded_kind
from processor.errors import PartError
from processor.text import table_lines
from processor.values.recorded_topics import read_records

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

DONE, FAILED = 0, 1


def add_parser(subparsers: Subparsers) -> None:
    """Adds the verb `local` with its three actions."""
    local = subparsers.add_parser(
        "local",
        help="start, show, feed or stop embedded parts on this machine: Kafka and Postgres, or also the part of another store",
    )
    actions = local.add_subparsers(dest="action", required=True, metavar="up|status|produce|down")
    for name, run, help_text in (
        ("up", run_up, "start the parts that do not run, and print their addresses"),
        ("status", run_status, "print the addresses and which parts run; exit with 1 unless all run"),
        ("produce", run_produce, "put recorded topics into the Kafka that runs, and make the topics that it lacks"),
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
            text = "also start what `land` needs for documents in it: Postgres runs in any case"
            action.add_argument("--land", choices=(SERVER, OPENSEARCH), default=SERVER, help=text)
            text = "also start the screens of operators over these parts, and print their address"
            action.add_argument("--console", dest="more", action="append_const", const=CONSOLE, default=[], help=text)
        if name == "produce":
            action.add_argument("file", metavar="FILE", help="recorded topics; - for standard input")


def run_up(args: argparse.Namespace) -> int:
    """Starts the parts that do not run, and prints the addresses."""
    try:
        addresses = up(args.dir, _print_progress, args.store, [args.land, *args.more])
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


def run_produce(args: argparse.Namespace) -> int:
    """Puts the records of a file into the topics that they name, behind what these hold. The counts go to stdout."""
    from processor.job.run.feed import produce_records

    found = status(args.dir)
    if found is None or not found.alive[BROKER]:
        _print_progress("Kafka does not run; start it with `statestore local up`")
        return FAILED
    records = list(read_records(args.file))
    partitions: dict[str, int] = {}
    for record in records:
        partitions[record.topic] = max(record.partition + 1, partitions.get(record.topic, 1))
    produce_records(Settings(bootstrap_servers=found.addresses.bootstrap_servers), records, partitions)
    counts = dict(sorted(Counter(record.topic for record in records).items()))
    _print(args, {"records": counts}, list(table_lines([(topic, f"{n:,}") for topic, n in counts.items()], right=(1,))))
    return DONE


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
