"""Epoch boundaries. The registry only adds them: so a record has the same epoch in every run (rule 2 of docs/architecture.md)."""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, and_, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from registry.errors import EpochConflict
from registry.model import EpochBoundary
from registry.tables import epochs


def read(connection: Connection, topics: Collection[str], entities: Collection[str]) -> tuple[EpochBoundary, ...]:
    """The boundaries of these topics, and of every topic that these entities ever read, by topic, incarnation, partition and
    offset."""
    columns = (epochs.c.topic, epochs.c.topic_id, epochs.c.partition, epochs.c.from_offset)
    wanted = or_(epochs.c.topic.in_(topics), epochs.c.entity.in_(entities))
    rows = connection.execute(
        select(*columns, epochs.c.epoch, epochs.c.entity).where(wanted).order_by(*columns, epochs.c.epoch)
    )
    return tuple(EpochBoundary(**row) for row in rows.mappings())


def add(connection: Connection, boundaries: Iterable[EpochBoundary]) -> None:
    """Adds boundaries: all, or, when the transaction fails, none. A stored boundary stays. Where a partition was empty, two
    boundaries have one offset: the higher epoch counts.

    Raises:
        EpochConflict: the registry has a higher epoch at this place.
    """
    for one in boundaries:
        place = {
            "topic": one.topic,
            "topic_id": one.topic_id,
            "partition": one.partition,
            "from_offset": one.from_offset,
        }
        connection.execute(insert(epochs).values(**place, epoch=one.epoch, entity=one.entity).on_conflict_do_nothing())
        here = and_(*(epochs.c[name] == value for name, value in place.items()))
        highest = connection.execute(select(func.max(epochs.c.epoch)).where(here)).scalar_one()
        if highest > one.epoch:
            raise EpochConflict(
                f"topic {one.topic} ({one.topic_id}) partition {one.partition} from offset {one.from_offset} has "
                f"epoch {highest}, not {one.epoch}: epochs only rise, read them again"
            )
