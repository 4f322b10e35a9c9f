"""The registry as verbs and screens show it: the slots board as JSON values, and lines about the work that waits. Pure.

The board has, for each entity, the columns of its slots and the joins that they serve, then the jobs and the walks.

Changes of the registry are text, too: what an apply adds or changes, with the differences of definitions, and the history.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby, zip_longest
from typing import Any, Literal

from processor.text import shortened
from registry.edits.edit import Edit, find_product, path_text, served_joins
from registry.edits.operations import WHY
from registry.fields import shown_fields, split_order
from registry.model import (
    KEY,
    AssignedPath,
    Assignment,
    AssignmentState,
    Direction,
    HistoryEntry,
    How,
    JobStatus,
    JoinAccess,
    JoinStatistics,
    ProductEntry,
    Progress,
    Snapshot,
    reads,
)

ENDS: Mapping[How, str] = {
    "stopped": "stopped on request",
    "finished": "finished all records (--once)",
    "failed": "ended with an error",
    "lost": "lost its lease to another run",
    "killed": "sent its last heartbeat",
}
"""How a run ended, in words."""

_DIRECTIONS: tuple[Direction, ...] = ("down", "up")


def board_json(snapshot: Snapshot, jobs: Iterable[JobStatus] = (), walks: Iterable[Progress] = ()) -> dict[str, Any]:
    """The board: `{version, slots, paused, paused_topics, entities: [{entity, key, key_serves, assignments:
    [...]}], products, waiting, jobs, walks}`. Of `serves`, `down from user` answers the way from a user to its rows here, and
    `up from star` the way from a star to its rows here."""
    return {
        "version": snapshot.version,
        "slots": snapshot.slots,
        "paused": snapshot.paused,
        "paused_topics": list(snapshot.paused_topics),
        "entities": [
            {
                "entity": entity.name,
                "key": list(entity.key),
                "key_serves": _serves(snapshot, entity.name, KEY),
                "edges": [
                    {"fields": list(one.fields), "serves": _serves(snapshot, entity.name, one)}
                    for one in snapshot.edge_paths()
                    if one.entity == entity.name
                ],
                "assignments": [
                    {
                        "slot": one.slot,
                        "columns": list(one.columns),
                        "state": str(one.state),
                        "serves": _serves(snapshot, entity.name, one) or _first_rows(snapshot, one),
                    }
                    for one in snapshot.assignments_of(entity.name)
                ],
            }
            for entity in snapshot.entities
        ],
        "products": [
            {"product": one.name, "version": one.version, "paused": one.paused, "retracted": one.retracted}
            for one in snapshot.products
        ],
        "waiting": [
            {"product": one.name, "version": one.version, "waits_for": waits_for(snapshot, one)}
            for one in snapshot.waiting
        ],
        "jobs": [
            {
                "job": job.job,
                "owner": job.owner,
                "alive": job.alive,
                "generation": job.generation,
                "applied_version": job.applied_version,
                "renewed_at": job.renewed_at.isoformat(),
            }
            for job in jobs
        ],
        "walks": [asdict(w) | dict(zip(("rows_per_second", "seconds_left"), _speed(w), strict=True)) for w in walks],
    }


def _speed(walk: Progress) -> tuple[float | None, float | None]:
    """The rows a second of a walk, and the seconds that it still needs; None where they are unknown."""
    rate = walk.rows / walk.seconds if walk.seconds > 0 and not walk.done else None
    return rate, max(walk.of - walk.rows, 0) / rate if rate and walk.of else None


def _serves(snapshot: Snapshot, entity: str, path: AssignedPath) -> list[str]:
    """The joins that read this entity through one assignment, its edges or its key: `up from pull_request, star`."""
    readers = {
        direction: sorted({reader for reader, used in _readers(snapshot, entity, direction) if used == path})
        for direction in _DIRECTIONS
    }
    return [f"{direction} from {', '.join(names)}" for direction, names in readers.items() if names]


def _first_rows(snapshot: Snapshot, one: Assignment) -> list[str]:
    """The joins whose first rows a slot with an order may find: those that have another slot by the same fields."""
    key, order = split_order(one.columns)
    readers = _readers(snapshot, one.entity, "down") if order else ()
    names = sorted({reader for reader, used in readers if isinstance(used, Assignment) and used.columns == key})
    return [f"first rows down from {', '.join(names)}"] if names else []


def _readers(snapshot: Snapshot, entity: str, direction: Direction) -> Iterator[tuple[str, AssignedPath]]:
    """The entities whose joins read `entity` in this direction, and the path of each."""
    for access in snapshot.joins:
        if access.join.side(direction)[0] != entity:
            continue
        asker = access.join.parent if direction == "down" else access.join.child
        yield asker, access.down if direction == "down" else access.up


def pending_lines(snapshot: Snapshot) -> Iterator[str]:
    """The pauses, and the next work of the job, product by product and slot by slot."""
    if snapshot.paused:
        yield "all work: paused, the job reads no batches until `statestore resume`"
    for topic in snapshot.paused_topics:
        yield f"topic {topic}: paused, the job reads no records of it until `statestore resume --topic {topic}`"
    for product in snapshot.waiting:
        yield f"product {product.name}: version {product.version} waits for {', '.join(waits_for(snapshot, product))}"
    for product in snapshot.products:
        if product.paused:
            yield f"product {product.name}: paused, the job publishes nothing of it until `statestore resume`"
        if product.retracted:
            yield f"product {product.name}: the job replaces its documents by tombstones, then removes it"
    for one in snapshot.assignments:
        if not reads(one.state):
            yield f"entity {one.entity}: GSI_{one.slot} {shown_fields(one.columns)} is {one.state}: {_next(one)}"


def waits_for(snapshot: Snapshot, product: ProductEntry) -> list[str]:
    """The slots that a waiting product needs and that do not serve yet. Where all of them serve: the look at stored rows."""
    served = served_joins(snapshot.joins)
    needed = [snapshot.access(join) for join in product.joins if join not in served]
    paths = dict.fromkeys(path for access in needed for path in access.paths())
    slots = [
        f"GSI_{path.slot} of {path.entity} ({path.state})"
        for path in paths
        if isinstance(path, Assignment) and not reads(path.state)
    ]
    return slots or [f"the check of each row of {', '.join(sorted(product.entities()))}"]


def _next(one: Assignment) -> str:
    """The next step of an assignment that does not serve."""
    if one.state is AssignmentState.RETIRING:
        return "the job frees it once no product uses it"
    return "the job fills it in stored rows, then it serves"


def joined_by(access: JoinAccess[AssignedPath]) -> str:
    """A join and its access paths, as text."""
    return f"{access.join}: {path_text(access)}"


def shown_value(found: JoinStatistics) -> str:
    """The value that most rows hold."""
    return "an erased value" if found.value is None and found.most else repr(found.value)


LONGEST = 60
"""Characters of a value of a definition in a line."""


def definition_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """The lines, such as `embed.stars.limit: 10 -> 20`. Both definitions as `describe_entity` and `describe_product` write them.
    No line: the definitions are the same."""
    yield from _changes("", old, new)


def _changes(place: str, old: Any, new: Any) -> Iterator[str]:
    one, other = _members(place, old), _members(place, new)
    if one is None or other is None:
        if old != new:
            yield f"{place}: {_text(old)} -> {_text(new)}"
        return
    for name in {**one, **other}:
        at = f"{place}.{name}" if place else name
        if name not in one:
            yield f"{at}: added, {_text(other[name])}"
        elif name not in other:
            yield f"{at}: removed, was {_text(one[name])}"
        else:
            yield from _changes(at, one[name], other[name])
    kept = zip_longest((name for name in one if name in other), (name for name in other if name in one))
    if place and any(before != after for before, after in kept):
        yield f"{place}: in another order"


def _members(place: str, value: Any) -> Mapping[str, Any] | None:
    """The members of a mapping, and of a list of `fields`, in which each column has its own name; None for other values."""
    if isinstance(value, list | tuple) and place.rpartition(".")[2] == "fields":
        return {name: name for name in value}
    return value if isinstance(value, Mapping) else None


def _text(value: object, longest: int = LONGEST) -> str:
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), longest)


EntryAction = Literal["add", "change", "withdraw"]
"""`withdraw`: a version that waits is dropped, because the definition is that of the live version again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEntry:
    """An entity or a product of an apply. `version`: of the product, 0 for an entity; `waits`: it goes live once its slots are
    full; `details`: what changes, of a changed entry."""

    kind: Literal["entity", "product"]
    name: str
    action: EntryAction
    version: int = 0
    waits: bool = False
    details: tuple[str, ...] = ()


