"""The registry's words as plain values. Pure: knows no Postgres, and no other package's model.

An entity's and a product's `definition` is opaque here: JSON as the caller spells it, kept with the order of its
members.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

_ELEMENTS = re.compile(r"(.+?)\[\](?:\..+?)?(?:::\w+)?")
Direction = Literal["down", "up"]
"""`down`: from a parent's row to its children, asked of the child. `up`: from a child's row to its parents, asked of
the parent."""


class State(StrEnum):
    """Where an assignment stands in its life (`registry.lifecycle`). FREE is never stored: the assignment is gone."""

    PLANNED = "planned"
    WRITING = "writing"
    BACKFILLING = "backfilling"
    SERVING = "serving"
    RETIRING = "retiring"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """In rows of `entity`, slot `slot` (1 to n) holds `columns`, spelt in this order."""

    entity: str
    slot: int
    columns: tuple[str, ...]
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """An index on `columns` of `entity` that some join asks for. The order counts only when it is assigned for the
    first time.

    Raises:
        ValueError: no columns, or one twice.
    """

    entity: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise ValueError(f"an index on {self.entity} needs columns, each once: {self.columns}")


@dataclass(frozen=True, slots=True)
class KeyRead:
    """The other side's row is read by its primary key: no slot."""


KEY = KeyRead()


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRead:
    """The other side's rows are named by edge rows of the table, kept by these fields of `entity`: no slot. A field is a column,
    or the elements of one: `ids[]`, `inner[].id::number`."""

    entity: str
    fields: tuple[str, ...]


def column_of(field: str) -> str:
    """The column that a field reads."""
    elements = _ELEMENTS.fullmatch(field)
    return elements.group(1) if elements else field


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSpec:
    """One equality between two entities: `child.child_columns[i] = parent.parent_columns[i]` for each i.

    The pairs are kept sorted, so that one equality is one join, however it was written; `strong` makes it another one, which is
    answered without slots. A column may be elements of one (see `EdgeRead`).

    Raises:
        ValueError: no pairs, or sides of different lengths.
    """

    child: str
    child_columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    strong: bool = False

    def __post_init__(self) -> None:
        if not self.child_columns or len(self.child_columns) != len(self.parent_columns):
            raise ValueError(f"{self}: both sides of a join have the same number of columns, one at least")
        pairs = sorted(zip(self.child_columns, self.parent_columns, strict=True))
        object.__setattr__(self, "child_columns", tuple(child for child, _ in pairs))
        object.__setattr__(self, "parent_columns", tuple(parent for _, parent in pairs))

    def __str__(self) -> str:
        sides = f"{self.child}({', '.join(self.child_columns)}) = {self.parent}({', '.join(self.parent_columns)})"
        return f"{sides}, strong" if self.strong else sides

    def side(self, direction: Direction) -> tuple[str, tuple[str, ...]]:
        """The entity that is asked in this direction, and its columns."""
        return (self.child, self.child_columns) if direction == "down" else (self.parent, self.parent_columns)


Asked = Need | KeyRead | EdgeRead
Answer = Assignment | KeyRead | EdgeRead


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPaths:
    """What a join asks for, per direction: a key read, edges or an index."""

    join: JoinSpec
    down: Asked
    up: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAccess:
    """How the registry answers a join, per direction: a key read, edges or a slot."""

    join: JoinSpec
    down: Answer
    up: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityEntry:
    """A source table. `columns`: the declared type of each declared column, as text; `definition`: its JSON."""

    name: str
    topic: str
    key: tuple[str, ...]
    shards: int
    columns: Mapping[str, str]
    definition: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEntry:
    """A document definition and the joins that it stands on. `version`: 1 when first stored, one more with each
    change; what a caller hands in is ignored."""

    name: str
    topic: str
    root: str
    definition: Mapping[str, Any]
    joins: tuple[JoinSpec, ...]
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an apply asks for. `groups`: needs that should share one slot number, the most important group first;
    `paths`: one for each join of `products`. Entities and products that are not named stay as they are."""

    entities: tuple[EntityEntry, ...]
    products: tuple[ProductEntry, ...]
    paths: tuple[JoinPaths, ...]
    groups: Sequence[Sequence[Need]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole registry at one version. `slots`: n, of GSI_1..GSI_n. All parts are sorted by name (assignments by
    entity and slot)."""

    version: int
    slots: int
    entities: tuple[EntityEntry, ...]
    products: tuple[ProductEntry, ...]
    assignments: tuple[Assignment, ...]
    joins: tuple[JoinAccess, ...]

    def of(self, entity: str) -> tuple[Assignment, ...]:
        """The assignments of an entity, by slot."""
        return tuple(one for one in self.assignments if one.entity == entity)

    def edges(self) -> tuple[EdgeRead, ...]:
        """The edges that the joins keep, each once."""
        paths = (path for access in self.joins for path in (access.down, access.up))
        return tuple(dict.fromkeys(path for path in paths if isinstance(path, EdgeRead)))

    def access(self, join: JoinSpec) -> JoinAccess:
        """How a join is answered.

        Raises:
            KeyError: the registry does not know the join.
        """
        for one in self.joins:
            if one.join == join:
                return one
        raise KeyError(str(join))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What an apply did: the registry version afterwards, and the changes in words (none: nothing was written)."""

    version: int
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBoundary:
    """From `from_offset` on, records of this partition of this incarnation of the topic have `epoch`."""

    topic: str
    topic_id: str
    partition: int
    from_offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one run to write and publish for `job`. `generation` only rises; `publish_slots` is the highest
    number that any run of the job has used, so that all their producers can be fenced."""

    job: str
    generation: int
    owner: str
    publish_slots: int
