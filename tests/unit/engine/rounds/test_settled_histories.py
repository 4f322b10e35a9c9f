"""Histories of a column whose form a record settles: in any batches, partitions and tasks, and with crashes."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from processor.engine.protocol.epochs import NOTHING
from processor.values.decimal_forms import LearnedForm
from processor.values.record import Record
from tests.unit.engine.rounds.settled_items import BYTES, DIGITS, item, letters, prices, settled, started

VALUES = {"12.34": "text", "12345": "text", "1234": "either", "1000": "either", "BNI=": "bytes", "free": "letters"}


def expected(records: Sequence[Record]) -> tuple[list[int], dict[int, Decimal], set[int]]:
    """The offset that settles the form, the last prices by this form, and the offsets of records that it does not read."""
    texts = {one.offset: json.loads(one.value or b"")["after"] for one in records}
    clear = [offset for offset, after in texts.items() if VALUES[after["price"]] in ("text", "bytes")][:1]
    read = {"text": DIGITS, "bytes": BYTES}[VALUES[texts[clear[0]]["price"]]] if clear else {}
    found = {after["id"]: Decimal(read[after["price"]]) for after in texts.values() if after["price"] in read}
    return clear, found, {offset for offset, after in texts.items() if after["price"] not in read}


@pytest.mark.parametrize("seed", range(60))
def test_any_batches_crashes_and_repeated_batches_end_alike_after_a_replay(seed: int) -> None:
    random = Random(seed)
    forms = random.choice([("1234", "1000", "12.34"), ("1234", "1000", "BNI="), tuple(VALUES)])
    records = [item(n, random.choice(forms), key=random.randrange(4)) for n in range(12)]
    cuts = sorted({0, 12, *(random.randrange(12) for _ in range(4))})
    shown, kept = dict[int, Decimal](), list[Any]()
    trial, run = started(), 1
    for start, end in pairwise(cuts):
        trial.batch(records[start:end])
        while random.random() < 0.4:  # a crash: the next run repeats the batch, or all from an earlier one
            shown, kept, run = shown | prices(trial), [*kept, *letters(trial)], run + 1
            trial = started(trial.store, run)
            trial.batch(records[random.choice([start, 0]) : end])
    reports = trial.driver.replay([*kept, *letters(trial)])
    clear, found, unread = expected(records)
    assert [one.offset for one in settled(trial).values()] == clear
    assert shown | prices(trial) == found
    assert {one.record.offset for one in reports if one.outcome == "refused"} == unread


@pytest.mark.parametrize("seed", range(40))
def test_partitions_in_any_order_never_give_rows_of_two_forms(seed: int) -> None:
    random = Random(seed)
    lanes = [
        [item(n, random.choice(tuple(VALUES)), key=10 * lane + n, partition=lane) for n in range(4)]
        for lane in range(3)
    ]
    trial, records = started(), list[Record]()
    while any(lanes):
        lane = random.choice([one for one in lanes if one])
        records.append(lane.pop(0))
        trial.batch(records[-1:])
    form = settled(trial)["price"].form
    texts = {
        json.loads(one.value or b"")["after"]["id"]: json.loads(one.value or b"")["after"]["price"] for one in records
    }
    assert prices(trial).items() <= {key: Decimal(number) for key, text in texts.items()
                                     if (number := {"text": DIGITS, "bytes": BYTES}[form].get(text))}.items()  # fmt: skip


def test_two_tasks_of_one_round_take_the_form_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = started()
    executor = trial.driver.rounds.executor
    once = executor.run_round

    def two_tasks(stage: Any, work: Iterable[Iterable[Record]], round_: Any, overlay: Any) -> Any:
        return [lane for task in work for lane in once(stage, [task], round_, overlay)]

    monkeypatch.setattr(type(executor), "run_round", lambda _, *args: two_tasks(*args))
    tasks = [[item(0, "12.34", key=1)], [item(0, "BNI=", key=2, partition=1), item(1, "1234", key=3, partition=1)]]
    trial.driver.process_batch(tasks, NOTHING)
    assert prices(trial) == {1: Decimal("12.34"), 3: Decimal(1234)}
    assert ["since the record item/0/0" in letter.rejected.reason for letter in letters(trial)] == [True]
    assert trial.driver.progress.forms == {"item": {"price": LearnedForm("text", "item", 0, 1, 0)}}
