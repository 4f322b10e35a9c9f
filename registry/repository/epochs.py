"""Epoch boundaries: only ever added, so that a record's epoch is the same in every run (DESIGN.md rule 2)."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, and_, func, select
from sqlalchemy.dialects.postgresql import insert

from registry.errors import EpochConflict
from registry.model import EpochBoundary
from registry.tables import epochs


def read(connection: Connection, topics: Collection[str]) -> tuple[EpochBoundary, ...]:
    """The boundaries of these topics, by topic, incarnation, partition and offset."""
    columns = (epochs.c.topic, epochs.c.topic_id, epochs.c.partition, epochs.c.from_offset)
    rows = connection.execute(
        select(*columns, epochs.c.epoch).where(epochs.c.topic.in_(topics)).order_by(*columns, epochs.c.epoch)
    )
    return tuple(EpochBoundary(**row) for row in rows.mappings())


def add(connection: Connection, boundaries: Iterable[EpochBoundary]) -> None:
    """Adds boundaries, all or, with the transaction, none; one that is there already is left. Where a partition was empty, two
    boundaries stand at one offset: the higher epoch counts.

    Raises:
        EpochConflict: a higher epoch is there.
    """
    for one in boundaries:
        place = {
            "topic": one.topic,
            "topic_id": one.topic_id,
            "partition": one.partition,
            "from_offset": one.from_offset,
        }
        connection.execute(insert(epochs).values(**place, epoch=one.epoch).on_conflict_do_nothing())
        here = and_(*(epochs.c[name] == value for name, value in place.items()))
        highest = connection.execute(select(func.max(epochs.c.epoch)).where(here)).scalar_one()
        if highest > one.epoch:
            raise EpochConflict(
                f"topic {one.topic} ({one.topic_id}) partition {one.partition} from offset {one.from_offset} has "
                f"epoch {highest}, not {one.epoch}: epochs only rise, read them again"
            )
