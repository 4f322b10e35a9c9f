"""Too many dead letters stop a job, and the message says which, how many, and what to do. Nothing of the batch is lost."""

import json
from contextlib import nullcontext

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.plan.step import Touch, TouchOutcome
from processor.engine.rounds.round_counts import (
    REMEMBERED,
    RowReads,
    UpdateCounts,
    check_account,
    count_updates,
    stage_time,
)
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import TooManyRejects
from processor.language.definitions.load import load
from processor.values.dead_letters import LetterGroup
from processor.values.record import Record
from statestore.items import Row
from statestore.keys import Key

ENTITIES = "{t: {key: [id], columns: {id: int, n: int}}}"
PLAN = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": "{product: p, root: t}"}), 5)
GROUP = LetterGroup("t", "not-json", "")
BROKEN = (b"{", b'{"id": 1, "n": "many"}', b'{"n": 1}', b"[]", b"\xff", b'{"id": null}')


def batch(good: int, *broken: int) -> list[Record]:
    """This many good records, then this many broken ones of each kind."""
    values = [json.dumps({"id": n}).encode() for n in range(good)]
    values += [value for value, count in zip(BROKEN, broken, strict=False) for _ in range(count)]
    return [Record(topic="t", partition=0, offset=n, key=None, value=value) for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("good", "bad", "stops"), [(0, 100, False), (1_919, 101, False), (1_918, 101, True), (0, 101, True)]
)
def test_more_than_five_percent_and_a_hundred_stop_the_job(good: int, bad: int, stops: bool) -> None:
    tally = {"read": good + bad, "applied": good, "dead letters": bad, "dead letters: not-json": bad}
    with pytest.raises(TooManyRejects, match=f"^{bad} of {good + bad} records") if stops else nullcontext():
        check_account(tally, {GROUP: bad}, {GROUP: "t/0 offset 5: value: not JSON"}, Settings())


def test_the_message_names_the_reasons_by_count_with_an_example_of_the_most_frequent_and_the_command() -> None:
    with pytest.raises(TooManyRejects) as stopped:
        Trial(plan=PLAN, settings=Settings()).batch(batch(10, 20, 90, 5, 4, 3, 2))
    text = str(stopped.value)
    reasons = text.partition("allows: ")[2].partition(". The job")[0].split("; ")
    assert reasons == [
        "topic t, 124 of 134 records: 90 column-type at n, as t/0 offset 119: column 'n': expected int, found text",
        "20 not-json",
        "5 key-missing at id",
        "4 not-a-row",
        "3 not-utf8",
        "1 other reasons",
    ]
    assert "`statestore dead-letters show t/0 offset 119`" in text
    assert "the next start reads it again" in text


def test_the_message_counts_no_other_reasons_where_it_names_all_of_them() -> None:
    with pytest.raises(TooManyRejects) as stopped:
        Trial(plan=PLAN, settings=Settings()).batch(batch(10, 20, 90, 5, 4, 3))
    assert "3 not-utf8" in str(stopped.value)
    assert "other reasons" not in str(stopped.value)


def test_the_time_of_a_stage_is_in_milliseconds_since_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.engine.rounds.round_counts.perf_counter", lambda: 102.5004)
    assert stage_time("batch", 100.0) == {"ms batch": 2_500}


def touch(entity: str, outcome: TouchOutcome, *changed: str) -> Touch:
    row = Row(key=Key(f"TABLE#{entity}", "1"), version="1", columns={}, more={}, slots={}, pending=())
    return Touch(entity, row, frozenset(), frozenset(changed), outcome)


def test_only_writes_of_rows_that_an_index_shows_count_for_the_read_before_them() -> None:
    entities = "{t: {key: [id], columns: {id: int, n: int, m: int}}, u: {key: [id], columns: {id: int, n: int}}}"
    product = "{product: p, root: u, embed: {ts: {many: t, on: {n: id}, fields: [id]}}}"
    plan = plan_alone(load({"entities.yaml": entities, "p.yaml": product}), 5)
    touches = [
        touch("t", "applied", "n"),
        touch("t", "applied", "m"),
        touch("t", "applied", "m"),
        touch("t", "replayed", "n"),
        touch("u", "applied", "n"),
    ]
    assert count_updates(touches, plan) == {"t": UpdateCounts(3, 2)}


def test_after_many_writes_of_an_entity_the_older_ones_count_half() -> None:
    reads = RowReads(counts={"t": UpdateCounts(REMEMBERED - 10, 100)}).after([{"t": UpdateCounts(10, 4)}])
    assert reads.counts == {"t": UpdateCounts(REMEMBERED, 104)}
    assert reads.after([{"t": UpdateCounts(2, 2)}]).counts == {"t": UpdateCounts(REMEMBERED / 2 + 1, 53)}


def test_a_batch_that_stopped_the_job_is_whole_at_the_next_start() -> None:
    """Once under a higher limit, and once after the definitions take what they refused."""
    records = batch(10, 0, 200)
    for settings, plan, dead in (
        (Settings(max_reject_share=1.0), PLAN, 200),
        (
            Settings(),
            plan_alone(
                load({"entities.yaml": ENTITIES.replace("n: int", "n: json"), "p.yaml": "{product: p, root: t}"}), 5
            ),
            0,
        ),
    ):
        first = Trial(plan=PLAN, settings=Settings())
        with pytest.raises(TooManyRejects):
            first.batch(records)
        again = Trial(plan=plan, settings=settings, run=2, other_store=first.store)
        tally = again.batch(records)
        again.finish()
        assert (tally["read"], tally["dead letters"]) == (210, dead)
        assert tally["applied"] + tally["superseded"] == 210 - dead
        published = {m.key for trial in (first, again) for m in trial.published.messages}
        assert len(published) == 10
