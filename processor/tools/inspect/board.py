"""The registry as verbs and screens show it: the slots board as JSON values, and lines about the work that waits. Pure.

The board has, for each entity, the columns of its slots and the joins that they serve, then the jobs and the walks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from registry.edits.edit import path_text, served_joins
from registry.fields import shown_fields
from registry.model import (
    KEY,
    AssignedPath,
    Assignment,
    AssignmentState,
    Direction,
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
                        "serves": _serves(snapshot, entity.name, one),
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
