"""`statestore history`: who changed which entry of the registry, when and why; the newest version first."""

import argparse
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Any

from processor.cli.arguments import positive
from processor.cli.options import REGISTRY, add_settings, reachable_settings
from processor.cli.printing.visible_text import visible
from processor.settings.open_registry import open_registry
from processor.wording.first_of import shortened
from registry.model import HistoryEntry

LIMIT = 20
LONGEST = 40
"""Characters of an old or a new value in a line."""
OF_DATABASE = {"changed_version", "created_version"}
"""Columns that only triggers write."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("history", help="show who changed which entry of the registry, when and why")
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=LIMIT, help=f"the last N changed entries (default {LIMIT})"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each entry, with all its values")
    add_settings(parser, *REGISTRY)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        entries = registry.history(options.limit)
    if options.json:
        for entry in entries:
            print(json.dumps(asdict(entry) | {"at": entry.at.isoformat()}))
    else:
        print(visible("\n".join(history_lines(entries))))
    return 0


def history_lines(entries: Collection[HistoryEntry]) -> Iterator[str]:
    """The entries as text: a line for each version, and below it a line for each entry."""
    for version, changed in groupby(entries, key=lambda entry: entry.version):
        first, *others = changed
        yield f"version {version}, {first.at:%Y-%m-%d %H:%M:%S %Z}, {first.who}: {first.why or 'no reason given'}"
        yield from (f"  {_line(entry)}" for entry in (first, *others))


def _line(entry: HistoryEntry) -> str:
    old, new = entry.old or {}, entry.new or {}
    line = f"{entry.entry} {_name(entry.entry, new or old)}".rstrip()
    if entry.operation != "update":
        return f"{line}: {entry.operation}"
    changed = [name for name in new if name not in OF_DATABASE and old.get(name) != new[name]]
    return f"{line}: " + ", ".join(f"{name} {_short(old.get(name))} -> {_short(new[name])}" for name in changed)


def _name(entry: str, row: Mapping[str, Any]) -> str:
    match entry:
        case "assignments":
            return f"{row['entity']} GSI_{row['slot']} {'#'.join(row['columns'])}"
        case "joins":
            child, parent = (f"{row[side]}({', '.join(row[f'{side}_columns'])})" for side in ("child", "parent"))
            return f"{row['id']}, {child} = {parent}"
        case "access_paths":
            return f"of join {row['join_id']} {row['direction']}"
        case "product_joins" | "waiting_joins":
            return f"{row['product']}, join {row['join_id']}"
        case "epochs":
            return f"of {row['topic']}/{row['partition']}, epoch {row['epoch']} from offset {row['from_offset']}"
        case "replay_requests":
            return f"{row['id']}, a repair from the source"
        case "slots":
            return f"GSI_{row['slot']}"
    return str(row.get("name", ""))


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(text, LONGEST)
