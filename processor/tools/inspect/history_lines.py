"""The history of the registry in words: a line for each changed entry. Pure."""

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any

from processor.text import shortened
from registry.model import HistoryEntry

LONGEST = 40
"""Characters of an old or a new value in a line."""
OF_DATABASE = {"changed_version", "created_version"}
"""Columns that only triggers write."""


def history_lines(entries: Collection[HistoryEntry]) -> Iterator[str]:
    """The entries as text: a line for each version, and below it a line for each entry."""
    for version, changed in groupby(entries, key=lambda entry: entry.version):
        first, *others = changed
        yield f"version {version}, {first.at:%Y-%m-%d %H:%M:%S %Z}, {first.who}: {first.why or 'no reason given'}"
        yield from (f"  {entry_line(entry)}" for entry in (first, *others))


def entry_line(entry: HistoryEntry) -> str:
    """A changed entry in a line."""
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
