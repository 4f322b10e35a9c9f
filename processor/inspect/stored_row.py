"""What the table knows of a stored row: the change that wrote it last, and why a column of it has no value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from processor.plan.declared_columns import declared_columns
from processor.plan.plan import EntityPlan
from registry.model import EpochBoundary
from statestore.item_attributes import version_of_item
from statestore.items import read_row
from statestore.store import Item
from statestore.versions import decode_version

FormerTopics = Mapping[tuple[str, int], str]
"""(entity, epoch) -> the topic that the entity read in this epoch. Without an entry, the entity's own topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The record that wrote a row last. A row keeps this position, and no time."""

    topic: str
    epoch: int
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}, epoch {self.epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyColumn:
    """A column of a row without a value. `why`: the record that left it so, or the reason that no record gave it one. `lost`: the
    row may have had a value, which `keep: declared` did not store."""

    column: str
    why: str
    lost: bool = False

    def __str__(self) -> str:
        return f"{self.column} ({self.why})"


def former_topics(boundaries: Iterable[EpochBoundary]) -> FormerTopics:
    """The topics of the entities by their epochs."""
    return {(boundary.entity, boundary.epoch): boundary.topic for boundary in boundaries if boundary.entity}


def origin_of(item: Item, entity: EntityPlan, topics: FormerTopics) -> Origin:
    """The record that wrote the row, or its delete marker."""
    return origin_at(version_of_item(item), entity, topics)


def absence_text(entity: EntityPlan, sk: str) -> str:
    """What can be the cause where the table has neither the row nor its delete marker. `sk`: the row's encoded key."""
    return (
        f"the table has no row {entity.name} {sk}: no record of it came from topic {entity.entity.topic}, "
        "`statestore rejects list` has it, or a delete or an erasure is long ago"
    )


def empty_columns(
    item: Item, entity: EntityPlan, columns: Iterable[str], topics: FormerTopics
) -> tuple[EmptyColumn, ...]:
    """Those of the columns that have no value in the row, in their order."""
    shown = declared_columns(item, entity) or {}
    return tuple(_empty_column(item, entity, name, topics) for name in columns if shown.get(name) is None)


def _empty_column(item: Item, entity: EntityPlan, column: str, topics: FormerTopics) -> EmptyColumn:
    row = read_row(item)
    if column in (row.columns or {}) or row.more.get(column, "") is None:
        wrote = origin_at(row.since.get(column, row.version), entity, topics)
        same = wrote.epoch == decode_version(row.version)[0]
        place = f"offset {wrote.offset}" if same else str(wrote)
        return EmptyColumn(column=column, why=f"null since {place} or longer")
    older = "the row is older than the declaration of the column"
    if column in row.more:
        return EmptyColumn(column=column, why=f"{older}, and its value has another type")
    if entity.entity.keeps_undeclared:
        return EmptyColumn(column=column, why="no record of the row had a value")
    cure = f"a new snapshot of topic {entity.entity.topic} brings it back"
    return EmptyColumn(column=column, why=f"{older}, and `keep: declared` did not store it: {cure}", lost=True)


def origin_at(version: str, entity: EntityPlan, topics: FormerTopics) -> Origin:
    """The record of a version of a row."""
    epoch, partition, offset = decode_version(version)
    topic = topics.get((entity.name, epoch), entity.entity.topic)
    return Origin(topic=topic, epoch=epoch, partition=partition, offset=offset)
