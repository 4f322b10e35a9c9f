"""What a round counts of its records, rows, requests and documents, as counters of a tally, and what follows from the counts.

The account: each record that a batch reads is applied, superseded, ignored or a dead letter.

Spending: what a store has spent so far: `request Query`, `retries Query`, `throttles Query` and `half units
Query`, for each name of DynamoDB's API. The difference of two moments goes from a task to the driver in the task's tally.

Stage times, in milliseconds: `write` and `publish` count the tasks of the two stages of a round, each task with its waiting for
answers: tasks that run side by side add up. BATCH counts whole micro-batches of a job.

Freshness: the age of a published document, as a histogram.

The age counts from Kafka's timestamp of the oldest record of the batch that led to the document, until the broker acknowledged
the document and committed its transaction. The clock of the publish task says when that was. The timestamp is the one that the
topic keeps (CreateTime or LogAppendTime), never a time in the source's row.

A tally holds the histogram: a counter for each bucket that is not empty, and the sum. So histograms add up over tasks, rounds
and a whole run like all counts. Does not: count documents that no record of their round led to: corrections, repairs, the
backlog, and the later pages of a fan-out.

The lag of an index, as answers showed it, as a histogram: an answer lags if it lacks an open change, or shows its row too old.
The age counts from the end of the round that wrote the row (of an earlier run: from the start of this run) to the end of the
round that got the answer. So an answer to the round that wrote the row has age 0. The histogram counts only answers that lag,
and a change counts once for each index and round.

`RowReads` decides which rows a task reads before it writes them: those of an entity with many updates that change nothing that
an index shows. A task that has read a row writes such an update without the indexes, and saves a write unit in each. The read
is weak, and costs a tenth of a write unit. Other ways to know the row cost more: a write under a condition on what the indexes
show takes the write units of the row again where DynamoDB refuses it. So that way is cheaper only where more than nine of ten
updates are such ones. The choice needs no memory: each run measures the share again.

`AbsentReport` says which declared columns the records of an entity lack: a column that the source renamed, dropped or does not
log is null in documents, unnoticed.

A record with a schema, and a record of Debezium, has each column of its table. So one such record without a column is proof. A
plain row may leave a column out, so only a long run of rows without a column that earlier rows had is a sign.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from processor.counts import IN_TOPIC, NULLED_OF, OUTCOMES, REQUEST, STAGE, Count, Outcome, Stage
from processor.engine.plan.step import Root, Touch
from processor.errors import AccountError, TooManyRejects
from processor.text import duration_text
from processor.values.dead_letters import LetterGroup
from processor.values.entity import AbsentChoice
from processor.values.record import AbsentColumns, Change
from statestore.store import Store

if TYPE_CHECKING:
    from processor.engine.plan.plan import Plan
    from processor.environment.settings.settings import BatchSettings

REASONS_SHOWN = 5
"""Reasons that the message of a stop names, the most frequent first."""


def count_records(tally: Counter[str], outcome: Outcome, topic: str, records: int = 1) -> None:
    """Counts records of a topic: by their outcome, and by outcome and topic."""
    tally[outcome] += records
    tally[f"{outcome}{IN_TOPIC}{topic}"] += records


def account_text(tally: Mapping[str, int]) -> str:
    """The account of records in words: every record read is in exactly one part of the sum."""
    parts = [f"{tally[outcome]:,} {outcome}" for outcome in OUTCOMES if tally.get(outcome)]
    return f"{tally.get(Count.READ, 0):,} read" + (f" = {' + '.join(parts)}" if parts else "")


def check_account(
    tally: Mapping[str, int],
    groups: Mapping[LetterGroup, int],
    letters: Mapping[LetterGroup, str],
    settings: "BatchSettings",
) -> None:
    """Raises AccountError when a record is not accounted for, TooManyRejects when the share of dead letters is above its limit.
    `groups`: how many dead letters each group has; `letters`: `PLACE: REASON` of one of each."""
    read, dead = tally.get(Count.READ, 0), tally.get(Count.DEAD_LETTERS, 0)
    counts = {outcome: tally.get(outcome, 0) for outcome in OUTCOMES}
    if read != sum(counts.values()):
        shown = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
        raise AccountError(f"{read} records were read, but {shown}; the batch is not committed: please report this")
    if dead > settings.max_reject_free and dead > read * settings.max_reject_share:
        whose = f"{dead} of {read} records of a batch are dead letters"
        raise too_many(whose, _topic_rejects(_read_by_topic(tally), groups, letters), settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRejects:
    """The dead letters of a topic. `read`: how many records the job read of it; `groups`: how many dead letters of each group;
    `letters`: `PLACE: REASON` of one of each. `warns`: their share is large, and `text` says so."""

    topic: str
    read: int
    groups: Mapping[LetterGroup, int]
    letters: Mapping[LetterGroup, str]
    warns: bool = False
    text: str = ""

    @property
    def dead(self) -> int:
        """How many there are."""
        return sum(self.groups.values())

    @property
    def largest(self) -> str:
        """The place and the reason of a letter of the largest group."""
        return self.letters[self._ordered[0]]

    @property
    def reasons(self) -> str:
        """The reasons by their counts, with an example of the first."""
        first, *others = self._ordered
        shown = [f"{self.groups[first]} {first}, as {self.letters[first]}"]
        shown += [f"{self.groups[group]} {group}" for group in others[: REASONS_SHOWN - 1]]
        more = [f"{len(others) - REASONS_SHOWN + 1} other reasons"] if len(others) >= REASONS_SHOWN else []
        return "; ".join((*shown, *more))

    @property
    def _ordered(self) -> list[LetterGroup]:
        return sorted(self.groups, key=lambda group: (-self.groups[group], group))


def _topic_rejects(
    read: Mapping[str, int], groups: Mapping[LetterGroup, int], letters: Mapping[LetterGroup, str]
) -> list[TopicRejects]:
    """The topics with dead letters, the topic with the most first. `read`: records by topic."""
    by_topic: dict[str, dict[LetterGroup, int]] = {}
    for group, count in groups.items():
        by_topic.setdefault(group.topic, {})[group] = count
    found = [
        TopicRejects(topic=topic, read=read.get(topic, 0), groups=own, letters=letters)
        for topic, own in by_topic.items()
    ]
    return sorted(found, key=lambda one: (-one.dead, one.topic))


def _read_by_topic(tally: Mapping[str, int]) -> Counter[str]:
    """The records that a batch read of each topic."""
    read = Counter[str]()
    for name, count in tally.items():
        outcome, _, topic = name.partition(IN_TOPIC)
        if topic and outcome in OUTCOMES:
            read[topic] += count
    return read


def too_many(whose: str, topics: Sequence[TopicRejects], settings: "BatchSettings") -> TooManyRejects:
    """The error that stops the job: names every topic, its counts, and an example of each."""
    shown = "; ".join(f"topic {one.topic}, {one.dead} of {one.read} records: {one.reasons}" for one in topics)
    example = topics[0].largest.partition(":")[0]
    return TooManyRejects(
        f"{whose}, more than {LIMIT} = {settings.max_reject_share} allows: {shown}. The job does not commit the batch, and the "
        f"next start reads it again. Look at one (`statestore dead-letters show {example}`; of `try`: in its file of dead "
        "letters). Then correct the definitions (`statestore apply`) or the source, or raise max_reject_share"
    )


LIMIT: Final = "max_reject_share"
"""The message of a stop names it."""
SURE_LETTERS: Final = 10
"""The share of fewer dead letters says nothing."""
MARKS: Final = 30
"""Marks in the length of a window."""


class WindowMark(NamedTuple):
    """The counts of a part of the window, which begins at `at`. `read`: records by topic."""

    at: float
    read: Mapping[str, int]
    groups: Mapping[LetterGroup, int]


@dataclass(slots=True, kw_only=True)
class RejectWindow:
    """The dead letters of the last minutes, by topic: small batches may each be below the limit of a batch. `strict`: the run
    before stopped for this reason, so fewer dead letters are free, and the job stops at once while the cause remains. Only the
    thread of the rounds adds; other threads may read."""

    settings: "BatchSettings"
    strict: bool = False
    marks: tuple[WindowMark, ...] = ()
    letters: dict[LetterGroup, str] = field(default_factory=dict)

    @property
    def seconds(self) -> int:
        """The length of the window."""
        return self.settings.reject_window_seconds

    def add(
        self,
        at: float,
        tally: Mapping[str, int],
        groups: Mapping[LetterGroup, int],
        letters: Mapping[LetterGroup, str],
    ) -> None:
        """Adds a batch that ended at `at`, on the job's clock."""
        read = _read_by_topic(tally)
        kept = [mark for mark in self.marks if mark.at > at - self.seconds]
        if kept and at - kept[-1].at < self.seconds / MARKS:
            last = kept.pop()
            kept.append(WindowMark(last.at, read + Counter(last.read), Counter(groups) + Counter(last.groups)))
        else:
            kept.append(WindowMark(at, read, dict(groups)))
        self.letters = {**self.letters, **letters}
        self.marks = tuple(kept)

    def topics(self, now: float) -> list[TopicRejects]:
        """The topics with dead letters in the window, the topic with the most first."""
        read, groups = Counter[str](), Counter[LetterGroup]()
        for mark in self.marks:
            if mark.at > now - self.seconds:
                read.update(mark.read)
                groups.update(mark.groups)
        return [self._judged(one) for one in _topic_rejects(read, groups, self.letters)]

    def check(self, now: float, topics: Collection[str]) -> None:
        """Raises TooManyRejects where a topic is above the limit, and is one of these: the last batch had dead letters of it."""
        free = min(self.settings.max_reject_free, SURE_LETTERS) if self.strict else self.settings.max_reject_free
        over = [one for one in self.topics(now) if one.dead > free and self._share_above(one, 1.0)]
        if any(one.topic in topics for one in over):
            dead, read = sum(one.dead for one in over), sum(one.read for one in over)
            raise too_many(f"{dead} of {read} records {self._lately} are dead letters", over, self.settings)

    def _judged(self, one: TopicRejects) -> TopicRejects:
        if one.dead <= SURE_LETTERS or not self._share_above(one, WARN_SHARE):
            return one
        text = (
            f"topic {one.topic}: {one.dead:,} of {one.read:,} records {self._lately} are dead letters "
            f"({100 * one.dead / max(one.read, 1):.1f} %): {one.reasons}; above {self.settings.max_reject_share:.0%} and "
            f"{self.settings.max_reject_free} of them the job stops: `statestore dead-letters list` shows them"
        )
        return replace(one, warns=True, text=text)

    def _share_above(self, one: TopicRejects, part: float) -> bool:
        return one.dead > one.read * self.settings.max_reject_share * part

    @property
    def _lately(self) -> str:
        return f"of the last {duration_text(self.seconds)}"


