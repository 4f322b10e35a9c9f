"""Who paused a product last, by the history. Pure."""

from collections.abc import Iterable

from registry.model import HistoryEntry


def last_pause(history: Iterable[HistoryEntry], product: str) -> str:
    """Who paused the product last, when and why, for people; empty where the history does not know. `history`: the newest entry
    first."""
    for entry in history:
        if entry.entry in ("products", "waiting_products") and _begins(entry, product):
            return f"by {entry.who} at {entry.at:%Y-%m-%d %H:%M:%S %Z}" + (f": {entry.why}" if entry.why else "")
    return ""


def _begins(entry: HistoryEntry, product: str) -> bool:
    old, new = entry.old or {}, entry.new or {}
    return new.get("name") == product and bool(new.get("paused")) and not old.get("paused")
