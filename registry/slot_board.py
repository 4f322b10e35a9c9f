"""The slots board: for each entity, the columns of its slots and the joins that they serve. Below them: the work that waits, the
jobs, and the walks. Pure; prints nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from registry.edits.edit import pending_lines, waits_for
from registry.model import KEY, AssignedPath, Direction, EntityEntry, JobStatus, Progress, Snapshot, reads

_DIRECTIONS: tuple[Direction, ...] = ("down", "up")


def board_rows(snapshot: Snapshot) -> list[list[str]]:
    """The rows of the board, the header first: entity, key, and GSI_1 up to the last slot in use.

    A cell has several lines: the columns joined by `#`, the state when it is not serving, and the joins. `down from user`
    answers the way from a user to its rows here, `up from star` the way from a star to its rows here. The key's cell holds
    its key reads, and below them each edge with its joins.
    """
    last = max((one.slot for one in snapshot.assignments), default=0)
    slots = range(1, last + 1)
    header = [["entity"], ["key"], *([f"GSI_{slot}"] for slot in slots)]
    rows = [
        [[entity.name], _key_cell(snapshot, entity), *(_slot_cell(snapshot, entity.name, slot) for slot in slots)]
        for entity in snapshot.entities
    ]
    return [["\n".join(cell) for cell in row] for row in [header, *rows]]


def status_lines(snapshot: Snapshot, jobs: Iterable[JobStatus], walks: Iterable[Progress]) -> Iterator[str]:
    """The lines below the board: the work that waits, each job, and each walk that goes on."""
    yield from pending_lines(snapshot)
    yield from (_job_line(snapshot, job) for job in jobs)
    yield from (_walk_line(walk) for walk in walks if not walk.done)


def board_json(snapshot: Snapshot, jobs: Iterable[JobStatus] = (), walks: Iterable[Progress] = ()) -> dict[str, Any]:
    """The board as JSON values: `{version, slots, paused, paused_topics, entities: [{entity, key, key_serves, assignments:
    [...]}], products, waiting, jobs, walks}`."""
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


def _walk_line(walk: Progress) -> str:
    """How far a walk is. The rate is the mean since the walk began."""
    rows = f"{walk.rows:,} of about {walk.of:,} rows" if walk.of else f"{walk.rows:,} rows"
    rate, left = _speed(walk)
    times = "" if rate is None else f", {rate:,.0f} rows/s"
    times += "" if left is None else f", about {timedelta(seconds=round(left))} left"
    return f"{walk.walk}: {rows}, {walk.written:,} written{times}"


def _speed(walk: Progress) -> tuple[float | None, float | None]:
    """The rows a second of a walk, and the seconds that it still needs; None where they are unknown."""
    rate = walk.rows / walk.seconds if walk.seconds > 0 and not walk.done else None
    return rate, max(walk.of - walk.rows, 0) / rate if rate and walk.of else None


def _job_line(snapshot: Snapshot, job: JobStatus) -> str:
    applied = job.applied_version
    if not job.alive:
        last = f", last version {applied}" if applied is not None else ""
        return f"job {job.job}: does not run{last}"
    behind = f", and the registry has version {snapshot.version}" if applied != snapshot.version else ""
    return f"job {job.job}: runs as {job.owner}, by version {applied}{behind}"


def _key_cell(snapshot: Snapshot, entity: EntityEntry) -> list[str]:
    lines = ["#".join(entity.key), *_serves(snapshot, entity.name, KEY)]
    for one in snapshot.edge_paths():
        if one.entity == entity.name:
            lines += [f"edges {'#'.join(one.fields)}", *_serves(snapshot, entity.name, one)]
    return lines


def _slot_cell(snapshot: Snapshot, entity: str, slot: int) -> list[str]:
    assignment = next((one for one in snapshot.assignments_of(entity) if one.slot == slot), None)
    if assignment is None:
        return []
    state = [] if reads(assignment.state) else [f"({assignment.state})"]
    return ["#".join(assignment.columns), *state, *_serves(snapshot, entity, assignment)]


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
