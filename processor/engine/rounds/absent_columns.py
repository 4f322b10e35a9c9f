"""Which declared columns the records of an entity lack: a column that the source renamed, dropped or does not log is null in
documents, and nobody would know.

A record with a schema, and a record of Debezium, has each column of its table. So one such record without a column is proof. A
plain row may leave a column out, so only a long run of rows without a column that earlier rows had is a sign.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.rounds.update_counts import AbsentCounts
from processor.values.entity import AbsentChoice

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

    def found(self, plan: Plan) -> Iterator["FoundColumn"]:
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
