"""The slots board as JSON values: for each entity, the columns of its slots and the joins that they serve, then the work that
waits, the jobs and the walks. Pure; verbs and screens make text of it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from registry.edits.edit import waits_for
from registry.model import KEY, AssignedPath, Direction, JobStatus, Progress, Snapshot

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
