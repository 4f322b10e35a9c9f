"""Statistics of the state: always one whole set, the last one. They are no edit of the registry."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC

from sqlalchemy import Connection, delete, insert, select, text, update

from registry.repository.rows import join_ids
from registry.state_statistics import EntityStatistics, JoinStatistics, Statistics
from registry.tables import entity_statistics, join_statistics


def keep(connection: Connection, statistics: Statistics) -> None:
    """Replaces the former statistics. Leaves out joins that the registry no longer has."""
    connection.execute(text("LOCK TABLE entity_statistics IN EXCLUSIVE MODE"))  # a second writer waits
    connection.execute(delete(entity_statistics))
    connection.execute(delete(join_statistics))
    for entity in statistics.entities:
        connection.execute(insert(entity_statistics).values(taken_at=statistics.taken_at, **asdict(entity)))
    ids = join_ids(connection)
    for one in (one for one in statistics.joins if one.join in ids):
        found = {"mean": one.mean, "most": one.most, "value": one.value}
        connection.execute(insert(join_statistics).values(join_id=ids[one.join], direction=one.direction, **found))


def read(connection: Connection) -> Statistics | None:
    """The statistics, in the order of their names; None where there are none."""
    rows = list(connection.execute(select(entity_statistics).order_by("entity")).mappings())
    if not rows:
        return None
    specs = {number: join for join, number in join_ids(connection).items()}
    found = [
        JoinStatistics(
            join=specs[row["join_id"]],
            direction=row["direction"],
            mean=row["mean"],
            most=row["most"],
            value=row["value"],
        )
        for row in connection.execute(select(join_statistics)).mappings()
    ]
    return Statistics(
        taken_at=rows[0]["taken_at"].astimezone(UTC),
        entities=tuple(
            EntityStatistics(**{name: value for name, value in row.items() if name != "taken_at"}) for row in rows
        ),
        joins=tuple(sorted(found, key=lambda one: (str(one.join), one.direction))),
    )


def forget(connection: Connection, values: Collection[str]) -> int:
    """Takes these encoded join keys out of the statistics; the counts stay. Returns how many joins had one of them."""
    connection.execute(text("LOCK TABLE entity_statistics IN EXCLUSIVE MODE"))  # a second writer waits
    named = join_statistics.c.value.in_(values)
    return connection.execute(update(join_statistics).where(named).values(value=None)).rowcount