def planned_entries(stored: Snapshot, change: Edit) -> Iterator[PlannedEntry]:
    """The entries of an edit that `registry.edits.apply` made, entities first."""
    known = {entity.name: entity for entity in stored.entities}
    for entity in change.entities:
        if old := known.get(entity.name):
            details = tuple(definition_changes(old.definition, entity.definition))
            yield PlannedEntry(kind="entity", name=entity.name, action="change", details=details)
        else:
            yield PlannedEntry(kind="entity", name=entity.name, action="add")
    for product in change.products:
        yield _product(stored, product, waits=False)
    for product in change.waiting:
        yield _product(stored, product, waits=True)
    put = {product.name for product in change.products}
    for one in stored.waiting:
        if one.name in change.withdrawn and one.name not in put:
            yield PlannedEntry(kind="product", name=one.name, action="withdraw", version=one.version)


def _product(stored: Snapshot, product: ProductEntry, *, waits: bool) -> PlannedEntry:
    old = find_product(stored.products, product.name) or find_product(stored.waiting, product.name)
    if old is None:
        return PlannedEntry(kind="product", name=product.name, action="add", version=product.version, waits=waits)
    details = tuple(definition_changes(old.definition, product.definition))
    if details and old.version == product.version:
        details = (*details, "the version stays, and no document goes out again")
    if old.retracted:
        details = (*details, f"version {old.version} is retracted")
    return PlannedEntry(
        kind="product",
        name=product.name,
        action="change",
        version=product.version,
        waits=waits,
        details=details or ("the entry of the registry differs from its definition",),
    )


