"""Guesses foreign keys by the names of columns: `customer_id` refers to the key `id` of `customer`. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from processor.drafts.draft import DraftEntity, ForeignKey
from processor.records.column_types import parse_type


def guess_references(entities: Sequence[DraftEntity]) -> list[DraftEntity]:
    """The entities with references by name: each column of a key with the name of its entity before it."""
    return [replace(entity, references=tuple(_references(entity, entities))) for entity in entities]


def _references(entity: DraftEntity, entities: Sequence[DraftEntity]) -> Iterator[ForeignKey]:
    for parent in entities:
        if not parent.is_whole or not entity.is_whole:
            continue
        for stem in dict.fromkeys((parent.name, parent.name.removesuffix("s"))):
            columns = tuple(f"{stem}_{name}" for name in parent.key)
            if all(
                column in entity.columns and _kind(entity, column) == _kind(parent, name) is not None
                for column, name in zip(columns, parent.key, strict=True)
            ):
                yield ForeignKey(columns=columns, parent=parent.name, parent_columns=parent.key, guess="by its name")
                break


def _kind(entity: DraftEntity, column: str) -> str | None:
    """The kind in which the values of a column compare; None where they do not, or where nothing shows the type."""
    found = entity.columns[column].type
    return parse_type(found).kind if found else None
