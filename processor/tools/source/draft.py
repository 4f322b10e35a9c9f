"""Drafts of definitions: what a source shows of its tables, and its text for entities.yaml and a product file. Pure.

A source without foreign keys shows references by the names of its columns: `customer_id` refers to the key `id` of `customer`.

Entities are YAML in block style, with guesses and suggestions of joins in comments, and the comments of the source as
descriptions. A product is a root, and the joins between it and the entities that it refers to or that refer to it. Against
declared entities, the text is a diff.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from processor.language.product.join_fields import parse_compared, parse_element
from processor.values.entity import Compare, DeleteFlag, Entity, parse_type
from processor.values.record import Record
from statestore.values import MAX_COLUMNS

T = TypeVar("T")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class DraftColumn(NamedTuple):
    """A column of a draft."""

    type: str
    """The text of its type; empty: the source shows none."""
    guess: str = ""
    """Why the type may be another one."""
    comment: str = ""
    not_null: bool = False
    """A null of the connector means a value that it did not send."""
    compare: Compare | None = None
    """How the source compares its text; None: the source does not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A foreign key: `columns` of the entity equal the key or a unique key of `parent`."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    guess: str = ""
    """Why it may be none."""

    def links(self, entity: "DraftEntity", parent: "DraftEntity | None") -> bool:
        """Whether a join can follow the key from its entity to its parent."""
        return (
            parent is not None
            and parent.is_whole
            and entity.declares(self.columns)
            and parent.declares(self.parent_columns)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEntity:
    """A table of the source, as entities.yaml may declare it."""

    name: str
    topic: str
    key: tuple[str, ...]
    """Empty: the source shows none."""
    columns: Mapping[str, DraftColumn]
    key_guess: str = ""
    """Why the key may be another one."""
    comment: str = ""
    note: str = ""
    """What the source is, or what it does not show."""
    decimals: str | None = None
    """`decimals` of the entity in entities.yaml."""
    unread: bool = False
    """No record of it is readable, and the note says why."""
    format: str = ""
    """`format` of the entity in entities.yaml."""
    table: str = ""
    """`table` of the entity in entities.yaml."""
    deleted: tuple[DeleteFlag, ...] = ()
    """`deleted` of the entity in entities.yaml."""
    references: tuple[ForeignKey, ...] = field(default=())
    refusal: str = ""
    """Why the entity cannot be declared, though its key is known."""
    samples: tuple[Record, ...] = ()
    """Records of its topic, of different kinds where the topic has them: a row, a delete, a record that changes no row."""

    @property
    def is_whole(self) -> bool:
        """Whether the entity can be declared: it has a key, and a type for each of its columns."""
        return not self.refusal and bool(self.key) and self.declares(self.key)

    def declares(self, names: Iterable[str]) -> bool:
        """Whether each of these columns can be declared."""
        return all(self.columns.get(name, DraftColumn("")).type for name in names)


def legal_name(text: str) -> str:
    """The text as the name of an entity or a topic: Debezium writes `_` for each other character, too."""
    name = _ILLEGAL.sub("_", text)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def short_names(topics: Iterable[str]) -> dict[str, str]:
    """The name of an entity for each topic: the part behind the last dot, or the whole topic where two have the same part."""
    known = list(topics)
    last = [topic.rpartition(".")[2] for topic in known]
    return {
        topic: legal_name(short if short and last.count(short) == 1 else topic)
        for topic, short in zip(known, last, strict=True)
    }


def distinct_names(wanted: Mapping[T, str]) -> dict[T, str]:
    """The wanted names, each once: a name that an earlier one has gets a number at its end."""
    names: dict[T, str] = {}
    taken = set(wanted.values())
    for one, name in wanted.items():
        first = name not in names.values()
        numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
        names[one] = name if first else next(other for other in numbered if other not in taken)
        taken.add(names[one])
    return names


def fit_limits(entity: DraftEntity) -> DraftEntity:
    """The entity as entities.yaml takes it: at most MAX_COLUMNS columns, with those of the key; key columns that compare; no
    type for a name that means the elements or the folded text of another column, or that has control characters."""
    columns = {
        name: DraftColumn("", "no column can have such a name")
        if parse_element(name) or parse_compared(name) or _CONTROL.search(name)
        else column
        for name, column in entity.columns.items()
        if name
    }
    for name in entity.key:
        if name in columns and columns[name].type and parse_type(columns[name].type).kind is None:
            guess = f"a key column cannot be {columns[name].type}"
            columns[name] = columns[name]._replace(type="string", guess=guess)
    if len(columns) > MAX_COLUMNS:
        others = [name for name in columns if name not in entity.key][: MAX_COLUMNS - len(entity.key)]
        kept = {*entity.key, *others}
        note = f"{entity.note}; {len(columns) - len(kept)} more columns are not declared".removeprefix("; ")
        columns = {name: column for name, column in columns.items() if name in kept}
        entity = replace(entity, note=note)
    return replace(entity, columns=columns)


def guess_references(entities: Sequence[DraftEntity]) -> list[DraftEntity]:
    """The entities with references by name: each column of a key with the name of its entity before it."""
    return [replace(entity, references=tuple(_references_by_name(entity, entities))) for entity in entities]


def _references_by_name(entity: DraftEntity, entities: Sequence[DraftEntity]) -> Iterator[ForeignKey]:
    for parent in entities:
        if not parent.is_whole or not entity.is_whole:
            continue
        for stem in dict.fromkeys((parent.name, parent.name.removesuffix("s"))):
            columns = tuple(f"{stem}_{name}" for name in parent.key)
            if all(
                column in entity.columns and _kind_of(entity, column) == _kind_of(parent, name) is not None
                for column, name in zip(columns, parent.key, strict=True)
            ):
                yield ForeignKey(columns=columns, parent=parent.name, parent_columns=parent.key, guess="by its name")
                break


def _kind_of(entity: DraftEntity, column: str) -> str | None:
    """The kind in which the values of a column compare; None where they do not, or where nothing shows the type."""
    found = entity.columns[column].type
    return parse_type(found).kind if found else None


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TYPE = re.compile(r"[a-z]+(\([a-z0-9,]+\))?(\[\])?")
_READ_OTHERWISE = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
WIDTH = 120
"""Characters of a comment; a longer one is cut."""


def word(text: str) -> str:
    """The text as a scalar, in quotes where YAML, or an older reader of YAML, takes it for something else."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _READ_OTHERWISE
    return text if plain else quoted(text)


def quoted(text: str) -> str:
    """The text as a scalar in quotes, each invisible sign as its escape."""
    return "".join(c if c.isprintable() else _escaped(c) for c in json.dumps(text, ensure_ascii=False))


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}" if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def type_word(text: str) -> str:
    """A column type as a scalar in block style."""
    return text if _TYPE.fullmatch(text) else word(text)


def flow_list(items: Iterable[str]) -> str:
    """`[a, b]`."""
    return f"[{', '.join(map(word, items))}]"


def flow_map(items: Mapping[str, str]) -> str:
    """`{a: b}`."""
    return f"{{{', '.join(f'{word(key)}: {word(value)}' for key, value in items.items())}}}"


def one_line(text: str) -> str:
    """The text in one line, with a blank for each other space and each invisible sign."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def comment(text: str) -> str:
    """`# text` in one line; without text nothing."""
    line = one_line(text)
    return f"# {line[:WIDTH]}{'...' if len(line) > WIDTH else ''}" if line else ""


def with_comment(line: str, text: str) -> str:
    """The line, and the comment behind it."""
    return f"{line}  {comment(text)}" if comment(text) else line


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
    yield with_comment(f"  key: {flow_list(entity.key)}", _guess_text(entity.key_guess))
    yield "  columns:"
    for name, column in entity.columns.items():
        yield f"    {column_line(name, column)}"
    if entity.format:
        yield f"  format: {entity.format}"
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
            yield f"  {comment(f'{join} ({_guess_text(reference.guess)})' if reference.guess else join)}"


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
    return with_comment(f"{word(name)}: {written}", _guess_text(column.guess))


def compare_word(compare: Compare) -> str:
    """How a column compares: one word, or a list."""
    return compare[0] if len(compare) == 1 else flow_list(compare)


def _guess_text(text: str) -> str:
    return f"guess: {text}" if text else ""


LIMIT = 100
"""The `limit` of a drafted list: a `many` without one grows with its rows."""


class _Link(NamedTuple):
    """A join of a draft: to `entity`, by `reference`, which `entity` has (`many`) or its parent has."""

    entity: str
    many: bool
    reference: ForeignKey


def product_name(root: str) -> str:
    """The name of the drafted product, which is no topic of an entity."""
    return f"{root}_document"


def most_joined(entities: Sequence[DraftEntity]) -> str:
    """The name of the whole entity that joins with the most others: the root of a first product. Raises ValueError for no whole
    entity."""
    whole = {entity.name: entity for entity in entities if entity.is_whole}
    return max(whole, key=lambda name: len({link.entity for link in _links(whole[name], whole)} - {name}))


def product_text(entities: Sequence[DraftEntity], root: str, depth: int, header: Sequence[str]) -> str:
    """The text of a product file with `depth` levels of joins below the root. Raises KeyError for a root that is no whole
    entity."""
    whole = {entity.name: entity for entity in entities if entity.is_whole}
    lines = [*header, f"product: {word(product_name(root))}", f"root: {word(root)}"]
    lines += _level(whole[root], whole, depth, ())
    return "\n".join(lines) + "\n"


def _level(
    entity: DraftEntity, whole: Mapping[str, DraftEntity], depth: int, above: tuple[_Link, ...]
) -> Iterator[str]:
    """The lines of a level: its fields, and its embeds. `above`: the joins that lead to the level. It does not go the last one
    back. Below a row that others refer to, too, it follows no list: that would be the rows of others, such as the mail of all
    customers of a shop."""
    columns = [name for name, column in entity.columns.items() if column.type]
    yield f"fields: {flow_list(columns)}"
    rose, back = any(not link.many for link in above), above[-1].reference if above else None
    links = [link for link in _links(entity, whole) if link.reference is not back and not (rose and link.many)]
    if depth < 1 or not links:
        return
    yield "embed:"
    taken = set(columns)
    for link in links:
        name = _free_name(link, taken)
        taken.add(name)
        yield f"  {word(name)}:"
        sides = (link.reference.columns, link.reference.parent_columns)
        on = dict(zip(*(sides if link.many else sides[::-1]), strict=True))
        yield f"    {'many' if link.many else 'one'}: {word(link.entity)}"
        guess = comment(f"guess: {link.reference.guess}" if link.reference.guess else "")
        yield f"    on: {flow_map(on)}{f'  {guess}' if guess else ''}"
        if link.many:
            yield f"    limit: {LIMIT}"
        yield from (f"    {line}" for line in _level(whole[link.entity], whole, depth - 1, (*above, link)))


def _links(entity: DraftEntity, whole: Mapping[str, DraftEntity]) -> Iterator[_Link]:
    """The joins of an entity: first to the rows that it refers to, then to the rows that refer to it."""
    for reference in entity.references:
        if reference.links(entity, whole.get(reference.parent)):
            yield _Link(reference.parent, False, reference)
    for child in whole.values():
        for reference in child.references:
            if reference.parent == entity.name and reference.links(child, entity):
                yield _Link(child.name, True, reference)


def _free_name(link: _Link, taken: set[str]) -> str:
    """The name of an embed: that of its entity; with its column where the name is taken."""
    column = "_".join(link.reference.columns)
    names = [link.entity, f"{link.entity}_by_{column}", *(f"{link.entity}_by_{column}_{n}" for n in range(2, 100))]
    return next(name for name in names if name not in taken)


_TAKEN = dict.fromkeys(("decimal", "float"), ("int", "decimal", "float"))
"""The source's types that fit a declared type of another name."""


def drift_lines(declared: Mapping[str, Entity], found: Sequence[DraftEntity], *, whole: Collection[str]) -> list[str]:
    """A line of a diff for each difference: `+` the source alone has it, `-` the file alone, `!` both, and differently. The topic
    says which entity is which, and the table where entities share it. `whole`: the source shows all columns, and all topics that
    begin with one of these."""
    left = dict(declared)
    known = {entity.name: entity for entity in found}
    lines: list[str] = []
    for draft in found:
        same = (name for name, one in left.items() if one.topic == draft.topic and _is_table(one.table, draft.table))
        entity = left.pop(next(same, ""), None)
        if entity is not None:
            lines += _drift_of_entity(entity, draft, bool(whole))
        elif draft.is_whole:
            lines += [f"+ {line}" for line in entity_lines(draft, known)]
    gone = [entity for entity in left.values() if entity.topic.startswith(tuple(whole))]
    lines += [f"- {entity.name}: the source has no table for topic {entity.topic}" for entity in gone]
    return lines


def _is_table(declared: str, seen: str) -> bool:
    """Whether a table may be the table that an entity declares. An entity without a table has all tables of its topic."""
    return not declared or not seen or f".{seen}".endswith(f".{declared}") or f".{declared}".endswith(f".{seen}")


def _drift_of_entity(entity: Entity, draft: DraftEntity, whole: bool) -> Iterator[str]:
    lines = list(_drift_of_columns(entity, draft, whole))
    if draft.key and not draft.key_guess and set(draft.key) != set(entity.key):
        lines.append(f"!   key: [{', '.join(entity.key)}] here, [{', '.join(draft.key)}] in the source")
    if lines:
        yield f"  {entity.name}:"
        yield from lines


def _drift_of_columns(entity: Entity, draft: DraftEntity, whole: bool) -> Iterator[str]:
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
