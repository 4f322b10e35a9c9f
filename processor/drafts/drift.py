"""Compares declared entities with a draft of the source: columns and tables that are new, gone, or of another kind. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from processor.drafts.draft import DraftColumn, DraftEntity
from processor.drafts.text import column_line, compare_word, entity_lines
from processor.records.column_types import parse_type
from processor.records.entity import Entity

_TAKEN = dict.fromkeys(("decimal", "float"), ("int", "decimal", "float"))
"""The source's types that fit a declared type of another name."""


def drift_lines(declared: Mapping[str, Entity], found: Sequence[DraftEntity], *, whole: Collection[str]) -> list[str]:
    """A line of a diff for each difference: `+` the source alone has it, `-` the file alone, `!` both, and differently. The topic
    says which entity is which. `whole`: the source shows all columns, and all topics that begin with one of these."""
    by_topic = {entity.topic: entity for entity in declared.values()}
    known = {entity.name: entity for entity in found}
    lines: list[str] = []
    for draft in found:
        entity = by_topic.pop(draft.topic, None)
        if entity is not None:
            lines += _entity_lines(entity, draft, bool(whole))
        elif draft.is_whole:
            lines += [f"+ {line}" for line in entity_lines(draft, known)]
    gone = {topic: entity for topic, entity in by_topic.items() if topic.startswith(tuple(whole))}
    lines += [f"- {entity.name}: the source has no table for topic {topic}" for topic, entity in gone.items()]
    return lines


def _entity_lines(entity: Entity, draft: DraftEntity, whole: bool) -> Iterator[str]:
    lines = list(_column_lines(entity, draft, whole))
    if draft.key and not draft.key_guess and set(draft.key) != set(entity.key):
        lines.append(f"!   key: [{', '.join(entity.key)}] here, [{', '.join(draft.key)}] in the source")
    if lines:
        yield f"  {entity.name}:"
        yield from lines


def _column_lines(entity: Entity, draft: DraftEntity, whole: bool) -> Iterator[str]:
    for name, column in draft.columns.items():
        if name not in entity.columns and column.type:
            yield f"+     {column_line(name, column)}"
        elif name in entity.columns and _differs(entity, name, column):
            yield f"!     {name}: {entity.columns[name]} here, {column.type} in the source"
        elif name in entity.columns and column.compare not in (None, entity.columns[name].compare):
            here, there = map(compare_word, (entity.columns[name].compare, column.compare or ()))
            yield f"!     {name}: compare is {here} here, {there} in the source"
    for name in entity.columns:
        if whole and name not in draft.columns:
            yield f"-     {name}: {entity.columns[name]}"


def _differs(entity: Entity, name: str, column: DraftColumn) -> bool:
    """Whether values of the source's type may not fit the declared one. A guess proves nothing."""
    if not column.type or column.guess:
        return False
    declared, found = entity.columns[name], parse_type(column.type)
    if declared.array != found.array or "json" in (declared.name, found.name):
        return declared.array != found.array and str(declared) != "json"
    return found.name not in _TAKEN.get(declared.name, (declared.name,))