WARN_SHARE: Final = 0.5
"""The job warns from this part of the limit on."""


def spending(store: Store) -> Counter[str]:
    """The counts of a store's requests, and of what they cost."""
    return Counter({f"{REQUEST}{name}": n for name, n in store.requests.items()}) + store.spent


def stage_time(stage: Stage | Literal["batch"], began: float) -> Counter[str]:
    """The time of a stage since `began`, a moment of `perf_counter`."""
    return Counter({f"{STAGE}{stage}": round(1000 * (perf_counter() - began))})


RootTimes = Mapping[Root, float]
"""Root -> Kafka's time of the oldest record that led to it, in seconds since 1970; UNKNOWN where no record of the round did."""
UNKNOWN = inf
AGE_BOUNDS = tuple(
    float(f"{step}e{power}") for power in (-1, 0, 1, 2) for step in (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8)
)[:-1]
"""The upper bound of each bucket, in seconds: ten for a factor of ten, from 0.1 to 630. The last bucket has no bound."""
FRESHNESS = "freshness "
AGE_BUCKETS = (*(f"{FRESHNESS}<= {bound:g} s" for bound in AGE_BOUNDS), f"{FRESHNESS}> {AGE_BOUNDS[-1]:g} s")
"""The counter of each bucket in a tally. A document counts in one bucket only."""
AGE_SUM = f"{FRESHNESS}ms"
"""The counter of the ages of all documents together, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The ages of documents. `counts`: how many in each bucket; `seconds`: the sum of the ages."""

    counts: tuple[int, ...]
    seconds: float

    @property
    def count(self) -> int:
        """The number of documents."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """The age in seconds that this share of the documents (above 0, at most 1) does not exceed: between the bounds of
        its bucket, in proportion. Infinite in the last bucket. There must be documents."""
        lower, upper = self.bucket(share)
        if upper == inf:
            return inf
        n = AGE_BOUNDS.index(upper)
        below = sum(self.counts[:n])
        return lower + (upper - lower) * (share * self.count - below) / self.counts[n]

    def bucket(self, share: float) -> tuple[float, float]:
        """The bounds of the bucket that has the age of `quantile`: 0 below the first one, infinite above the last one."""
        n = bisect_left(list(accumulate(self.counts)), share * self.count)
        return AGE_BOUNDS[n - 1] if n else 0.0, AGE_BOUNDS[n] if n < len(AGE_BOUNDS) else inf


def count_ages(ages: Iterable[float]) -> Counter[str]:
    """The counters of documents of these ages, in seconds. A negative age, from clocks that differ, counts as 0."""
    ages = [max(age, 0.0) for age in ages]
    tally = Counter(AGE_BUCKETS[bisect_left(AGE_BOUNDS, age)] for age in ages)
    tally[AGE_SUM] = round(1000 * sum(ages))
    return tally


def read_freshness(tally: Mapping[str, int]) -> Freshness:
    """The histogram in a tally."""
    return Freshness(counts=tuple(tally.get(name, 0) for name in AGE_BUCKETS), seconds=tally.get(AGE_SUM, 0) / 1000)


def oldest(times: Iterable[RootTimes]) -> dict[Root, float]:
    """All roots, each with its oldest time."""
    found: dict[Root, float] = {}
    for root_times in times:
        for root, time in root_times.items():
            found[root] = min(time, found.get(root, time))
    return found


INDEX_LAG = "index lag "
LAG_BOUNDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bound of each bucket, in seconds. The last bucket has no bound."""
LAG_BUCKETS = (*(f"{INDEX_LAG}<= {bound:g} s" for bound in LAG_BOUNDS), f"{INDEX_LAG}> {LAG_BOUNDS[-1]:g} s")
"""The counter of each bucket in a tally."""
LAG_SUM = f"{INDEX_LAG}ms"
"""The counter of all ages together, in milliseconds."""


