"""The counts of a round, by themselves: what they add up to, and the words for people."""

import math
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.round_counts import (
    AGE_BOUNDS,
    AbsentCounts,
    AbsentReport,
    RejectWindow,
    UpdateCounts,
    account_text,
    check_account,
    count_absent,
    count_ages,
    count_lags,
    oldest,
    read_freshness,
    spending,
)
from processor.environment.settings.settings import Settings
from processor.errors import AccountError, TooManyRejects
from processor.language.definitions.load import load
from processor.values.dead_letters import LetterGroup
from processor.values.record import AbsentColumns, Change, Record
from statestore.memory import MemoryStore

PLAN = plan_alone(
    load(
        {
            "entities.yaml": "user: {key: [id], columns: {id: int, name: string, bio: string}}\n"
            "star: {key: [id], columns: {id: int, who: string}}",
            "p.yaml": "product: p\nroot: user\nfields: [name]",
        }
    ),
    5,
)


@pytest.mark.parametrize(
    ("tally", "text"),
    [
        ({}, "0 read"),
        ({"read": 3, "applied": 3}, "3 read = 3 applied"),
        (
            {"read": 2_000, "applied": 1_990, "superseded": 0, "ignored": 4, "dead letters": 6, "deleted": 9},
            "2,000 read = 1,990 applied + 4 ignored + 6 dead letters",
        ),
    ],
)
def test_the_account_in_words_has_the_parts_that_are_there(tally: dict[str, int], text: str) -> None:
    assert account_text(tally) == text


def test_a_batch_that_does_not_add_up_is_not_committed() -> None:
    with pytest.raises(AccountError) as error:
        check_account({"read": 5, "applied": 3, "dead letters": 1}, {}, {}, Settings())
    assert str(error.value) == (
        "5 records were read, but 3 applied, 0 superseded, 0 ignored, 1 dead letters; the batch is not committed: "
        "please report this"
    )
    check_account({}, {}, {}, Settings())
    with pytest.raises(AccountError, match=r"^0 records were read, but 1 applied"):
        check_account({"applied": 1}, {}, {}, Settings())


def group(topic: str, number: int) -> LetterGroup:
    return LetterGroup(topic, f"code-{number}", "")


def rejects(**groups: int) -> tuple[dict[LetterGroup, int], dict[LetterGroup, str]]:
    """`a1=5`: five dead letters of topic a for reason 1."""
    counts = {group(name[0], int(name[1:])): count for name, count in groups.items()}
    return counts, {one: f"{one.topic}/0 offset {one.code[5:]}: because" for one in counts}


def test_a_stop_names_the_topics_by_their_dead_letters_and_five_reasons_of_each() -> None:
    counts, letters = rejects(b1=70, a1=40, c1=40, c2=30, **{f"d{n}": 100 + n for n in range(7)})
    tally = {
        "read": 1_000,
        "applied": 55,
        "ignored": 4,
        "dead letters": 941,
        "applied in a": 46,
        "dead letters in a": 40,
    }
    tally |= {"ignored in a": 4, "ignored: other table in a": 4}
    with pytest.raises(TooManyRejects) as stopped:
        check_account(tally, counts, letters, Settings())
    said = str(stopped.value).partition("allows: ")[2].partition(". The job")[0]
    topics = [text.partition(",")[0] for text in said.split("; ") if text.startswith("topic")]
    assert topics == ["topic d", "topic b", "topic c", "topic a"]
    assert "topic a, 40 of 90 records: 40 code-1, as a/0 offset 1: because" in said
    assert "topic b, 70 of 0 records: 70 code-1" in said
    assert said.startswith(
        "topic d, 721 of 0 records: 106 code-6, as d/0 offset 6: because; 105 code-5; 104 code-4; 103 code-3; 102 code-2; "
        "2 other reasons; "
    )
    assert "`statestore dead-letters show d/0 offset 6`" in str(stopped.value)


def test_topics_and_reasons_with_equal_counts_have_the_order_of_their_names() -> None:
    counts, letters = rejects(b2=60, b1=60, a9=60, a1=60)
    with pytest.raises(TooManyRejects) as stopped:
        check_account({"read": 240, "dead letters": 240}, counts, letters, Settings())
    said = str(stopped.value).partition("allows: ")[2].partition(". The job")[0].split("; ")
    assert [one.partition(": ")[2] or one for one in said] == [
        "60 code-1, as a/0 offset 1: because", "60 code-9", "60 code-1, as b/0 offset 1: because", "60 code-2",
    ]  # fmt: skip


def test_a_window_warns_from_half_of_the_share_and_counts_a_topic_alone() -> None:
    """2.5 % of the records, and more than ten of them."""
    settings = Settings()
    for read, dead, warns in ((400, 10, False), (439, 11, True), (440, 11, False), (441, 11, False)):
        window = RejectWindow(settings=settings)
        counts, letters = rejects(a1=dead)
        window.add(
            0.0, {"applied in a": read - dead, "dead letters in a": dead, "applied in b": 9_999}, counts, letters
        )
        (found,) = window.topics(1.0)
        assert (found.warns, bool(found.text)) == (warns, warns), (read, dead)
    window = RejectWindow(settings=settings)
    window.add(0.0, {}, *rejects(a1=11))
    (found,) = window.topics(1.0)
    assert found.text.startswith(
        "topic a: 11 of 0 records of the last 10 min are dead letters (1100.0 %): 11 code-1, as a/0"
    )


