"""Walks: passes over all stored rows of an entity, in pages over several rounds. The job needs them after an edit of the
registry, because live work touches a row only when it changes, and after a truncate, which names no row.

    WALKS, fill#<entity>        every row follows the layout of the entity, and every index has shown all that products read there
    WALKS, publish#<product>    the job has published every root of this version of the product
    WALKS, truncate#<entity>    every row that is older than the last truncate is deleted, and its documents are published

A fill first writes the rows that follow an older layout, or show too few columns in the indexes. Then it *probes*: it asks the
indexes for every row, and keeps the rows that they do not show yet as `unseen`. W after the last evidence it is done. A fill
that is done stays true, since every run writes rows by the layout, and shows in the indexes what its products read there. A
plan that reads fewer columns shows fewer, so the goal of the fill shrinks with the plan. Where no index is late, a fill does
not probe.

The job publishes nothing of a product whose walk is *held*: live work drops its roots, and the walk finds all of them later.

A truncate is durable before its batch commits. While its walk runs, its delete markers may have unpublished former keys: a
crash, or a run that was given up, leaves them so. So a write of the entity looks for such keys from the truncate on, as from
its batch's start on. A truncate that comes meanwhile begins the walk again, and the walk remembers the first one for this. The
walk stays when it is done, because a dead letter that is older than the truncate may be replayed later.

A cursor moves when the round of its page has ended.

An item has `run`, that wrote it, and `walk` as JSON: the goal, the partitions of the table that remain, each with the sort key
after which it continues, and the rows that an index has yet to show.

The step `fill` fills one stored row: gives it the slots and edges of the entity's layout, shows in the indexes all that products
read there, and asks the indexes whether they show it.

    1. A row that follows an older layout, or shows too few columns in the indexes, is written under the version seen,
       with a count behind its version. Refused: the same with the row that the refusal returned. Live changes are
       newer than any fill, so the fill never overtakes them.
    2. To probe: a query in each slot, pinned to the row. The row is seen if every index shows it at the version in indexes
       that the fill found, or at a newer one.

A fill opens no change and publishes nothing. No product reads a slot before the fill of its entity is done.

The step `truncate_row` deletes one stored row that is older than a truncate of its table.

    1. A row that is older becomes a delete marker with the truncate's version, under the version seen. The write keeps the
       previous keys, as a delete does. Refused: the same with the row that the refusal returned.
    2. The step touches again a marker that a truncate since `goal.since` has left: a crash may have swallowed its documents.
    3. A newer row stays, and so does a marker from before: its documents are published.

An older change of the row then finds the marker, and does not bring the row back.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final, Literal, NamedTuple

from processor.engine.plan.plan import EntityPlan, Plan, ProductPlan
from processor.engine.plan.row_image import declared_row, deleted_image, layout_image
from processor.engine.plan.step import OVERSIZED, Lookup, RowKeys, Step, Touch
from processor.engine.protocol.ledger import group_partition
from processor.engine.protocol.pending import Moment, Turn, Turns, split
from registry.model import Progress
from statestore import keys
from statestore.items import JoinKey, Row, key_of_item, shows, slot_name, written_row
from statestore.keys import Key
from statestore.store import AbsentOrBelow, Delete, Done, Equals, Item, Query, Refused, Terminal, TooLarge, Write
from statestore.writes import former_totals, leaves_room, merge_image, write_image, write_note

PARTITION = keys.progress_partition("WALKS")

NEVER = "~"
"""Sorts above every version."""

WalkName = tuple[Literal["fill", "publish", "truncate"], str]
"""The kind of a walk, and its entity or product."""
UnseenRow = tuple[str, str, str]
"""A row, by partition and sort key, and the version that an index has yet to show."""


class FillGoal(NamedTuple):
    """The goal of a fill. `indexed`: the columns that the indexes show of each row, None for whole rows. `measured`: what totals
    have of each row, by the count with this number."""

    layout: int
    indexed: frozenset[str] | None
    measured: frozenset[str] = frozenset()
    number: int = 0

    def covers(self, other: "FillGoal") -> bool:
        """Whether each row that has reached this goal has reached the other one."""
        shows = self.indexed is None or (other.indexed is not None and other.indexed <= self.indexed)
        return shows and other.layout <= self.layout and other.measured <= self.measured


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
    if "measured" in goal:
        goal["measured"] = sorted(goal["measured"])
        goal = {name: value for name, value in goal.items() if value or name not in ("measured", "number")}
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
    measured, number = frozenset(goal.get("measured", ())), goal.get("number", 0)
    return ("fill", name), Walk(goal=FillGoal(goal["layout"], indexed, measured, number), unseen=unseen, **values)


PAGES_PER_ROUND = 4
UNSEEN_SECONDS = 0.5
"""Between two looks of a fill for rows that an index did not show."""
MOST_UNSEEN = 1_000
"""A fill takes no further page while the indexes lack this many rows of it. All of them fit into the item of the walk."""


@dataclass(slots=True, kw_only=True)
class Walks:
    """The walks of a job."""

    run: int
    """The run that writes them; it never overwrites those of a later run."""
    wait: float
    """W, in seconds."""
    probes: bool = True
    """Fills probe, because an index may be late."""
    rate: float = 0.0
    """The most rows in a second; 0 for any."""
    stopped: Collection[str] = ()
    """The products that failed in this run: their walks wait for the next run."""
    walks: dict[WalkName, Walk] = field(default_factory=dict)
    stuck: dict[WalkName, str] = field(default_factory=dict)
    """The walks that stopped in this run, with the reason."""
    shown_at: dict[WalkName, float] = field(default_factory=dict)
    """When fills got their last evidence, on the job's clock."""
    claimed: bool = False
    """This run has written all walks."""
    behind: bool = False
    """The job is far behind its topics, and publications wait until it has caught up."""
    moved: set[WalkName] = field(default_factory=set)
    """The walks that this run continued."""
    next_page: float = -inf
    """When the walks go on, on the job's clock."""

    @property
    def held(self) -> frozenset[str]:
        """The products of which the job publishes nothing for now."""
        return frozenset(name for (_, name), walk in self.walks.items() if walk.held)

    @property
    def truncates(self) -> dict[str, TruncateGoal]:
        """The truncates of the entities that had one."""
        return {name: walk.goal for (_, name), walk in self.walks.items() if isinstance(walk.goal, TruncateGoal)}

    def load(self, items: Iterable[Item]) -> None:
        """Takes the walks of earlier runs from the items of `PARTITION`."""
        self.walks.update(map(read_walk, items))

    def adopt(self, plan: Plan, now: float, date: float, is_empty: Callable[[str], bool]) -> list[Write | Delete]:
        """Takes the goals of a plan, before the first write by it; returns the requests that make them durable. A run writes
        all walks once, so that a zombie of an earlier run can write none. `now`: on the job's clock; `date`: in seconds since
        1970. `is_empty`: whether a partition of the table has no rows."""
        before, self.walks = self.walks, {}
        self.stuck, self.shown_at = {}, {}

        def new(goal: FillGoal | PublishGoal, partitions: Iterable[str]) -> Walk:
            left = {pk: None for pk in partitions if not is_empty(pk)}
            passes = 2 if isinstance(goal, FillGoal) and self.probes else 1
            return Walk(goal=goal, left=left, passes=passes, done=not left, began=int(date))

        for entity in plan.entities.values():
            if entity.slots or entity.edges:
                walk = before.get(("fill", entity.name))
                known = walk.goal if walk is not None else None
                goal = _fill_goal(entity, known, date)
                if walk is None or not isinstance(known, FillGoal) or not known.covers(goal):
                    walk = new(goal, entity.partitions())
                self.walks["fill", entity.name] = replace(walk, goal=goal)
                if not walk.done:
                    self._finish(("fill", entity.name), plan, now)
        for name, product in plan.products.items():
            version, walk = PublishGoal(product.version), before.get(("publish", name))
            if walk is None or walk.goal != version or (product.paused and not walk.held):
                partitions = _published_partitions(plan, product)
                walk = new(version, partitions)
                if product.paused or self.behind or not self._has_proof(plan, product):
                    walk = _held(walk, partitions)
            self.walks["publish", name] = walk
        self.walks |= {
            name: walk for name, walk in before.items() if name[0] == "truncate" and name[1] in plan.entities
        }
        self._begin(plan)
        gone = [
            Delete(key=walk_key(name), when=AbsentOrBelow("run", self.run + 1)) for name in before.keys() - self.walks
        ]
        changed = [name for name, walk in self.walks.items() if not self.claimed or before.get(name) != walk]
        self.claimed = True
        return [*map(self._write, changed), *gone]

    def begin_catch_up(self, plan: Plan, date: float) -> list[Write]:
        """Holds all products until `end_catch_up`; returns the writes that make that durable. The walks then begin at the first
        root."""
        self.behind = True
        names: list[WalkName] = []
        for name, product in plan.products.items():
            walk = self.walks["publish", name]
            if not walk.held:
                partitions = _published_partitions(plan, product)
                self.walks["publish", name] = _held(Walk(goal=walk.goal, left={}, began=int(date)), partitions)
                names.append(("publish", name))
        return [self._write(name) for name in names]

    def end_catch_up(self, plan: Plan) -> list[Write]:
        """Begins the publications that waited only because the job was behind; returns the writes."""
        self.behind = False
        return [self._write(name) for name in self._begin(plan)]

    def truncate(self, found: Iterable[tuple[str, str]], plan: Plan, date: float) -> list[Write]:
        """Begins the walks that delete the rows before truncates, pairs of entity and version; returns the writes that make
        them durable. A walk in progress begins again."""
        begun: dict[WalkName, None] = {}
        for entity, version in found:
            name: WalkName = ("truncate", entity)
            goal = self.truncates.get(entity, TruncateGoal(version))
            goal = TruncateGoal(max(goal.version, version), min(goal.since, version))
            left = dict.fromkeys(plan.entities[entity].partitions())
            self.walks[name] = Walk(goal=goal, left=left, began=int(date))
            begun[name] = None
        return [self._write(name) for name in begun]

    def turns(self, moment: Moment) -> Turns:
        """Ends fills, and then some pages, at the rate."""
        if ended := self.end_fills(moment.plan, moment.now):
            moment = yield Turn(requests=ended)
        if self.next_page <= moment.now and (pages := self.next()):
            yield Turn(split(pages, PAGES_PER_ROUND))

    def take(self, found: Iterable[tuple[str, str]], done: Iterable[WalkedPage], moment: Moment) -> list[Write]:
        """Takes truncates, as entity and version, and pages that tasks have processed."""
        truncates, walked = list(found), list(done)
        if walked:
            pause = sum(one.rows for one in walked) / self.rate if self.rate else 0.0
            unseen = UNSEEN_SECONDS if any(one.page.unseen for one in walked) else 0.0
            self.next_page = moment.now + max(pause, unseen)
        writes = self.truncate(truncates, moment.plan, moment.date) if truncates else []
        return [*writes, *self.advance(walked, moment.plan, moment.now)] if walked else writes

    def next_due(self) -> float | None:
        """When the next fill ends, or the walks go on."""
        dues = [at + self.wait for at in self.shown_at.values()]
        return min([*dues, self.next_page] if self.next() else dues, default=None)

    def next(self) -> list[WalkPage]:
        """The pieces of the next round; none of the products that are stopped."""
        pages: list[WalkPage] = []
        for name, walk in self._going():
            if walk.unseen:
                pages.append(WalkPage(name, unseen=walk.unseen))
            if len(walk.unseen) < MOST_UNSEEN:
                pages += [WalkPage(name, pk, after, walk.probes) for pk, after in walk.left.items()]
        return pages[:PAGES_PER_ROUND]

    def publishes(self) -> bool:
        """Whether the walk of a product that is not stopped still finds roots to publish."""
        return any(kind == "publish" for (kind, _), _ in self._going())

    def advance(self, walked: Iterable[WalkedPage], plan: Plan, now: float) -> list[Write]:
        """Takes the pieces of a round that has ended; returns the writes that make the progress durable."""
        moved: dict[WalkName, None] = {}
        for one in walked:
            name, page = one.page.walk, one.page
            if one.refused:
                self.stuck[name] = one.refused
                continue
            moved[name] = None
            walk = self.walks.pop(name)  # and puts it back at the end: the others get their turn first
            left = dict(walk.left)
            if page.pk:
                del left[page.pk]
                if one.after is not None:
                    left[page.pk] = one.after
            unseen = tuple(row for row in walk.unseen if row not in page.unseen) + one.unseen
            self.walks[name] = replace(
                walk, left=left, unseen=unseen, rows=walk.rows + one.rows, written=walk.written + one.written
            )
        self.moved.update(moved)
        for name in moved:
            self._finish(name, plan, now)
        return [self._write(name) for name in dict.fromkeys([*moved, *self._begin(plan)])]

    def end_fills(self, plan: Plan, now: float) -> list[Write]:
        """Ends the fills whose last evidence is W old; returns the writes that make that durable."""
        ended = [name for name, at in self.shown_at.items() if at + self.wait <= now]
        for name in ended:
            del self.shown_at[name]
            self.walks[name] = replace(self.walks[name], done=True)
        return [self._write(name) for name in [*ended, *self._begin(plan)]] if ended else []

    def counts(self) -> dict[str, int]:
        """The numbers of the counts, by entity."""
        goals = ((name, walk.goal) for (_, name), walk in self.walks.items())
        return {name: goal.number for name, goal in goals if isinstance(goal, FillGoal) and goal.measured}

    def proven(self, plan: Plan) -> frozenset[str]:
        """The entities whose rows all follow their layouts, and are shown by the indexes or open."""
        unfilled = [name for (kind, name), walk in self.walks.items() if kind == "fill" and not walk.done]
        return frozenset(plan.entities).difference(unfilled)

    def published(self, plan: Plan) -> frozenset[str]:
        """The products of which this version has published every root."""
        return frozenset(name for name in plan.products if self._is_done("publish", name))

    def progress(self, date: float) -> list[Progress]:
        """How far each walk is that has something to do, or had in this run; `of` is how often it reads each row. `date`: in
        seconds since 1970."""
        return [
            Progress(
                walk=" ".join(name),
                rows=walk.rows,
                written=walk.written,
                of=walk.passes,
                done=walk.done,
                seconds=max(0.0, date - walk.began),
            )
            for name, walk in self.walks.items()
            if not walk.done or name in self.moved
        ]

    def _going(self) -> Iterator[tuple[WalkName, Walk]]:
        """The walks that have something to do now."""
        for name, walk in self.walks.items():
            is_stopped = name[0] == "publish" and name[1] in self.stopped
            if not (walk.done or walk.held or name in self.stuck or is_stopped):
                yield name, walk

    def _is_done(self, kind: Literal["fill", "publish"], name: str) -> bool:
        walk = self.walks.get((kind, name))
        return walk is None or walk.done

    def _has_proof(self, plan: Plan, product: ProductPlan) -> bool:
        reads = {product.product.root, *(node.join.entity for node in product.nodes)}
        return all(self._is_done("fill", entity) for entity in reads)

    def _finish(self, name: WalkName, plan: Plan, now: float) -> None:
        """Takes the next phase of a walk without further pages."""
        walk = self.walks[name]
        if walk.left or walk.unseen:
            return
        if isinstance(walk.goal, TruncateGoal):
            self.walks[name] = replace(walk, done=True, goal=TruncateGoal(walk.goal.version))
        elif name[0] == "publish" or not (self.probes and plan.entities[name[1]].slots):
            self.walks[name] = replace(walk, done=True)
        elif walk.probes:
            self.shown_at[name] = now
        else:
            partitions = plan.entities[name[1]].partitions()
            self.walks[name] = replace(walk, probes=True, left=dict.fromkeys(partitions))

    def _begin(self, plan: Plan) -> Iterator[WalkName]:
        """Begins the held publications that may begin; returns them."""
        held = self.held
        begun: list[WalkName] = [
            ("publish", name)
            for name, product in plan.products.items()
            if not self.behind and name in held and not product.paused and self._has_proof(plan, product)
        ]
        for name in begun:
            self.walks[name] = replace(self.walks[name], held=False)
        return iter(begun)

    def _write(self, name: WalkName) -> Write:
        return write_walk(name, self.walks[name], self.run)


