"""The schedule of outages keeps its bounds and its budget, and the table says what each outage did to the job."""

from random import Random
from threading import Event

from tests.outages.outage_schedule import LONGEST, SHORTEST, Budget, Outage, cause_outages, draw
from tests.outages.outage_table import effects, markdown, table
from tests.outages.watched_job import Ended, Health, Line, count


def outage(began: float, ended: float, part: str = "registry", way: str = "cut") -> Outage:
    return Outage(part=part, way=way, began=began, ended=ended)


class RecordedPart:
    """A part that notes what happens to it."""

    name = "store"
    ways: tuple[str, ...] = ("cut",)

    def __init__(self) -> None:
        self.calls: list[str] = []

    def fail(self, way: str) -> None:
        self.calls.append(way)

    def repair(self) -> None:
        self.calls.append("repair")


def test_lengths_are_between_one_second_and_two_minutes_and_short_ones_are_as_likely_as_long_ones() -> None:
    drawn = draw(Random(1), ["cut", "silent"], 15.0)
    lengths = [next(drawn)[2] for _ in range(2_000)]
    assert min(lengths) >= SHORTEST
    assert max(lengths) <= LONGEST
    assert 0.45 < sum(length < 11 for length in lengths) / len(lengths) < 0.55


def test_a_part_fails_as_often_as_the_budget_says_and_answers_at_the_end() -> None:
    part, noted = RecordedPart(), list[Outage]()
    cause_outages(part, iter([(0.0, "cut", 0.0)] * 9), Budget(3), Event(), noted.append)
    assert part.calls == ["cut", "repair"] * 3
    assert [one.part for one in noted] == ["store"] * 3


def test_an_outage_is_alone_without_a_neighbour_and_its_figures_are_those_of_its_own_time() -> None:
    outages = [outage(100, 110), outage(105, 106, "store"), outage(200, 240)]
    lines = [
        Line(at=99, event="batch", text=""),
        Line(at=203, event="degraded", text="registry: cut", part="registry"),
        Line(at=204, event="degraded", text="store: slow", part="store"),
        Line(at=241.5, event="batch", text=""),
    ]
    health = [Health(at=205, status=200, text="degraded: registry"), Health(at=300, status=503, text="wrong")]
    found = effects(outages, lines, health, [Ended(at=230, status=1, text="")])
    assert [one.alone for one in found] == [False, False, True]
    last = found[-1]
    assert (last.said, last.degraded, last.wrong, last.worked, last.well, last.ends) == (3, True, False, False, 1.5, 1)
    assert (found[0].said, found[0].degraded) == (None, False)


def test_the_table_has_a_row_for_each_part_way_and_length() -> None:
    rows = table(effects([outage(0, 2), outage(50, 53), outage(100, 190)], [], [], []))
    assert [row[:4] for row in rows[1:]] == [
        ("registry", "cut", "below 5 s", "2"),
        ("registry", "cut", "30 s or more", "1"),
    ]
    assert markdown(rows).splitlines()[1].count("---") == len(rows[0])


def test_the_batches_of_a_job_add_up_over_its_runs() -> None:
    page = "# TYPE statestore_batches_total counter\nstatestore_batches_total {}\nstatestore_batch_seconds_total 9.5\n"
    counted = (0, 0)
    for text in (
        "no answer",
        page.format("3.0"),
        "no answer",
        page.format("7.0"),
        page.format("0.0"),
        page.format("2.0"),
    ):
        counted = count(counted, text)
    assert counted == (7, 2)
