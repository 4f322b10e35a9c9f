"""The values of the registry: its content, the life of an assignment, and what jobs and operators leave in it. Pure: knows no
Postgres, and no other package's model.

The registry does not read the `definition` of an entity or a product: JSON of the caller, stored with the order of its members.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from registry.fields import shown_field, split_order

GATE = "publish"
"""The member of a product's definition that says when its documents go out."""
MAX_SLOTS = 20  # the most indexes that DynamoDB gives a table by default
FIRST_ORDERED = 17
"""From this slot on, the rows of a key may have an order in the slot's index."""
Direction = Literal["down", "up"]
"""`down`: from a parent's row to its children; the query reads the child. `up`: from a child's row to its parents; the query
reads the parent."""


class AssignmentState(StrEnum):
    """A state in the life of an assignment (`NEXT`). FREE is never stored: the assignment is gone."""

    PLANNED = "planned"
    WRITING = "writing"
    BACKFILLING = "backfilling"
    SERVING = "serving"
    RETIRING = "retiring"
    FREE = "free"


# The life of an assignment: the order of its states, and what jobs may do in each. The steps are those of the online index change
# of Google's F1. Before a step, every running job has applied the version of the step before it. So jobs use at most two
# neighbouring states at a time, and any two neighbours are safe together. Jobs write a slot before the backfill looks for rows
# without it, and still write it while jobs of the version before may read it.

NEXT: Final[Mapping[AssignmentState, frozenset[AssignmentState]]] = {
    AssignmentState.PLANNED: frozenset({AssignmentState.WRITING, AssignmentState.FREE}),
    AssignmentState.WRITING: frozenset({AssignmentState.BACKFILLING, AssignmentState.RETIRING}),
    AssignmentState.BACKFILLING: frozenset({AssignmentState.SERVING, AssignmentState.RETIRING}),
    AssignmentState.SERVING: frozenset({AssignmentState.RETIRING}),
    AssignmentState.RETIRING: frozenset({AssignmentState.FREE}),
    AssignmentState.FREE: frozenset({AssignmentState.PLANNED}),
}
"""The states that may follow each state. An assignment that an operator gives up before it serves goes to RETIRING, or, before
any job writes it, straight to FREE."""

_WRITTEN: Final = frozenset(
    {AssignmentState.WRITING, AssignmentState.BACKFILLING, AssignmentState.SERVING, AssignmentState.RETIRING}
)


def may_follow(before: AssignmentState, after: AssignmentState) -> bool:
    """True when an assignment may go from `before` to `after` in one step. The same state twice is no step."""
    return after in NEXT[before]


def writes(state: AssignmentState) -> bool:
    """True when a job must fill the slot in every row that it writes."""
    return state in _WRITTEN


def reads(state: AssignmentState) -> bool:
    """True when a job may answer a join through the slot."""
    return state is AssignmentState.SERVING