def _fill_goal(entity: EntityPlan, known: object, date: float) -> FillGoal:
    """The goal of a fill. `known`: that of the fill before. Another count begins where rows may have changed without the one
    before. Its number is above all earlier ones, also those of progress that a restored table has lost: the moment."""
    measured, before = entity.measured(), known if isinstance(known, FillGoal) else FillGoal(0, None)
    count = before.number if measured <= before.measured else max(before.number + 1, int(date * 1000))
    return FillGoal(entity.layout, entity.indexed, measured, count)


def _published_partitions(plan: Plan, product: ProductPlan) -> list[str]:
    """The partitions that hold the roots of a product, and then its ledger: the roots that had a document."""
    ledger = [group_partition(product.ledger)]
    return ledger if product.retracted else [*plan.entities[product.product.root].partitions(), *ledger]


def _held(walk: Walk, partitions: Iterable[str]) -> Walk:
    """The walk from the first root on, as soon as it may begin."""
    return replace(walk, left=dict.fromkeys(partitions), held=True, done=False)


class FilledRow(NamedTuple):
    """A row after its fill, None where it is gone. `former_keys`: join keys that it had before; `written`: whether the fill
    wrote it. `unseen`: the version that an index has yet to show, else empty. `refused`: why the row cannot be filled."""

    row: Row | None
    former_keys: frozenset[JoinKey] = frozenset()
    written: bool = False
    unseen: str = ""
    refused: str = ""

    @property
    def row_keys(self) -> RowKeys | None:
        """The row and its former keys, where the fill wrote it."""
        return (self.row, self.former_keys) if self.row is not None and self.written else None


