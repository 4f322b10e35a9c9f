"""`statestore slots`: the board of the registry: slots, products that wait, jobs and walks."""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.watch import add_forms, print_state
from processor.environment.settings.open_registry import open_registry
from processor.text import column_widths, fitted, table_lines, visible
from processor.tools.inspect.board import board_json, pending_lines
from registry.model import AssignmentState, JobStatus, Progress, Snapshot

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
    header, *rows = fitted(_board_rows(snapshot))
    rule = ["-" * width for width in column_widths([header, *rows])]
    return "\n".join(table_lines([header, rule, *rows]))


def status_lines(snapshot: Snapshot, jobs: Iterable[JobStatus], walks: Iterable[Progress]) -> Iterator[str]:
    """The lines below the board: the work that waits, each job, and each walk that is not done."""
    board = board_json(snapshot, jobs, walks)
    yield from pending_lines(snapshot)
    yield from (_job_line(board["version"], job) for job in board["jobs"])
    yield from (_walk_line(walk) for walk in board["walks"] if not walk["done"])


def _board_rows(snapshot: Snapshot) -> list[list[str]]:
    """The rows of the board, the header first: entity, key, and GSI_1 up to the last slot in use.

    A cell has several lines: the columns joined by `#`, the state when it is not serving, and the joins. The key's cell holds
    its key reads, and below them each edge with its joins.
    """
    last = max((one.slot for one in snapshot.assignments), default=0)
    slots = range(1, last + 1)
    header = [["entity"], ["key"], *([f"GSI_{slot}"] for slot in slots)]
    rows = [
        [[entity["entity"]], _key_cell(entity), *(_slot_cell(entity, slot) for slot in slots)]
        for entity in board_json(snapshot)["entities"]
    ]
    return [["\n".join(cell) for cell in row] for row in [header, *rows]]


def _key_cell(entity: Mapping[str, Any]) -> list[str]:
    lines = ["#".join(entity["key"]), *entity["key_serves"]]
    for edge in entity["edges"]:
        lines += [f"edges {'#'.join(edge['fields'])}", *edge["serves"]]
    return lines


def _slot_cell(entity: Mapping[str, Any], slot: int) -> list[str]:
    assignment = next((one for one in entity["assignments"] if one["slot"] == slot), None)
    if assignment is None:
        return []
    state = [] if assignment["state"] == AssignmentState.SERVING else [f"({assignment['state']})"]
    return ["#".join(assignment["columns"]), *state, *assignment["serves"]]


def _job_line(version: int, job: Mapping[str, Any]) -> str:
    applied = job["applied_version"]
    if not job["alive"]:
        last = f", last version {applied}" if applied is not None else ""
        return f"job {job['job']}: does not run{last}"
    behind = f", and the registry has version {version}" if applied != version else ""
    return f"job {job['job']}: runs as {job['owner']}, by version {applied}{behind}"


def _walk_line(walk: Mapping[str, Any]) -> str:
    """How far a walk is. The rate is the mean since the walk began."""
    rows = f"{walk['rows']:,} of about {walk['of']:,} rows" if walk["of"] else f"{walk['rows']:,} rows"
    rate, left = walk["rows_per_second"], walk["seconds_left"]
    times = "" if rate is None else f", {rate:,.0f} rows/s"
    times += "" if left is None else f", about {timedelta(seconds=round(left))} left"
    return f"{walk['walk']}: {rows}, {walk['written']:,} written{times}"
