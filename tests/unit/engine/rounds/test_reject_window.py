"""A flood of bad records in small batches: the last minutes of each topic count, the job warns before it stops, and the message
names every topic that is poisoned."""

import json
from collections.abc import Iterator

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import JobEvent, degraded_lines
from processor.engine.rounds.round_counts import MARKS, RejectWindow
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import TooManyRejects
from processor.language.definitions.load import load
from processor.values.record import Record

TOPICS = ("user", "star", "repo")
ENTITIES = {name: {"key": ["id"], "columns": {"id": "int", "age": "int"}} for name in TOPICS}
PRODUCT = "{product: users, root: user, fields: [id, age]}"
PLAN = plan_alone(load({"entities.yaml": json.dumps(ENTITIES), "users.yaml": PRODUCT}), 5)


def batches(bad: int, good: int, *topics: str) -> Iterator[list[Record]]:
    """Batches of this many bad and good records of each topic, without end."""
    offset = 0
    while True:
        records = []
        for topic in topics:
            for n in range(bad + good):
                value = json.dumps({"id": n, "age": "old" if n < bad else n}).encode()
                records.append(Record(topic=topic, partition=0, offset=offset + n, key=None, value=value))
        offset += bad + good
        yield records


def until_it_stops(trial: Trial, most: int, *of: Iterator[list[Record]]) -> tuple[int, str]:
    """How many batches ended before the job stopped, and its message; empty where it did not stop."""
    for ended in range(most):
        try:
            trial.batch([record for records in of for record in next(records)])
        except TooManyRejects as stopped:
            return ended, str(stopped)
    return most, ""


def test_seventy_percent_of_sixty_a_second_stop_the_job_within_seconds() -> None:
    """Each batch has 42 dead letters, fewer than the hundred that never stop a batch."""
    ended, text = until_it_stops(Trial(plan=PLAN, settings=Settings()), 40, batches(42, 18, "user"))
    assert ended == 2, "126 of 180"
    assert text.startswith(
        "126 of 180 records of the last 10 min are dead letters, more than max_reject_share = 0.05 allows: "
    )


def test_the_message_names_every_poisoned_topic_with_its_counts_and_an_example() -> None:
    poison, clean = batches(50, 10, "user", "star"), batches(0, 100, "repo")
    _, text = until_it_stops(Trial(plan=PLAN, settings=Settings()), 40, poison, clean)
    for topic in ("user", "star"):
        assert (
            f"topic {topic}, 150 of 180 records: 150 column-type at age, as {topic}/0 offset 169: column 'age': "
            in text
        )
    assert "topic repo" not in text


def test_one_percent_never_stops_a_job_and_warns_of_nothing() -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    assert until_it_stops(trial, 200, batches(1, 99, "user")) == (200, "")
    (shown,) = trial.driver.rounds.rejects.topics(trial.clock.now())
    assert (shown.read, shown.dead, shown.warns) == (20_000, 200, False)


def test_the_job_warns_once_before_it_stops_and_says_the_reason_by_topic_and_column() -> None:
    events: list[JobEvent] = []
    trial = Trial(plan=PLAN, settings=Settings())
    trial.driver.progress.report = events.append
    assert until_it_stops(trial, 20, batches(1, 24, "user")) == (20, "")
    (warning,) = [event.text for event in events if event.text.startswith("topic user")]
    assert warning.startswith(
        "topic user: 11 of 275 records of the last 10 min are dead letters (4.0 %): 11 column-type at "
    )
    assert "above 5% and 100 of them the job stops" in warning
    rejects = trial.driver.rounds.rejects.topics(trial.clock.now())
    report = {"rejects": [{"topic": one.topic, "text": one.text} for one in rejects], "at": 0.0}
    (line,) = degraded_lines(report)
    assert line.startswith("topic user: 20 of 500 records of the last 10 min are dead letters (4.0 %)")


def test_dead_letters_that_are_older_than_the_window_do_not_count() -> None:
    settings = Settings(reject_window_seconds=60)
    trial, poison = Trial(plan=PLAN, settings=settings), batches(42, 18, "user")
    for _ in range(5):
        assert until_it_stops(trial, 2, poison) == (2, "")
        trial.clock.sleep(61)
    assert not trial.driver.rounds.rejects.topics(trial.clock.now())


def test_the_window_keeps_few_marks_however_many_batches_it_has() -> None:
    trial, clean = Trial(plan=PLAN, settings=Settings(reject_window_seconds=60)), batches(0, 1, "user")
    for _ in range(300):
        trial.batch(next(clean))
        trial.clock.sleep(0.5)
    assert len(trial.driver.rounds.rejects.marks) <= MARKS


def test_a_job_that_stopped_for_this_reason_stops_at_once_until_somebody_corrects_the_cause() -> None:
    poisoned, corrected = (Trial(plan=PLAN, settings=Settings()) for _ in range(2))
    for trial in (poisoned, corrected):
        trial.driver.rounds.rejects.strict = True
    assert until_it_stops(poisoned, 40, batches(42, 18, "user"))[0] == 0
    assert until_it_stops(corrected, 40, batches(1, 99, "user")) == (40, "")


def test_a_flood_that_ended_does_not_stop_a_later_batch_without_dead_letters() -> None:
    window = RejectWindow(settings=Settings())
    trial = Trial(plan=PLAN, settings=Settings(max_reject_share=1.0))
    until_it_stops(trial, 4, batches(42, 18, "user"))
    window.marks, window.letters = trial.driver.rounds.rejects.marks, trial.driver.rounds.rejects.letters
    window.check(trial.clock.now(), {"star"})
    with pytest.raises(TooManyRejects):
        window.check(trial.clock.now(), {"user"})
