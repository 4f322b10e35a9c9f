"""The registry's content as plain values. Pure: knows no Postgres, and no other package's model.

The registry does not read the `definition` of an entity or a product: JSON of the caller, stored with the order of its members.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

GATE = "publish"
"""The member of a product's definition that says when its documents go out."""
MAX_SLOTS = 20  # the most indexes that DynamoDB gives a table by default
Direction = Literal["down", "up"]
"""`down`: from a parent's row to its children; the query reads the child. `up`: from a child's row to its parents; the query
reads the parent."""


class AssignmentState(StrEnum):
    """A state in the life of an assignment (`registry.lifecycle`). FREE is never stored: the assignment is gone."""

    PLANNED = "planned"
    WRITING = "writing"
    BACKFILLING = "backfilling"
    SERVING = "serving"
    RETIRING = "retiring"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """In rows of `entity`, slot `slot` (1 to n) holds the key of `columns`, encoded in this order. A column may say how its text
    compares, `code::ci`: the slot then holds the folded text."""

    entity: str
    slot: int
    columns: tuple[str, ...]
    state: AssignmentState


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A join needs an index on `columns` of `entity`, in this order.

    Raises:
        ValueError: no columns.
    """

    entity: str
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError(f"an index on {self.entity} needs columns")


@dataclass(frozen=True, slots=True)
class KeyPath:
    """A job reads the other side's row by its primary key. This path needs no slot."""


KEY = KeyPath()


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgePath:
    """Edges of the table, by these fields of `entity`, name the other side's rows. This path needs no slot. A field is a column,
    or the elements of one: `ids[]`, `inner[].id::number`."""

    entity: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSpec:
    """One equality between two entities: `child.child_columns[i] = parent.parent_columns[i]` for each i.

    The pairs are sorted, so that one equality is one join, in whatever order its author writes it. `strong` makes it another
    join, which no slot answers. A column may be the elements of one (see `EdgePath`).

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
        """The entity that queries in this direction read, and its columns."""
        return (self.child, self.child_columns) if direction == "down" else (self.parent, self.parent_columns)


RequiredPath = Need | KeyPath | EdgePath
AssignedPath = Assignment | KeyPath | EdgePath


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPaths:
    """What a join needs, per direction: a key read, edges or an index."""

    join: JoinSpec
    down: RequiredPath
    up: RequiredPath


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAccess:
    """How the registry answers a join, per direction: a key read, edges or a slot."""

    join: JoinSpec
    down: AssignedPath
    up: AssignedPath


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityEntry:
    """A source table. `columns`: each declared column with its type, as text. `definition`: its JSON. The registry derives the
    rest. `layout`: the registry version at which a slot or edges of its rows last became written, 0 for never. `dropped`: columns
    that it declares no more, with the last type; stored rows may hold values of them."""

    name: str
    topic: str
    key: tuple[str, ...]
    shards: int
    columns: Mapping[str, str]
    definition: Mapping[str, Any]
    layout: int = field(default=0, compare=False)
    dropped: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEntry:
    """A document definition and its joins. `version`: 1 when first stored, one more with each change, and never the same for two
    contents of one name. `paused`: the job publishes nothing of it. `retracted`: all its documents become tombstones, then the
    job removes it. The registry ignores these three of a caller."""

    name: str
    topic: str
    root: str
    definition: Mapping[str, Any]
    joins: tuple[JoinSpec, ...]
    version: int = 0
    paused: bool = False
    retracted: bool = False

    @property
    def content(self) -> Mapping[str, Any]:
        """The definition of the documents: without the gate, which says when they go out."""
        return {name: value for name, value in self.definition.items() if name != GATE}

    def entities(self) -> frozenset[str]:
        """The entities that the product reads."""
        return frozenset({self.root, *(one for join in self.joins for one in (join.child, join.parent))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The requirements of an apply. `groups`: needs that should share one slot number, the most important group first; `paths`:
    one for each join of `products`. Other entities and products stay as they are."""

    entities: tuple[EntityEntry, ...]
    products: tuple[ProductEntry, ...]
    paths: tuple[JoinPaths, ...]
    groups: Sequence[Sequence[Need]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole registry at one version. `slots`: n, of GSI_1..GSI_n. All parts are sorted by name (assignments by
    entity and slot).

    `products`: those that jobs publish. `waiting`: those that go live, each with its version, once their slots and edges are
    full in all stored rows. `joins`: of both. `versions`: the highest version of each product name, also of removed products.
    `numbers`: (root entity, product) -> the number of its ledger entries, also of removed products.
    `paused`: jobs read no batches. `paused_topics`: of entities; jobs leave their records in Kafka.
    """

    version: int
    slots: int
    entities: tuple[EntityEntry, ...]
    products: tuple[ProductEntry, ...]
    assignments: tuple[Assignment, ...]
    joins: tuple[JoinAccess, ...]
    waiting: tuple[ProductEntry, ...] = ()
    versions: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    paused: bool = False
    paused_topics: tuple[str, ...] = ()

    def assignments_of(self, entity: str) -> tuple[Assignment, ...]:
        """The assignments of an entity, by slot."""
        return tuple(one for one in self.assignments if one.entity == entity)

    def edge_paths(self) -> tuple[EdgePath, ...]:
        """The edges that joins use, each once."""
        paths = (path for access in self.joins for path in (access.down, access.up))
        return tuple(dict.fromkeys(path for path in paths if isinstance(path, EdgePath)))

    def access(self, join: JoinSpec) -> JoinAccess:
        """The paths that answer a join. Raises KeyError for one that the registry does not know."""
        for one in self.joins:
            if one.join == join:
                return one
        raise KeyError(str(join))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of an edit: the registry version afterwards, and the changes as lines for people (none: it wrote nothing)."""

    version: int
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The registry's random identity, and the job and the table that belong to it; empty before the first start of a job."""

    identity: str
    job: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBoundary:
    """From `from_offset` on, records of this partition of this incarnation of the topic have `epoch`. `entity`: the entity that
    read the topic when the boundary was recorded."""

    topic: str
    topic_id: str
    partition: int
    from_offset: int
    epoch: int
    entity: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one run to write and publish for `job`. `generation` only rises; `lanes` is the highest
    number that any run of the job has used, so that all their producers can be fenced."""

    job: str
    generation: int
    owner: str
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One changed row of the registry. `entry`: its table; `operation`: insert, update or delete; `old`, `new`: the row."""

    version: int
    at: datetime
    who: str
    why: str | None
    entry: str
    operation: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a walk over stored rows is. `walk`: such as `fill star`; `rows`, `written`: rows read and written so far; `of`: the
    rows that the job expects, 0 if unknown; `seconds`: since it began."""

    walk: str
    rows: int
    written: int
    of: int
    done: bool
    seconds: float


class KnownLanding(NamedTuple):
    """A landing: a target that holds documents of a product. `id`: random, also kept in the target; `place`: its address, without
    user and password; `seen_at`: when a process of it ran last."""

    id: str
    product: str
    topic: str
    place: str
    made_at: datetime
    seen_at: datetime