def count_lags(ages: Iterable[float]) -> Counter[str]:
    """The counters of answers that lag by this many seconds."""
    ages = list(ages)
    tally = Counter(LAG_BUCKETS[bisect_left(LAG_BOUNDS, age)] for age in ages)
    if ages:
        tally[LAG_SUM] = round(1000 * sum(ages))
    return tally


class UpdateCounts(NamedTuple):
    """The writes of rows of an entity, and those of them that changed nothing that an index shows."""

    writes: float = 0.0
    unread: float = 0.0

    def plus(self, other: "UpdateCounts") -> "UpdateCounts":
        """Both together."""
        return UpdateCounts(self.writes + other.writes, self.unread + other.unread)


def count_updates(touches: Iterable[Touch], plan: "Plan") -> Mapping[str, UpdateCounts]:
    """The writes by entity; none of an entity without slots."""
    writes: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    for touch in touches:
        entity = plan.entities[touch.entity]
        if entity.slots and touch.outcome == "applied":
            writes[entity.name] += 1
            unread[entity.name] += not entity.concerns_indexes(touch.changed)
    return {name: UpdateCounts(count, unread[name]) for name, count in writes.items()}


class AbsentCounts(NamedTuple):
    """The rows of an entity that a task read, and how many of them lacked which columns."""

    rows: int
    lacking: Mapping[AbsentColumns, int]