class Index(NamedTuple):
    """The join columns of `entity`, in this order. Elements of arrays have no index. Behind them, the terms of the order that the
    rows have in the index, if it has one (`registry.fields`)."""

    entity: str
    columns: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        """Whether the index has an order. A join reads such an index in place of another one, which it has too."""
        return bool(split_order(self.columns)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """In rows of `entity`, slot `slot` (1 to n) holds the key of `columns`, encoded in this order. A column may say how its text
    compares, `code::ci`: the slot then holds the folded text."""

    entity: str
    slot: int
    columns: tuple[str, ...]
    state: AssignmentState

    @property
    def index(self) -> Index:
        """The index that the slot is."""
        return Index(self.entity, self.columns)


# The access paths of a join to the rows of one of its sides. Definitions require paths, the registry assigns slots to them, and
# a job reads them. A key path or edge path is the same for all three; an index becomes an assignment, then a slot path.


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
class SlotPath:
    """A job queries this slot."""

    slot: int
    pinned: bool = True
    """For rows of one entity only; else for all rows that share the slot."""
    strangers: tuple[str, ...] = field(default=(), compare=False)
    """The entities because of which the query is not shared with those of its siblings."""


RequiredPath = KeyPath | EdgePath | Index
AssignedPath = KeyPath | EdgePath | Assignment
PlannedPath = KeyPath | EdgePath | SlotPath
P = TypeVar("P", covariant=True)
Q = TypeVar("Q")


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
        child, parent = (", ".join(map(shown_field, one)) for one in (self.child_columns, self.parent_columns))
        sides = f"{self.child}({child}) = {self.parent}({parent})"
        return f"{sides}, strong" if self.strong else sides

    def side(self, direction: Direction) -> Index:
        """The entity that queries in this direction read, and its columns."""
        if direction == "down":
            return Index(self.child, self.child_columns)
        return Index(self.parent, self.parent_columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAccess(Generic[P]):
    """The paths of a join, one per direction."""

    join: JoinSpec
    down: P
    up: P

    def paths(self) -> tuple[P, P]:
        """Both paths, down and up."""
        return self.down, self.up

    def map(self, answer: Callable[[P], Q]) -> "JoinAccess[Q]":
        """The same join with the answer for each path."""
        return JoinAccess(join=self.join, down=answer(self.down), up=answer(self.up))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityEntry:
    """A source table. The registry derives the layout and the dropped columns itself."""

    name: str
    topic: str
    key: tuple[str, ...]
    shards: int
    columns: Mapping[str, str]
    """Each declared column with its type, as text."""
    definition: Mapping[str, Any]
    """Its JSON."""
    layout: int = field(default=0, compare=False)
    """The registry version at which a slot or edges of its rows last became written, 0 for never."""
    dropped: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Columns that it declares no more, with the last type; stored rows may hold values of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEntry:
    """A document definition and its joins. The registry ignores version, `paused` and `retracted` of a caller."""

    name: str
    topic: str
    root: str
    definition: Mapping[str, Any]
    joins: tuple[JoinSpec, ...]
    version: int = 0
    """1 when first stored, one more with each change, and never the same for two contents of one name."""
    paused: bool = False
    """The job publishes nothing of it."""
    retracted: bool = False
    """All its documents become tombstones, then the job removes it."""

    @property
    def content(self) -> Mapping[str, Any]:
        """The definition of the documents: without the gate, which says when they go out."""
        return {name: value for name, value in self.definition.items() if name != GATE}

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of the groups whose documents they are; empty for the documents of rows."""
        root = self.definition.get("root")
        return tuple(root.get("by", ())) if isinstance(root, Mapping) else ()

    def entities(self) -> frozenset[str]:
        """The entities that the product reads."""
        return frozenset({self.root, *(one for join in self.joins for one in (join.child, join.parent))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The requirements of an apply. Other entities and products stay as they are."""

    entities: tuple[EntityEntry, ...]
    products: tuple[ProductEntry, ...]
    paths: tuple[JoinAccess[RequiredPath], ...]
    """The paths of each join of `products`."""
    groups: Sequence[Sequence[Index]]
    """Indexes that should share one slot number, the most important group first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole registry at one version. All parts are sorted by name (assignments by entity and slot)."""

    version: int
    slots: int
    """n, of GSI_1..GSI_n."""
    entities: tuple[EntityEntry, ...]
    products: tuple[ProductEntry, ...]
    """Those that jobs publish."""
    assignments: tuple[Assignment, ...]
    joins: tuple[JoinAccess[AssignedPath], ...]
    """The joins of products, live and waiting."""
    waiting: tuple[ProductEntry, ...] = ()
    """Those that go live, each with its version, once their slots and edges are full in all stored rows."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """The highest version of each product name, also of removed products."""
    numbers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(root entity, product) -> the number of its ledger entries, also of removed products."""
    paused: bool = False
    """Jobs read no batches."""
    paused_topics: tuple[str, ...] = ()
    """Topics of entities whose records jobs leave in Kafka."""

    def assignments_of(self, entity: str) -> tuple[Assignment, ...]:
        """The assignments of an entity, by slot."""
        return tuple(one for one in self.assignments if one.entity == entity)

    def edge_paths(self) -> tuple[EdgePath, ...]:
        """The edges that joins use, each once."""
        paths = (path for access in self.joins for path in access.paths())
        return tuple(dict.fromkeys(path for path in paths if isinstance(path, EdgePath)))

    def access(self, join: JoinSpec) -> JoinAccess[AssignedPath]:
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
    read the topic when the boundary was recorded. `at_end`: the partition ended at `from_offset` then, so the records of this
    epoch came later."""

    topic: str
    topic_id: str
    partition: int
    from_offset: int
    epoch: int
    entity: str = ""
    at_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """What outlives a run of a job. Times are in seconds since 1970. A run fails when an error ends it, or when it dies."""

    restarts: int = 0
    """How many runs ever failed. The job started again after each of them, or has yet to."""
    seen: int = 0
    """`restarts` as the last run found it at its start."""
    failed: int = 0
    """How many runs failed since a run last worked: it ended a batch, or had nothing to do."""
    since: float | None = None
    """When the first of these failed; None without one."""
    at: float | None = None
    """When the last of these failed."""
    text: str = ""
    """The message of its error."""
    worked_at: float | None = None
    """When a run last worked; None: none ever did, by this release."""
    last_failure: float | None = None
    """When a run failed last, also if a later one worked; None: none ever did, by this release."""
    last_text: str = ""
    """The message of its error."""

    @staticmethod
    def of(kept: Mapping[str, Any] | None) -> "PastRuns":
        """Those of JSON values, without what only a newer release knows."""
        return PastRuns(**{name: value for name, value in (kept or {}).items() if name in PastRuns.__slots__})

    def with_failure(self, at: float, text: str) -> "PastRuns":
        """After one more run that failed."""
        since = at if self.since is None else self.since
        failed = replace(self, restarts=self.restarts + 1, failed=self.failed + 1, since=since, at=at, text=text)
        return replace(failed, last_failure=at, last_text=text)

    def with_start(self) -> "PastRuns":
        """After the start of a run."""
        return replace(self, seen=self.restarts)

    def with_work(self, at: float) -> "PastRuns":
        """After a run worked: the failures before are over."""
        return replace(self, failed=0, since=None, at=None, text="", worked_at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one run to write and publish for `job`. `generation` only rises; `lanes` is the highest
    number that any run of the job has used, so that all their producers can be fenced."""

    job: str
    generation: int
    owner: str
    lanes: int
    past: PastRuns | None = field(default=None, compare=False, repr=False)
    """The runs before, as this run found them; None: a registry of an older release does not keep them."""
    charts: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    """The samples of the charts that the run before left in its report."""


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


# What jobs, operators and the schema itself show: no content of the registry.

How = Literal["stopped", "finished", "failed", "lost", "killed"]
"""stopped: an operator asked for it; finished: all records of a run with `--once` are processed; failed: an error ended the run,
or its start; lost: another run took its lease; killed: the run reported no end."""


class RunMark(NamedTuple):
    """What a registry knows of the runs of its jobs. `generation`: the highest; `run`, `round`: the last round whose end the
    table has, by the last report; `run` 0: none since the registry has its table."""

    generation: int
    run: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run of `owner` ended. `text`: the message of its error, with the cure; empty without an error. `at`: when; of a
    killed run its last heartbeat."""

    how: How
    owner: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job: its lease as it is now."""

    job: str
    owner: str | None
    """None after a release."""
    alive: bool
    """A run holds the lease and renewed it in time."""
    generation: int
    applied_version: int | None
    renewed_at: datetime
    acquired_at: datetime | None = None
    """When the last run began."""
    report: Mapping[str, Any] | None = None
    """The state of that run as it reported it last, JSON values; None before the first report."""
    report_age: float | None = None
    """In seconds, by the clock of Postgres."""
    ended: RunEnd | None = None
    """The end that the last run noted; of a job that lives, the end of the run before."""
    past: PastRuns = PastRuns()
    """What outlives its runs."""

    @property
    def last_end(self) -> RunEnd | None:
        """How the last run ended; None while it lives, and where no run noted it."""
        if self.alive or self.owner is None:
            return None if self.alive else self.ended
        return RunEnd(how="killed", owner=self.owner, text="", at=self.renewed_at)


RequestState = Literal["waiting", "withdrawn", "done"]


class LetterPosition(NamedTuple):
    """The position of the record that a dead letter keeps."""

    topic: str
    partition: int
    offset: int
    epoch: int


REFUSED: Final = "refused"
DROPPED: Final = "dropped"
"""The outcome of a letter that the replay refused, and of a letter that a person dropped."""
GONE: Final = "the topic of dead letters has this letter no more"
"""The reason of a replay that found no letter."""


class LetterOutcome(NamedTuple):
    """How the replay of a dead letter ended; `reason`: why the job refused it, without values of the record."""

    place: LetterPosition
    outcome: str
    reason: str = ""


RequestAct = Literal["replay", "drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """What a person asked for: that the job replays some dead letters, or that they are dropped. `letters`: how many it names;
    `ended`: how many of these have an outcome."""

    number: int
    who: str
    why: str
    at: datetime
    state: RequestState
    letters: int
    ended: int
    act: RequestAct = "replay"
    selection: str = ""
    """Which letters the person chose, in words; empty for single letters, and in requests of an older release."""
    ended_at: datetime | None = None
    """When the last of its letters had an outcome."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Outcome -> how many of its letters have it; only of requests that ended."""


class KeptLetter(NamedTuple):
    """A dead letter as the registry accounts for it, without values of its record. A record is one letter, however often a job
    refuses it."""

    place: LetterPosition
    mark: str
    """Tells the records apart that had this topic, partition and offset: a topic may be created again."""
    code: str
    column: str
    """That the reason names; empty where it names none."""
    entity: str
    at: float
    """When the job refused the record, in seconds since 1970."""


class WaitingGroup(NamedTuple):
    """The dead letters of a topic that wait, for one reason at one column. `oldest`, `newest`: when the first one was refused
    first, and when the last one was refused last, in seconds since 1970."""

    topic: str
    code: str
    column: str
    letters: int
    oldest: float
    newest: float


class LetterFilter(NamedTuple):
    """Selects dead letters of the account. None selects all. `since`, `until`: of when they were refused first, in seconds since
    1970, the second one excluded."""

    topic: str | None = None
    code: str | None = None
    column: str | None = None
    entity: str | None = None
    since: float | None = None
    until: float | None = None

    def __str__(self) -> str:
        named = ((name, getattr(self, name)) for name in ("topic", "code", "column", "entity"))
        words = [f"{name} {value or 'none'}" for name, value in named if value is not None]
        times = ((name, getattr(self, name)) for name in ("since", "until"))
        words += [
            f"{name} {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC" for name, at in times if at is not None
        ]
        return ", ".join(words) or "all that wait"


class WaitingLetters(NamedTuple):
    """The next dead letters of the oldest request that waits."""

    request: int
    places: tuple[LetterPosition, ...]


class ReplayRequests(Protocol):
    """The requests in the registry, as the job uses them."""

    def next_letters(self, most: int) -> WaitingLetters | None: ...

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityStatistics:
    """The number of an entity's rows, and the bytes of a sample of them, attribute names included. `entry_bytes`: the mean of
    what an index shows of a row, None for an entity without slots; `undeclared_bytes`: of the undeclared columns. Both are None
    where an older release took the statistics."""

    entity: str
    rows: int
    mean_bytes: float
    most_bytes: int
    entry_bytes: float | None = None
    undeclared_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStatistics:
    """The rows that a join finds in one direction. `mean`: rows per row of the other side, over a sample. `most`: the most rows
    of one value, of all values in the sample. `value`: the encoded key of that value, None where no row has one, or where an
    erasure took it."""

    join: JoinSpec
    direction: Direction
    mean: float
    most: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics at `taken_at`, of the joins whose sides have rows."""

    taken_at: datetime
    entities: tuple[EntityStatistics, ...]
    joins: tuple[JoinStatistics, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryState:
    """The registry's schema, and what a user may do there. Also reads a schema that this release cannot use."""

    now: float
    """The clock of Postgres, in seconds since 1970."""
    user: str
    """The role of the connection."""
    tls: bool
    """Whether the connection is encrypted."""
    exists: bool
    """Whether there is a registry."""
    release: int
    """The server's major version."""
    revision: str = ""
    known: bool = True
    """Whether this release knows the revision."""
    current: bool = True
    """Whether the revision is this release's own."""
    may_create: bool = True
    """Whether the user may create a schema."""
    missing: tuple[str, ...] = ()
    """The rights of a job that the user lacks, such as `INSERT on leases`."""


def json_text(value: Any) -> str:
    """The one text of a JSON value, as the registry stores it. Mappings of any kind become objects, in their own order, since a
    document's members come in the product's order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain, allow_nan=False)


def same_json(one: Any, other: Any) -> bool:
    """True when two JSON values are the same, the order of members included."""
    return json_text(one) == json_text(other)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value: {value!r}")