def fill(item: Item | None, plan: EntityPlan, *, probe: bool, version: str = "") -> Step[FilledRow]:
    """Fills the row that `item` holds. `version`: which the indexes must show, empty for that of the row."""
    before = row = declared_row(item, plan) if item is not None else None
    written = False
    while row is not None and (image := layout_image(plan, row)):
        write = merge_image(image, row)
        outcome = (yield (write,))[0] if leaves_room(image, write) else TooLarge()
        match outcome:
            case TooLarge():
                return FilledRow(row, refused=OVERSIZED)
            case Refused(current):
                row = declared_row(current, plan) if current is not None else None
            case _:
                if former := former_totals(image, row):
                    yield former
                row, written = written_row(image, row), True
    former_keys = before.keys() - row.keys() if before is not None and row is not None else frozenset()
    if not probe or row is None:
        return FilledRow(row, former_keys, written)
    version = version or row.version_in_indexes()
    queries = [
        Query(slot_name(slot), key, row=row.key, name=_name_of(row, slot, key, plan))
        for slot, key in row.slots.items()
        if slot in plan.slots
    ]
    pages = yield tuple(Lookup(query, overlay=False) for query in queries)
    seen = all(shows(query, page, version) for query, page in zip(queries, pages, strict=True))
    return FilledRow(row, former_keys, written, "" if seen else version)


