"""What a source shows of its tables: the values between the readers of sources and the writers of definitions. Pure.

A source without foreign keys shows references by the names of its columns: `customer_id` refers to the key `id` of `customer`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from processor.language.product.join_fields import parse_compared, parse_element
from processor.values.column_types import parse_type
from processor.values.entity import Compare, DeleteFlag
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
    """Nobody can read any of its records, and the note says why."""
    table: str = ""
    """`table` of the entity in entities.yaml."""
    deleted: tuple[DeleteFlag, ...] = ()
    """`deleted` of the entity in entities.yaml."""
    references: tuple[ForeignKey, ...] = field(default=())
    refusal: str = ""
    """Why the entity cannot be declared, though its key is known."""

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