LONGEST_OLD = 40
"""Characters of an old or a new value in a line."""
OF_DATABASE = {"changed_version", "created_version"}
"""Columns that only triggers write."""


MOST_ALIKE = 3
"""Entries of one table that a version names; it counts more of them."""


def history_lines(entries: Collection[HistoryEntry]) -> Iterator[str]:
    """The entries as text: a line for each version, and below it what it changed."""
    for one in versions_of(entries):
        yield f"version {one['version']}, {one['at']}, {one['who']}: {one['why'] or 'no reason given'}"
        yield from (f"  {line}" for line in one["lines"])


def versions_of(entries: Iterable[HistoryEntry]) -> Iterator[dict[str, Any]]:
    """The versions of these entries as JSON values: when, who, why, and what it changed, in words."""
    entries = list(entries)
    joins = {row["id"]: row for entry in entries if entry.entry == "joins" and (row := entry.new or entry.old)}
    for version, group in groupby(entries, key=lambda entry: entry.version):
        changed = list(group)
        first = changed[0]
        yield {
            "version": version,
            "at": f"{first.at:%Y-%m-%d %H:%M:%S %Z}",
            "who": first.who,
            "why": first.why or "",
            "of_job": first.why == WHY,
            "lines": list(_Version(changed, joins).lines()),
        }


class _Version:
    """What a version changed, in the words of `apply`: one line for a join with its slot, in place of an entry for each row of
    each table. `joins`: the rows of joins that the history has, by their id."""

    def __init__(self, entries: Sequence[HistoryEntry], joins: Mapping[int, Mapping[str, Any]]) -> None:
        self._entries, self._joins = entries, joins
        self._of = {name: [one for one in entries if one.entry == name] for name in {one.entry for one in entries}}

    def lines(self) -> Iterator[str]:
        """The lines: products, their joins, entities, slots, and the rest."""
        yield from self._products()
        yield from self._product_joins()
        yield from self._paths()
        yield from (line for one in self._take("entities") for line in _entity_lines(one))
        yield from map(_slot_line, self._take("assignments"))
        yield from self._work()
        if added := sorted((one.new or {})["slot"] for one in self._take("slots") if one.operation == "insert"):
            yield f"slots GSI_{added[0]} to GSI_{added[-1]} added" if len(added) > 1 else f"slot GSI_{added[0]} added"
        for name, same in groupby(self._rest(), key=lambda entry: entry.entry):
            first = list(same)
            yield from map(entry_line, first[:MOST_ALIKE])
            if len(first) > MOST_ALIKE:
                yield f"and {len(first) - MOST_ALIKE} more of {name}"

    def _take(self, name: str) -> list[HistoryEntry]:
        return self._of.pop(name, [])

    def _rest(self) -> list[HistoryEntry]:
        """The entries that no line has named. A path belongs to its join."""
        named = {"joins", "access_paths"} if self._named_joins else set[str]()
        left = [one for name, of in self._of.items() if name not in named for one in of]
        return sorted(left, key=self._entries.index)

    def _products(self) -> Iterator[str]:
        live = self._take("products")
        went_live = {(one.new or {}).get("name") for one in live}
        for one in live:
            yield from _product_lines(one)
        for one in self._take("waiting_products"):
            row = one.new or one.old or {}
            if one.operation == "insert":
                yield f"product {row['name']}: version {row['version']} waits until stored rows have its slots"
            elif one.operation == "delete" and row["name"] not in went_live:
                yield f"product {row['name']}: version {row['version']} waits no more"
            elif one.operation == "update":
                yield entry_line(one)

    def _product_joins(self) -> Iterator[str]:
        """A line for each join that a product has more or less than before."""
        both = [*self._take("product_joins"), *self._take("waiting_joins")]
        more = {self._join_of(one.new) for one in both if one.operation == "insert" and one.new}
        less = {self._join_of(one.old) for one in both if one.operation == "delete" and one.old}
        self._named_joins = bool(more or less)
        slots: dict[int, list[str]] = {}
        for path in self._of.get("access_paths", ()):
            row = path.new or {}
            if row.get("slot") is not None:
                slots.setdefault(row["join_id"], []).append(f"slot GSI_{row['slot']} of {row['entity']}")
        gone = {
            (one.old or {}).get("name")
            for one in self._entries
            if one.operation == "delete" and "products" in one.entry
        }
        for product, number in sorted(more - less):
            ways = ", ".join(dict.fromkeys(slots.get(number, ())))
            yield f"joined {self._child(number)} in {product}" + (f"; {ways}" if ways else "")
        for product, number in sorted(less - more):
            if product not in gone:
                yield f"{product} joins {self._child(number)} no more"

    @staticmethod
    def _join_of(row: Mapping[str, Any]) -> tuple[str, int]:
        return row["product"], row["join_id"]

    def _child(self, number: int) -> str:
        """The entity that a join brings into a document; its number where the history does not go back to it."""
        return str(self._joins[number]["child"]) if number in self._joins else f"entity of join {number}"

    def _paths(self) -> Iterator[str]:
        """A line for each join that has found rows by a slot, and finds them by another one now."""
        paths = self._take("access_paths")
        moved = [one for one in paths if one.old and one.new and one.old["slot"] != one.new["slot"]]
        for one in moved:
            row = one.new or {}
            before, now = (f"GSI_{at['slot']}" if at["slot"] else "no slot" for at in (one.old or {}, row))
            yield f"join of {self._child(row['join_id'])} reads {row['entity']} by {now}, before by {before}"
        if rest := [one for one in paths if one not in moved]:
            self._of["access_paths"] = rest

    def _work(self) -> Iterator[str]:
        for one in self._take("work"):
            old, new = one.old or {}, one.new or {}
            if old.get("paused") != new.get("paused"):
                yield "paused all work" if new.get("paused") else "resumed all work"
            before, after = set(old.get("paused_topics") or ()), set(new.get("paused_topics") or ())
            yield from (f"paused topic {name}" for name in sorted(after - before))
            yield from (f"resumed topic {name}" for name in sorted(before - after))