def _name_of(row: Row, slot: int, key: str, plan: EntityPlan) -> str:
    """The name of a row in the index of a slot; empty for that of its key. A row without a key has no place in an order."""
    if slot not in plan.orders or row.columns is None or keys.is_no_key(key):
        return ""
    return plan.names_of(row.key, row.columns)[slot]


def fill_again(key: Key, plan: EntityPlan, *, version: str) -> Step[FilledRow]:
    """Fills a row that the indexes did not show yet at this version."""
    (item,) = yield (key,)
    return (yield from fill(item, plan, probe=True, version=version))


def truncate_row(item: Item, plan: EntityPlan, goal: TruncateGoal, *, expires_at: int) -> Step[Touch | None]:
    """Deletes the row that `item` holds; returns None for a row that stays as it is. `expires_at`: when DynamoDB may drop the
    marker, in seconds since 1970."""
    row: Row | None = declared_row(item, plan)
    while row is not None and row.version <= goal.version:
        if row.columns is None:
            pending = frozenset((p.slot, p.key) for p in row.pending)
            touched = Touch(plan.name, row, pending, None, "replayed")
            return touched if row.version >= goal.since else None
        image = deleted_image(plan, row.key, goal.version, expires_at)
        former_keys = row.keys()
        if row.replayed or image.totals is not None:  # of a replay, its former keys may be unpublished
            write = merge_image(image, row)
            former_keys |= {(p.slot, p.key) for p in row.pending}
        else:
            write = write_image(image, below=goal.version)._replace(when=Equals("_v", row.version))
        (answer,) = yield (write,)
        match answer:
            case Done():
                return Touch(plan.name, written_row(image, row), former_keys, None, "applied")
            case Refused(current):
                row = declared_row(current, plan) if current is not None else None
            case TooLarge():
                raise Terminal(
                    f"{row.key.pk}: the delete marker of a row is larger than an item may be: please report this"
                )
    return None
