"""What each outage did to the job, by part, way and length: the table of tests/outages/results.md.

An outage is alone when no other one overlaps it, nor the time until the job was well again. Only then its figures are its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median

from processor.text import duration_text
from tests.outages.outage_schedule import Outage
from tests.outages.watched_job import Ended, Health, Line

BUCKETS = ((0.0, 5.0), (5.0, 30.0), (30.0, 1_000.0))
"""Lengths of outages in seconds, from and below."""
QUIET_SECONDS = 10.0
"""After an outage: an outage that begins later is no neighbour."""
WORKED_SECONDS = 2.0
"""A batch that ends sooner had all that it needed before the outage."""
HEADS = (
    *("part", "way", "length", "outages", "alone", "said", "said after", "health degraded", "health wrong"),
    *("batches meanwhile", "batches after its end", "the job ended"),
)
DEGRADED, BATCH = "degraded", "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of an outage. `alone`: whether its figures are its own. `said`: seconds until the log named the part, None if
    it did not. `degraded`, `wrong`: whether the health said so meanwhile. `worked`: whether a batch ended meanwhile. `well`:
    seconds from its end until the next batch, None without one. `ends`: how often the job ended meanwhile."""

    outage: Outage
    alone: bool
    said: float | None
    degraded: bool
    wrong: bool
    worked: bool
    well: float | None
    ends: int


def effects(
    outages: Sequence[Outage], lines: Sequence[Line], health: Sequence[Health], ends: Sequence[Ended]
) -> list[Effect]:
    """The effect of each outage."""
    return [_effect(one, outages, lines, health, ends) for one in outages]


def _effect(
    one: Outage, outages: Sequence[Outage], lines: Sequence[Line], health: Sequence[Health], ends: Sequence[Ended]
) -> Effect:
    near = Outage(part=one.part, way=one.way, began=one.began - QUIET_SECONDS, ended=one.ended + QUIET_SECONDS)
    about = [line.at for line in lines if line.event == DEGRADED and line.part == one.part]
    said = [at for at in about if one.began <= at <= near.ended]
    batches = [line.at for line in lines if line.event == BATCH and line.at > one.ended]
    shown = [each for each in health if one.began <= each.at <= one.ended]
    return Effect(
        outage=one,
        alone=not any(near.overlaps(other) for other in outages if other is not one),
        said=min(said) - one.began if said else None,
        degraded=any(each.status == 200 and DEGRADED in each.text for each in shown),
        wrong=any(each.status == 503 for each in shown),
        worked=any(one.began + WORKED_SECONDS < line.at < one.ended for line in lines if line.event == BATCH),
        well=min(batches) - one.ended if batches else None,
        ends=sum(one.began <= each.at <= near.ended for each in ends),
    )


def table(found: Iterable[Effect]) -> list[tuple[str, ...]]:
    """The rows of the table, below their heads."""
    return [HEADS, *_rows(list(found))]


def _rows(found: list[Effect]) -> Iterator[tuple[str, ...]]:
    parts = list(dict.fromkeys(one.outage.part for one in found))
    ways = list(dict.fromkeys(one.outage.way for one in found))
    for part, way, (low, high) in product(sorted(parts), sorted(ways), BUCKETS):
        some = [e for e in found if (e.outage.part, e.outage.way) == (part, way) and low <= e.outage.seconds < high]
        if some:
            yield (part, way, _bucket(low, high), *_figures(some))


def _figures(some: list[Effect]) -> tuple[str, ...]:
    alone = [one for one in some if one.alone]
    said = [one.said for one in some if one.said is not None]
    well = [one.well for one in alone if one.well is not None]
    return (
        str(len(some)),
        str(len(alone)),
        str(len(said)),
        _spread(said),
        str(sum(one.degraded for one in some)),
        str(sum(one.wrong for one in some)),
        str(sum(one.worked for one in alone)),
        _spread(well),
        str(sum(one.ends for one in some)),
    )


def _spread(seconds: list[float]) -> str:
    return f"{duration_text(median(seconds))}, at most {duration_text(max(seconds))}" if seconds else ""


def _bucket(low: float, high: float) -> str:
    return (
        f"below {high:.0f} s" if not low else f"{low:.0f} s to {high:.0f} s" if high < 1_000 else f"{low:.0f} s or more"
    )


def markdown(rows: Sequence[tuple[str, ...]]) -> str:
    """The table as a page has it."""
    heads, *others = rows
    lines = [heads, tuple("---" for _ in heads), *others]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
