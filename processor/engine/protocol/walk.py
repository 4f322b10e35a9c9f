"""One walk: its goal and how far it is, as an item of the table, and the pages that rounds process.

WALKS, fill#<entity>        run: that wrote it; walk, as JSON: the goal, the partitions of the table that remain, each with the
WALKS, publish#<product>    sort key after which it continues, and the rows that an index has yet to show
WALKS, truncate#<entity>
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from statestore import keys
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import AbsentOrBelow, Item, Write
from statestore.writes import write_note

PARTITION = keys.progress_partition("WALKS")

NEVER = "~"
"""Sorts above every version."""

WalkName = tuple[Literal["fill", "publish", "truncate"], str]
"""The kind of a walk, and its entity or product."""
UnseenRow = tuple[str, str, str]
"""A row, by partition and sort key, and the version that an index has yet to show."""


class FillGoal(NamedTuple):
    """The goal of a fill. `indexed`: the columns that the indexes show of each row, None for whole rows."""

    layout: int
    indexed: frozenset[str] | None

    def covers(self, other: "FillGoal") -> bool:
        """Whether each row that has reached this goal has reached the other one."""
        shows = self.indexed is None or (other.indexed is not None and other.indexed <= self.indexed)
        return shows and other.layout <= self.layout


class PublishGoal(NamedTuple):
    """The goal of a publication: all documents are of this version of the product."""

    version: int


class TruncateGoal(NamedTuple):
    """The goal of a walk that deletes: no row is older than `version`, that of the last truncate. `since`: the version of the
    first truncate since the walk was done. Delete markers from there on may have unpublished former keys."""

    version: str
    since: str = NEVER


class WalkPage(NamedTuple):
    """The next piece of a walk: the rows of a partition behind the sort key `after` (None: from the first one), or some unseen
    rows. `probes`: the fill asks the indexes for them."""

    walk: WalkName
    pk: str = ""
    after: str | None = None
    probes: bool = False
    unseen: tuple[UnseenRow, ...] = ()


class WalkedPage(NamedTuple):
    """A piece that a task has processed. `after`: the sort key after which the walk continues, None at the end of the partition.
    `unseen`: its rows that the indexes do not show yet. `rows`: how many it had; `written`: how many of them the task wrote.
    `refused`: why a row cannot be filled, else empty."""

    page: WalkPage
    after: str | None
    rows: int
    written: int = 0
    unseen: tuple[UnseenRow, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A walk. `left`: the partitions that remain, with the sort key after which each continues, None at its start.
    `probes`: the fill has written all rows; `passes`: how often it reads each row. `rows`, `written`: counts so far. `began`:
    in seconds since 1970."""

    goal: FillGoal | PublishGoal | TruncateGoal
    left: Mapping[str, str | None]
    probes: bool = False
    passes: int = 1
    unseen: tuple[UnseenRow, ...] = ()
    rows: int = 0
    written: int = 0
    began: int = 0
    held: bool = False
    done: bool = False


_STORED: Final = {"probes": "verifies"}
"""Fields that have another name in the table."""


def walk_key(name: WalkName) -> Key:
    """The key of a walk's item."""
    return Key(PARTITION, "#".join(name))


def write_walk(name: WalkName, walk: Walk, run: int) -> Write:
    """The write that makes a walk durable; refused when a later run has written it."""
    goal: dict[str, Any] = walk.goal._asdict()
    if goal.get("indexed") is not None:
        goal["indexed"] = sorted(goal["indexed"])
    values = {_STORED.get(field, field): getattr(walk, field) for field in Walk.__slots__ if field != "goal"}
    return write_note(
        walk_key(name), {"run": run, "walk": json.dumps({"goal": goal, **values})}, when=AbsentOrBelow("run", run + 1)
    )


def read_walk(item: Item) -> tuple[WalkName, Walk]:
    """The walk that an item holds."""
    kind, name = key_of_item(item).sk.split("#", 1)
    values = json.loads(item["walk"])
    goal = values.pop("goal")
    values |= {field: values.pop(stored) for field, stored in _STORED.items() if stored in values}
    unseen = tuple((pk, sk, version) for pk, sk, version in values.pop("unseen"))
    if kind == "publish":
        return ("publish", name), Walk(goal=PublishGoal(goal["version"]), unseen=unseen, **values)
    if kind == "truncate":
        return ("truncate", name), Walk(goal=TruncateGoal(**goal), unseen=unseen, **values)
    indexed = None if goal["indexed"] is None else frozenset(goal["indexed"])
    return ("fill", name), Walk(goal=FillGoal(goal["layout"], indexed), unseen=unseen, **values)
