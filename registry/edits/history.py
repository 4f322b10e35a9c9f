"""Reads the history of the registry: what reverses a version, who paused a topic or a product, and where products of earlier
versions published. Pure.

The history says how the registry was before each version: newest first, each entry gives its old row back. An undo is a new edit.
It puts back definitions and pauses. It refuses steps of the job, slots, and products that a later edit changed again. The history
keeps each definition that was ever live.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from registry.errors import RegistryError
from registry.fields import shown_fields
from registry.model import AssignmentState, HistoryEntry, Snapshot, same_json

_TABLES = ("entities", "products", "waiting_products")
_Row = Mapping[str, Any]


class NoUndo(RegistryError):
    """The registry cannot reverse a version."""

    def __init__(self, version: int, reason: str) -> None:
        super().__init__(f"version {version} cannot be undone: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """The parts of an undo. `entities`, `products`: the definitions to apply, by name; `removed`: products that the version
    added; `paused`: of products, and of all work under None; `topics`: whether each is paused; `added`: entities that the version
    added, which stay."""

    entities: Mapping[str, Any] = field(default_factory=dict)
    products: Mapping[str, Any] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    paused: Mapping[str | None, bool] = field(default_factory=dict)
    topics: Mapping[str, bool] = field(default_factory=dict)
    added: tuple[str, ...] = ()


def reverse(stored: Snapshot, history: Sequence[HistoryEntry], version: int) -> Reversal:
    """Finds what reverses a version.

    Args:
        stored: the registry as it is.
        history: its entries, the newest first, back to `version` at least.

    Raises:
        NoUndo: the history has no such version, or it cannot be reversed.
    """
    changed = [entry for entry in history if entry.version == version]
    if not changed:
        raise NoUndo(version, "the history has no edit of this version")
    now = _rows(stored)
    after = _before(now, [entry for entry in history if entry.version > version])
    before = _before(after, changed)
    found: dict[str, Any] = {"entities": {}, "products": {}, "paused": {}, "topics": {}}
    for name in _names(changed, "entities"):
        _check_unchanged(version, f"entity {name}", after["entities"].get(name), now["entities"].get(name))
        if old := before["entities"].get(name):
            found["entities"][name] = old["definition"]
    removed = []
    for name in _names(changed, "products", "waiting_products"):
        old, new = _wanted(before, name), _wanted(after, name)
        _check_unchanged(version, f"product {name}", new, _wanted(now, name))
        if old is None:
            removed += [name] if new else []
        elif new is None or not same_json(old["definition"], new["definition"]):
            found["products"][name] = old["definition"]
        elif old["paused"] != new["paused"]:
            found["paused"][name] = old["paused"]
    for entry in changed:
        if entry.entry == "work" and entry.old and entry.new:
            if entry.old["paused"] != stored.paused:
                found["paused"][None] = entry.old["paused"]
            topics, changed_to = {*entry.old["paused_topics"]}, {*entry.new["paused_topics"]}
            differ = (topics ^ changed_to) & (topics ^ {*stored.paused_topics})
            found["topics"] |= {topic: topic in topics for topic in differ}
    if not any((*found.values(), removed)):
        raise NoUndo(version, _reason(stored, history, changed))
    added = tuple(name for name in _names(changed, "entities") if name not in before["entities"])
    return Reversal(**found, removed=tuple(removed), added=added)


def _rows(stored: Snapshot) -> dict[str, dict[str, _Row]]:
    """The rows of the registry, as far as an undo reads them."""
    return {
        "entities": {one.name: {"definition": one.definition} for one in stored.entities},
        "products": {
            one.name: {"definition": one.definition, "paused": one.paused, "retracted": one.retracted}
            for one in stored.products
        },
        "waiting_products": {one.name: {"definition": one.definition, "paused": one.paused} for one in stored.waiting},
    }


def _before(rows: Mapping[str, Mapping[str, _Row]], entries: Iterable[HistoryEntry]) -> dict[str, dict[str, _Row]]:
    """The rows before these entries, which come newest first."""
    found = {table: dict(rows[table]) for table in _TABLES}
    for entry in entries:
        if entry.entry in found:
            name = (entry.new or entry.old or {})["name"]
            if entry.old is None:
                found[entry.entry].pop(name, None)
            else:
                found[entry.entry][name] = entry.old
    return found


def _wanted(rows: Mapping[str, Mapping[str, _Row]], name: str) -> _Row | None:
    """The product that the registry asks for: the waiting version, else the live one unless it is retracted."""
    live = rows["products"].get(name)
    return rows["waiting_products"].get(name) or (live if live and not live.get("retracted") else None)


def _names(entries: Iterable[HistoryEntry], *tables: str) -> list[str]:
    return sorted({(one.new or one.old or {})["name"] for one in entries if one.entry in tables})


def _check_unchanged(version: int, entry: str, then: _Row | None, now: _Row | None) -> None:
    definitions = [row and row["definition"] for row in (then, now)]
    if not same_json(*definitions):
        raise NoUndo(version, f"a later edit changed {entry} again: undo that one first (`statestore history`)")


def _reason(stored: Snapshot, history: Sequence[HistoryEntry], changed: Sequence[HistoryEntry]) -> str:
    """Why a version without definitions and pauses cannot be reversed; of a move with the command that does it."""
    tables = {entry.entry for entry in changed}
    if "epochs" in tables:
        return "it recorded epochs of a topic, and a boundary never changes"
    if "replay_requests" in tables:
        return "it repaired rows from the source, whose values are right"
    if "slots" in tables:
        return "it added slots, and the table keeps their indexes; a slot that nothing uses costs nothing"
    if "entities" in tables:
        return "it only added entities, and an entity stays"
    if tables & {"products", "waiting_products"}:
        return "it only published the same documents again, or was a step of the job"
    for entry in changed:
        if entry.entry == "assignments" and entry.old is None and entry.new and entry.new["state"] == "planned":
            return _reverse_move(stored, history, entry.version, entry.new)
    return "it only changed slots: `statestore move` and `statestore retire` change these"


def _reverse_move(stored: Snapshot, history: Iterable[HistoryEntry], version: int, planned: _Row) -> str:
    """What reverses the move that planned this assignment. The columns were in the slot that the history had for them last."""
    entity, columns, target = planned["entity"], planned["columns"], planned["slot"]
    rows = (one.new or {} for one in history if one.version < version and one.entry == "assignments")
    same = (row["slot"] for row in rows if (row.get("entity"), row.get("columns")) == (entity, columns))
    held = next((slot for slot in same if slot != target), None)
    now = next((one for one in stored.assignments_of(entity) if one.slot == target), None)
    if held is None or now is None or list(now.columns) != columns:
        return f"it only changed slots, and GSI_{target} of {entity} holds something else now"
    back = (
        f"`statestore move {entity} GSI_{target} GSI_{held} --why REASON` moves it back"
        if now.state is AssignmentState.SERVING
        else f"`statestore retire {entity} GSI_{target} --why REASON` ends the move, which is not done"
    )
    return f"it moved {shown_fields(columns)} of {entity} from GSI_{held} to GSI_{target}, and {back}"


class PastProduct(NamedTuple):
    """A product as it once was: its name, its root, and the topic that it published to."""

    name: str
    root: str
    topic: str


def past_products(history: Iterable[HistoryEntry], entity: str) -> tuple[PastProduct, ...]:
    """The products that ever showed rows of an entity, by the history, the newest entry first, and each with every topic that it
    had. Leaves out a product that went after its tombstones."""
    found: dict[PastProduct, None] = {}
    for entry in reversed([one for one in history if one.entry == "products"]):
        for row in (entry.old, entry.new):
            if row is not None and _mentions(row["definition"], entity):
                found[PastProduct(row["name"], row["root"], row["topic"])] = None
        if entry.operation == "delete" and entry.old is not None and entry.old["retracted"]:
            found.pop(PastProduct(entry.old["name"], entry.old["root"], entry.old["topic"]), None)
    return tuple(sorted(found))


def _mentions(value: Any, entity: str) -> bool:
    """Whether a definition names the entity."""
    if isinstance(value, Mapping):
        return any(_mentions(one, entity) for one in value.values())
    if isinstance(value, list | tuple):
        return any(_mentions(one, entity) for one in value)
    return bool(value == entity)


class Pause(NamedTuple):
    """A pause of an operator that lasts: of a topic, or of the documents of a product. `why`: empty where the operator gave no
    reason."""

    kind: Literal["topic", "product"]
    name: str
    at: datetime
    who: str
    why: str

    @property
    def text(self) -> str:
        """Who paused it, when and why, for people."""
        return f"by {self.who} at {self.at:%Y-%m-%d %H:%M:%S %Z}" + (f": {self.why}" if self.why else "")


def current_pauses(stored: Snapshot, history: Sequence[HistoryEntry]) -> tuple[Pause, ...]:
    """The pauses of topics and products. Leaves out those whose begin the history does not have. `history`: the newest entry
    first."""
    products = sorted({one.name for one in (*stored.products, *stored.waiting) if one.paused})
    found = [
        *(_pause(history, "topic", name) for name in stored.paused_topics),
        *(_pause(history, "product", name) for name in products),
    ]
    return tuple(one for one in found if one is not None)


def last_pause(history: Iterable[HistoryEntry], product: str) -> str:
    """Who paused the product last, when and why, for people; empty where the history does not know. `history`: the newest entry
    first."""
    pause = _pause(history, "product", product)
    return pause.text if pause else ""


def _pause(history: Iterable[HistoryEntry], kind: Literal["topic", "product"], name: str) -> Pause | None:
    """The last begin of a pause."""
    begins = _begins_of_topic if kind == "topic" else _begins
    for entry in history:
        if begins(entry, name):
            return Pause(kind, name, entry.at, entry.who, entry.why or "")
    return None


def _begins(entry: HistoryEntry, product: str) -> bool:
    old, new = entry.old or {}, entry.new or {}
    named = entry.entry in ("products", "waiting_products") and new.get("name") == product
    return named and bool(new.get("paused")) and not old.get("paused")


def _begins_of_topic(entry: HistoryEntry, topic: str) -> bool:
    old, new = (topic in (row or {}).get("paused_topics", ()) for row in (entry.old, entry.new))
    return entry.entry == "work" and new and not old