def _product_lines(one: HistoryEntry) -> Iterator[str]:
    """What became of a product."""
    old, new = one.old or {}, one.new or {}
    name = (new or old)["name"]
    if one.operation == "insert":
        yield f"product {name}: added, version {new['version']}"
    elif one.operation == "delete":
        yield f"product {name}: removed, was version {old['version']}"
    else:
        if old["version"] != new["version"]:
            yield f"product {name}: version {new['version']} took the place of {old['version']}"
        if old.get("paused", False) != new.get("paused", False):
            yield f"{'paused' if new['paused'] else 'resumed'} product {name}"
        if not old.get("retracted", False) and new.get("retracted", False):
            yield f"product {name}: leaves, with a tombstone for each document"
        yield from (f"product {name}: {line}" for line in definition_changes(old["definition"], new["definition"]))


def _entity_lines(one: HistoryEntry) -> Iterator[str]:
    """What became of an entity."""
    old, new = one.old or {}, one.new or {}
    if one.operation == "insert":
        yield f"entity {new['name']}: added, from topic {new['topic']}"
    elif one.operation == "delete":
        yield f"entity {old['name']}: removed"
    else:
        lines = [f"entity {new['name']}: {line}" for line in definition_changes(old["definition"], new["definition"])]
        yield from lines or [entry_line(one)]


def _slot_line(one: HistoryEntry) -> str:
    """What a slot of an entity holds, or in which state it is now."""
    old, new = one.old or {}, one.new or {}
    row = new or old
    slot = f"slot GSI_{row['slot']} of {row['entity']}"
    if one.operation == "delete":
        return f"{slot}: free, held {shown_fields(row['columns'])}"
    if one.operation == "insert":
        return f"{slot}: {'holds' if row['state'] == 'serving' else 'will hold'} {shown_fields(row['columns'])} ({row['state']})"
    return f"{slot}, {shown_fields(row['columns'])}: {old['state']} -> {row['state']}"


def entry_line(entry: HistoryEntry) -> str:
    """A changed entry in a line."""
    old, new = entry.old or {}, entry.new or {}
    line = f"{entry.entry} {_name(entry.entry, new or old)}".rstrip()
    if entry.operation != "update":
        return f"{line}: {entry.operation}"
    changed = [name for name in new if name not in OF_DATABASE and old.get(name) != new[name]]
    short = partial(_text, longest=LONGEST_OLD)
    return f"{line}: " + ", ".join(f"{name} {short(old.get(name))} -> {short(new[name])}" for name in changed)


def _name(entry: str, row: Mapping[str, Any]) -> str:
    match entry:
        case "assignments":
            return f"{row['entity']} GSI_{row['slot']} {shown_fields(row['columns'])}"
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
