"""Too many dead letters stop a job, and the message says which, how many, and what to do. Nothing of the batch is lost."""

import json
from contextlib import nullcontext

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.round_counts import check_account
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import TooManyRejects
from processor.language.definitions.load import load
from processor.values.dead_letters import LetterGroup
from processor.values.record import Record

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