def count_absent(changes: Iterable[Change]) -> Mapping[str, AbsentCounts]:
    """The counts by entity."""
    rows: Counter[str] = Counter()
    lacking: dict[str, Counter[AbsentColumns]] = {}
    for change in changes:
        if change.row is not None:
            rows[change.entity] += 1
            if change.absent is not None:
                lacking.setdefault(change.entity, Counter())[change.absent] += 1
    return {name: AbsentCounts(count, lacking.get(name, {})) for name, count in rows.items()}


def count_nulled(changes: Iterable[Change]) -> Counter[str]:
    """The values that are null because their declared type cannot hold them, by the counters of their columns."""
    return Counter(f"{NULLED_OF}{one.entity}.{column}" for one in changes if one.nulled for column in one.nulled)


READ_COST: Final = 0.125
"""Of a weak read, in write units, with a margin: half a read unit costs a tenth of a write unit."""
SURE: Final = 20
"""This many writes count as changes of the indexes before the first one comes, so few writes decide nothing."""
REMEMBERED: Final = 10_000
"""After this many writes of an entity the older ones count half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReads:
    """The writes of each entity so far."""

    counts: Mapping[str, UpdateCounts] = field(default_factory=dict)

    def after(self, tasks: Iterable[Mapping[str, UpdateCounts]]) -> "RowReads":
        """With the writes of some tasks."""
        counts = dict(self.counts)
        for task in tasks:
            for entity, more in task.items():
                total = counts.get(entity, UpdateCounts()).plus(more)
                share = 0.5 if total.writes > REMEMBERED else 1.0
                counts[entity] = UpdateCounts(total.writes * share, total.unread * share)
        return replace(self, counts=counts)

    def entities(self, plan: "Plan") -> frozenset[str]:
        """The entities whose rows a task reads first."""
        return frozenset(
            name
            for name, (writes, unread) in self.counts.items()
            if name in plan.entities and unread * len(plan.entities[name].slots) > READ_COST * (writes + SURE)
        )


SIGN: Final = 1_000
"""Plain rows in a row without a column that earlier rows had."""


class AbsentColumn(NamedTuple):
    """A column that the last records of its entity lack. `records`: how many in a row, all of them since the start of the run or
    the last record with the column; `sure`: their table or their schema lacks it; `had`: an earlier record of the run had it."""

    records: int
    sure: bool
    had: bool

    @property
    def is_absent(self) -> bool:
        """Whether the source sends the column no more."""
        return self.sure or (self.had and self.records >= SIGN)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentReport:
    """The columns that records lack, by entity and column, of all entities that records came of."""

    columns: Mapping[tuple[str, str], AbsentColumn] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()

    def after(self, tasks: Iterable[Mapping[str, AbsentCounts]]) -> "AbsentReport":
        """With the counts of the tasks of a round."""
        rows: Counter[str] = Counter()
        lacking: Counter[tuple[str, str]] = Counter()
        sure: set[tuple[str, str]] = set()
        for task in tasks:
            for entity, counts in task.items():
                rows[entity] += counts.rows
                for absent, count in counts.lacking.items():
                    places = [(entity, column) for column in absent.columns]
                    lacking.update(dict.fromkeys(places, count))
                    sure |= set(places) if absent.sure else set()
        kept = {place: known for place, known in self.columns.items() if place[0] not in rows}
        for place, count in lacking.items():
            known = self.columns.get(place)
            whole = count == rows[place[0]]  # else a record of this round had the column
            before = known.records if known is not None and whole else 0
            had = not whole or (known.had if known is not None else place[0] in self.seen)
            kept[place] = AbsentColumn(before + count, place in sure, had)
        return AbsentReport(columns=kept, seen=self.seen | rows.keys())

    def found(self, plan: "Plan") -> Iterator["FoundColumn"]:
        """The columns that the source sends no more, of those that the plan's entities declare."""
        for (name, column), one in sorted(self.columns.items()):
            planned = plan.entities.get(name)
            if planned is not None and one.is_absent and column in planned.entity.columns:
                choice = planned.entity.absent_choice(column)
                yield FoundColumn(name, column, one.records, choice, choice is None and column not in planned.unread)


class FoundColumn(NamedTuple):
    """A declared column that the source sends no more. `choice`: what the entity says of it; `loud`: the entity does not say it,
    and products read the column."""

    entity: str
    column: str
    records: int
    choice: AbsentChoice | None
    loud: bool

    @property
    def text(self) -> str:
        """For people: what documents show now, and the cure."""
        shown = "the stored value stays" if self.choice == "keep" else "it is null in their rows"
        what = f"column {self.column} of entity {self.entity} is not in the last {self.records:,} records: {shown}"
        if self.choice is not None:
            return what
        return (
            f"{what}. If the source renamed or dropped it, correct `columns`; if it is a generated column, or no publication has "
            f"it, declare `absent: {{{self.column}: keep}}`, else `absent: {{{self.column}: 'null'}}`"
        )