def test_batches_of_one_moment_are_one_mark_and_those_before_the_window_are_none() -> None:
    window = RejectWindow(settings=Settings())
    for at in (0.0, 19.9, 20.0, 39.9):
        window.add(at, {"applied in a": 100, "dead letters in a": 15}, *rejects(a1=15))
    assert [(mark.at, mark.read["a"]) for mark in window.marks] == [(0.0, 230), (20.0, 230)]
    assert [one.dead for one in window.topics(599.9)] == [60]
    assert [one.dead for one in window.topics(600.0)] == [30]
    window.add(599.0, {}, *rejects(b1=1))
    assert [one.largest for one in window.topics(599.9)] == ["a/0 offset 1: because", "b/0 offset 1: because"]
    window.add(620.0, {"applied in a": 1}, {}, {})
    assert [mark.at for mark in window.marks] == [599.0, 620.0]
    assert [one.topic for one in window.topics(620.0)] == ["b"]


def test_ages_and_lags_count_in_their_buckets_and_add_up_in_milliseconds() -> None:
    tally = count_ages([0.1, 0.11, -5.0, 700.0])
    assert {name: count for name, count in tally.items() if count} == {
        "freshness <= 0.1 s": 2, "freshness <= 0.125 s": 1, "freshness > 630 s": 1, "freshness ms": 700_210,
    }  # fmt: skip
    found = read_freshness(tally)
    assert (found.count, found.seconds, len(found.counts)) == (4, 700.21, len(AGE_BOUNDS) + 1)
    assert read_freshness({}).seconds == 0
    assert [found.bucket(share) for share in (0.5, 0.75, 1.0)] == [(0.0, 0.1), (0.1, 0.125), (630.0, math.inf)]
    assert count_lags([]) == {}
    assert count_lags([0.05, 2.0, 301.0]) == {
        "index lag <= 0.1 s": 1, "index lag <= 2 s": 1, "index lag > 300 s": 1, "index lag ms": 303_050,
    }  # fmt: skip


def test_a_root_has_the_oldest_of_its_times() -> None:
    one, other = ("p", "1"), ("p", "2")
    assert oldest([{one: 5.0}, {one: 3.0, other: 9.0}, {one: 4.0}]) == {one: 3.0, other: 9.0}


def test_the_requests_of_a_store_count_with_what_they_cost() -> None:
    store = MemoryStore(3)
    store.requests["Query"], store.spent["read units"] = 2, 5
    assert spending(store) == {"request Query": 2, "read units": 5}


def test_counts_of_writes_add_up() -> None:
    assert UpdateCounts(3, 1).plus(UpdateCounts(2, 2)) == UpdateCounts(5, 3)


LACKS = AbsentColumns(("bio",), False)


def change(entity: str, row: Any, absent: AbsentColumns | None = None) -> Change:
    record = Record(topic=entity, partition=0, offset=0, key=None, value=None)
    return Change(entity=entity, key=(1,), row=row, record=record, absent=absent)


def test_rows_count_by_entity_with_the_columns_that_they_lack() -> None:
    changes = [change("user", {}, LACKS), change("user", {}), change("user", None, LACKS), change("star", {})]
    found = count_absent([*changes, change("user", {}, AbsentColumns(("bio", "name"), True))])
    assert found["user"] == AbsentCounts(3, {LACKS: 1, AbsentColumns(("bio", "name"), True): 1})
    assert found["star"] == AbsentCounts(1, {})


def rounds(*counts: dict[str, AbsentCounts]) -> AbsentReport:
    """The report after these rounds of one task."""
    report = AbsentReport()
    for one in counts:
        report = report.after([one])
    return report


def lacking(rows: int, lacked: int, *, sure: bool = False) -> dict[str, AbsentCounts]:
    return {"user": AbsentCounts(rows, {AbsentColumns(("bio",), sure): lacked})}


ALL = {"user": AbsentCounts(5, {})}
OTHERS = {"star": AbsentCounts(5, {})}


@pytest.mark.parametrize(
    ("report", "records"),
    [
        (rounds(lacking(2_000, 2_000)), None),
        (rounds(ALL, lacking(999, 999)), None),
        (rounds(ALL, lacking(999, 999), lacking(1, 1)), 1_000),
        (rounds(ALL, OTHERS, lacking(1_000, 1_000)), 1_000),
        (rounds(ALL, lacking(999, 999), OTHERS, lacking(1, 1)), 1_000),
        (rounds(ALL, lacking(999, 999), ALL, lacking(1, 1)), None),
        (rounds(lacking(5, 4), lacking(1_000, 1_000)), 1_004),
        (rounds(lacking(1_000, 999), lacking(999, 998)), None),
        (rounds(lacking(3, 3, sure=True)), 3),
        (rounds(lacking(3, 3, sure=True), OTHERS), 3),
        (rounds(lacking(3, 3, sure=True), ALL), None),
        (rounds(lacking(3, 3, sure=True), lacking(1, 1)), None),
    ],
    ids=[
        "never had it", "too few", "enough", "other rounds between", "and within", "had it again", "some had it in one round",
        "some have it in each round", "sure", "sure, then another entity", "sure, then had it", "sure, then a plain row",
    ],
)  # fmt: skip
def test_a_column_is_absent_after_a_long_run_of_rows_without_it_or_where_a_schema_lacks_it(
    report: AbsentReport, records: int | None
) -> None:
    assert [(one.entity, one.column, one.records) for one in report.found(PLAN)] == (
        [] if records is None else [("user", "bio", records)]
    )


def test_the_tasks_of_a_round_count_together_and_an_entity_that_went_has_no_columns() -> None:
    report = AbsentReport().after([ALL]).after([lacking(600, 600), lacking(400, 400)])
    (found,) = report.found(PLAN)
    assert (found.records, found.choice, found.loud) == (1_000, None, False)
    gone = plan_alone(
        load({"entities.yaml": "star: {key: [id], columns: {id: int}}", "p.yaml": "product: p\nroot: star"}), 5
    )
    assert list(report.found(gone)) == []
