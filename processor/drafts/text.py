"""Writes drafts of entities as entities.yaml: block style, with guesses and suggestions of joins in comments, and the comments of
the source as descriptions. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from processor.drafts.draft import DraftColumn, DraftEntity
from processor.drafts.yaml_words import comment, flow_list, flow_map, one_line, quoted, type_word, with_comment, word
from processor.records.entity import Compare, DeleteFlag


def entities_text(entities: Sequence[DraftEntity], header: Sequence[str]) -> str:
    """The text of the file. `header`: lines of comments at its top."""
    known = {entity.name: entity for entity in entities}
    blocks = ["\n".join(entity_lines(entity, known)) for entity in entities]
    return "\n".join(header) + "\n\n" + "\n\n".join(blocks) + "\n"


def entity_lines(entity: DraftEntity, known: Mapping[str, DraftEntity]) -> Iterator[str]:
    """The lines of an entity. One that cannot be declared is a comment. `known`: the entities that joins may name."""
    if line := comment(entity.note):
        yield line
    if not entity.is_whole:
        if line := comment(entity.comment):
            yield line
        if entity.refusal:
            yield comment(f"{entity.name}: not declared, because {entity.refusal}.")
            yield comment(
                f"Its topic is {entity.topic}. Let the connector leave out all of them but one (table.exclude.list)."
            )
            return
        why = "its key has a column without a type" if entity.key else "nothing shows its key"
        yield comment(f"{entity.name}, topic {entity.topic}: not declared, because {why}. Write:")
        key = flow_list(entity.key or ["COLUMN"])
        yield comment(f"{word(entity.name)}: {{topic: {word(entity.topic)}, key: {key}, columns: {{COLUMN: type}}}}")
        return
    yield f"{word(entity.name)}:"
    if text := one_line(entity.comment):
        yield f"  description: {quoted(text)}"
    if entity.topic != entity.name:
        yield f"  topic: {word(entity.topic)}"
    yield with_comment(f"  key: {flow_list(entity.key)}", _guess(entity.key_guess))
    yield "  columns:"
    for name, column in entity.columns.items():
        yield f"    {column_line(name, column)}"
    if entity.decimals:
        yield f"  decimals: {entity.decimals}"
    if entity.table:
        yield f"  table: {word(entity.table)}"
    if entity.deleted:
        yield f"  deleted: {_flags(entity.deleted)}"
    for reference in entity.references:
        if reference.links(entity, known.get(reference.parent)):
            on = flow_map(dict(zip(reference.parent_columns, reference.columns, strict=True)))
            join = f"join: {{one: {word(reference.parent)}, on: {on}}}"
            yield f"  {comment(f'{join} ({_guess(reference.guess)})' if reference.guess else join)}"


def _flags(flags: Sequence[DeleteFlag]) -> str:
    values = [f", values: {flow_list(flag.values)}" if flag.values else "" for flag in flags]
    texts = [f"{{column: {word(flag.column)}{end}}}" for flag, end in zip(flags, values, strict=True)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def column_line(name: str, column: DraftColumn) -> str:
    """`name: type`, or a mapping where the source says more: how it compares, that it has no null, and its comment as the
    description. The guess is behind it. A column without a type is a comment."""
    if not column.type:
        return comment(f"{word(name)}: {column.guess}")
    said = {"compare": compare_word(column.compare or ()), "description": quoted(one_line(column.comment))}
    more = [f"{name}: {text}" for name, text in said.items() if text not in ("[]", '""')]
    more[:0] = ["not_null: true"] if column.not_null else []
    written = f"{{{', '.join([f'type: {word(column.type)}', *more])}}}" if more else type_word(column.type)
    return with_comment(f"{word(name)}: {written}", _guess(column.guess))


def compare_word(compare: Compare) -> str:
    """How a column compares: one word, or a list."""
    return compare[0] if len(compare) == 1 else flow_list(compare)


def _guess(text: str) -> str:
    return f"guess: {text}" if text else ""
