"""The statistics of the state that the registry keeps: always one whole set, the last one."""

from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC

from sqlalchemy import delete, insert, select, text, update

from registry.model import EntityStatistics, JoinStatistics, Statistics
from registry.repository.connection import Database
from registry.repository.rows import join_ids
from registry.tables import entity_statistics, join_statistics

_LOCK = text("LOCK TABLE entity_statistics IN EXCLUSIVE MODE")
"""A second writer waits."""


class KeptStatistics:
    """The last statistics of the state; each method is one transaction, and no edit: the version stays."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> Statistics | None:
        """The last statistics, in the order of their names; None before the first."""
        with self._database.reading() as connection:
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

    def keep(self, taken: Statistics) -> None:
        """Replaces the last statistics. Leaves out joins that the registry no longer has."""
        with self._database.transaction() as connection:
            connection.execute(_LOCK)
            connection.execute(delete(entity_statistics))
            connection.execute(delete(join_statistics))
            for entity in taken.entities:
                connection.execute(insert(entity_statistics).values(taken_at=taken.taken_at, **asdict(entity)))
            ids = join_ids(connection)
            for one in (one for one in taken.joins if one.join in ids):
                found = {"direction": one.direction, "mean": one.mean, "most": one.most, "value": one.value}
                connection.execute(insert(join_statistics).values(join_id=ids[one.join], **found))

    def forget(self, values: Collection[str]) -> int:
        """Takes these encoded join keys out of the statistics; the counts stay. Returns how many joins had one of them."""
        named = join_statistics.c.value.in_(values)
        with self._database.transaction() as connection:
            connection.execute(_LOCK)
            return connection.execute(update(join_statistics).where(named).values(value=None)).rowcount
