"""The first record with one meaning settles the form of a decimal column, and the other form is a dead letter from then on."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from processor.definitions.load import load
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone
from processor.progress.form_notes import PARTITION, read_form
from processor.records.dead_letters import read_dead_letters
from processor.records.entity import DecimalForm
from processor.records.record import Record
from processor.records.settled_form import SettledForm
from processor.rounds.job_event import JobEvent
from processor.settings.settings import Settings
from processor.trial.trial import Trial
from statestore.memory import MemoryStore
from statestore.store import Store

ENTITIES = "item: {key: [id], columns: {id: int, price: 'decimal(12,2)', tax: 'decimal(12,2)', raw: decimal}%s}"
PRODUCT = "product: shop\nroot: item\nfields: [price, tax, raw]\n"
CURE = "declare the form that the connector writes, `decimals: text` or `decimals: bytes`, or send schemas"
VALUES = {"12.34": "text", "12345": "text", "1234": "either", "1000": "either", "BNI=": "bytes", "free": "bytes"}
DIGITS = {"12.34": "12.34", "12345": "12345", "1234": "1234", "1000": "1000"}
BYTES = {"1234": "-26588.24", "1000": "-26672.12", "BNI=": "12.34", "free": "83045.42"}


def plan(more: str = "") -> Plan:
    return plan_alone(load({"entities.yaml": ENTITIES % more, "shop.yaml": PRODUCT}), 5)


PLAN = plan()


def item(offset: int, price: Any, *, key: int = 1, partition: int = 0, epoch: int = 1, **more: Any) -> Record:
    row = {"before": None, "after": {"id": key, "price": price, **more}, "op": "u", "source": {}}
    where: dict[str, Any] = {"topic": "item", "partition": partition, "offset": offset, "epoch": epoch}
    return Record(**where, key=json.dumps({"id": key}).encode(), value=json.dumps(row).encode(), timestamp=1_000)


def started(store: Store | None = None, run: int = 1, by: Plan = PLAN) -> Trial:
    trial = Trial(plan=by, settings=Settings(), other_store=store or MemoryStore(), run=run)
    trial.driver.start()
    trial.driver.adopt(by)
    return trial


def prices(trial: Trial) -> dict[int, Any]:
    trial.finish()
    shown = {
        m.key: json.loads(m.value or b"null", parse_float=Decimal, parse_int=Decimal) for m in trial.published.messages
    }
    return {json.loads(key or b"")["id"]: document["price"] for key, document in shown.items()}


def reasons(trial: Trial) -> dict[int, str]:
    return {letter.rejected.record.offset: letter.rejected.reason for letter in letters(trial)}


def letters(trial: Trial) -> Any:
    kept = [Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value, headers=m.headers, timestamp=10**13)
            for n, m in enumerate(trial.rejects.messages)]  # fmt: skip
    return read_dead_letters(kept)


def settled(trial: Trial) -> dict[str, SettledForm]:
    return {note.column: note.settled for note in map(read_form, trial.store.partition(PARTITION))}


@pytest.mark.parametrize(
    ("first", "form", "taken", "refused"),
    [("12.34", "text", {"1234": "1234"}, "free"), ("BNI=", "bytes", {"1234": "-26588.24"}, "12.34")],
)
def test_the_first_text_with_one_meaning_settles_the_column(
    first: str, form: str, taken: dict[str, str], refused: str
) -> None:
    trial, seen = started(), list[JobEvent]()
    trial.driver.progress.report = seen.append
    ((text, number),) = taken.items()
    trial.batch([item(4, text), item(5, first), item(6, text, key=2), item(7, refused, key=3)])
    assert prices(trial) == {1: Decimal("12.34"), 2: Decimal(number)}
    found = reasons(trial)
    assert "it may be a number or Debezium's bytes" in found[4]
    assert f"the column has `decimals: {form}` since the record item/0/5: {CURE}" in found[7]
    assert found.keys() == {4, 7}
    assert settled(trial) == {"price": SettledForm(form, "item", 0, 1, 5)}  # type: ignore[arg-type]
    texts = [event.text for event in seen if event.what == "decimals"]
    assert texts == [f"column price of item has `decimals: {form}` since item/0/5"]


def test_later_batches_and_later_runs_keep_the_form() -> None:
    trial = started()
    trial.batch([item(0, "12.34")])
    trial.batch([item(1, "free"), item(2, "1234", key=2)])
    assert prices(trial) == {1: Decimal("12.34"), 2: Decimal("1234")}
    again = started(trial.store, run=2)
    again.batch([item(3, "BNI=", key=3), item(4, "1000", key=4)])
    assert prices(again) == {4: Decimal("1000")}
    assert reasons(again).keys() == {3}


def test_each_column_settles_alone_and_a_refused_record_settles_nothing() -> None:
    trial = started()
    trial.batch([item(0, "12.34", tax="1234"), item(1, None, tax="BNI="), item(2, "free", tax="1234")])
    assert {name: (one.form, one.offset) for name, one in settled(trial).items()} == {
        "tax": ("bytes", 1),
        "price": ("bytes", 2),
    }


def test_a_number_a_schema_and_a_plain_row_settle_nothing() -> None:
    trial = started()
    plain = replace(item(3, None), value=b'{"id":1,"price":"1234"}')
    fields = [{"field": "after", "type": "struct", "fields": [{"field": "price", "type": "string"}]}]
    schema = {"schema": {"type": "struct", "fields": fields}, "payload": json.loads(item(2, "1000").value or b"")}
    trial.batch(
        [
            item(0, 12),
            item(1, {"scale": 1, "value": "Nw=="}),
            replace(item(2, 0), value=json.dumps(schema).encode()),
            plain,
        ]
    )
    assert settled(trial) == {}
    assert prices(trial) == {1: Decimal(1234)}


def test_a_column_without_a_scale_has_digits_and_settles_nothing() -> None:
    trial = started()
    trial.batch([item(0, None, raw="1000"), item(1, None, raw="free"), item(2, None, raw="BNI=")])
    trial.finish()
    assert json.loads(trial.published.messages[-1].value or b"")["raw"] == 1000
    assert reasons(trial).keys() == {1, 2}
    assert settled(trial) == {}


@pytest.mark.parametrize("declared", ["text", "bytes"])
def test_a_declaration_replaces_what_a_record_settled_and_settles_nothing(declared: DecimalForm) -> None:
    trial = started()
    trial.batch([item(0, "free"), item(1, "12.34")])
    assert settled(trial)["price"].form == "bytes"
    trial.driver.adopt(plan(f", decimals: {declared}"))
    assert settled(trial) == {}
    trial.batch([item(2, "1234", key=2)])
    assert prices(trial)[2] == Decimal({"text": DIGITS, "bytes": BYTES}[declared]["1234"])
    assert settled(trial) == {}
    trial.driver.adopt(PLAN)
    trial.batch([item(3, "12.34", key=3)])
    assert settled(trial)["price"] == SettledForm("text", "item", 0, 1, 3)


def test_a_replay_reads_a_dead_letter_by_the_form_that_is_settled_by_now() -> None:
    trial = started()
    trial.batch([item(0, "1234"), item(1, "12.34", key=2), item(2, "free", key=3)])
    reports = trial.driver.replay(letters(trial))
    assert {report.record.offset: report.outcome for report in reports} == {0: "applied", 2: "refused"}
    assert prices(trial) == {1: Decimal(1234), 2: Decimal("12.34")}


def test_a_replay_settles_a_form_too() -> None:
    trial = started(by=plan(", decimals: bytes"))
    trial.batch([item(0, "12.34")])
    trial.driver.adopt(PLAN)
    (report,) = trial.driver.replay(letters(trial))
    assert report.outcome == "applied"
    assert (
        settled(trial)["price"] == trial.driver.progress.forms["item"]["price"] == SettledForm("text", "item", 0, 1, 0)
    )


def test_a_key_settles_its_form_too() -> None:
    text = "fee: {key: [amount], columns: {amount: 'decimal(9,2)'}}"
    by = plan_alone(load({"entities.yaml": text, "fees.yaml": "product: fees\nroot: fee\n"}), 5)
    trial = started(by=by)

    def tombstone(offset: int, key: bytes) -> Record:
        return Record(topic="fee", partition=0, offset=offset, epoch=1, key=key, value=None)

    trial.batch(
        [tombstone(0, b'{"amount":"1234"}'), tombstone(1, b'"12.5"'), tombstone(2, b'"1234"'), tombstone(3, b'"free"')]
    )
    assert settled(trial) == {"amount": SettledForm("text", "fee", 0, 1, 1)}
    assert reasons(trial).keys() == {0, 3}


def test_an_array_with_both_forms_is_a_dead_letter() -> None:
    text = "fee: {key: [id], columns: {id: int, parts: 'decimal(9,2)[]'}}"
    trial = started(by=plan_alone(load({"entities.yaml": text, "fees.yaml": "product: fees\nroot: fee\n"}), 5))
    rows = [{"id": n, "parts": parts, "__op": "c"} for n, parts in enumerate([["1.5", "BNI="], ["1234", None]])]
    where: dict[str, Any] = {"topic": "fee", "partition": 0, "epoch": 1, "key": None}
    trial.batch([Record(**where, offset=n, value=json.dumps(row).encode()) for n, row in enumerate(rows)])
    assert reasons(trial).keys() == {0}
    trial.finish()
    assert json.loads(trial.published.messages[-1].value or b"")["parts"] == [1234, None]


def expected(records: Sequence[Record]) -> tuple[dict[int, Decimal], set[int]]:
    """The prices and the offsets of the dead letters, by a reading of one partition from its beginning."""
    form, found, refused = "", dict[int, Decimal](), set[int]()
    for record in records:
        after = json.loads(record.value or b"")["after"]
        meaning = VALUES[after["price"]]
        form = form or (meaning if meaning != "either" else "")
        if not form or meaning not in ("either", form):
            refused.add(record.offset)
        else:
            found[after["id"]] = Decimal({"text": DIGITS, "bytes": BYTES}[form][after["price"]])
    return found, refused


@pytest.mark.parametrize("seed", range(60))
def test_any_batches_crashes_and_repeated_batches_of_a_partition_end_alike(seed: int) -> None:
    random = Random(seed)
    forms = random.choice([("1234", "1000", "12.34"), ("1234", "1000", "BNI="), tuple(VALUES)])
    records = [item(n, random.choice(forms), key=random.randrange(4)) for n in range(12)]
    cuts = sorted({0, 12, *(random.randrange(12) for _ in range(4))})
    shown, refused = dict[int, Decimal](), set[int]()
    trial, run = started(), 1
    for start, end in pairwise(cuts):
        trial.batch(records[start:end])
        while random.random() < 0.4:  # a crash: the next run repeats the batch, or all from an earlier one
            shown, refused, run = shown | prices(trial), refused | reasons(trial).keys(), run + 1
            trial = started(trial.store, run)
            trial.batch(records[random.choice([start, 0]) : end])
    assert (shown | prices(trial), refused | reasons(trial).keys()) == expected(records)


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

    def two_tasks(part: Any, work: Iterable[Iterable[Record]], round_: Any, overlay: Any) -> Any:
        return [lane for task in work for lane in once(part, [task], round_, overlay)]

    monkeypatch.setattr(type(executor), "run_round", lambda _, *args: two_tasks(*args))
    tasks = [[item(0, "12.34", key=1)], [item(0, "free", key=2, partition=1), item(1, "1234", key=3, partition=1)]]
    trial.driver.process_batch(tasks, {})
    assert prices(trial) == {1: Decimal("12.34"), 3: Decimal(1234)}
    assert ["since the record item/0/0" in letter.rejected.reason for letter in letters(trial)] == [True]
    assert trial.driver.progress.forms == {"item": {"price": SettledForm("text", "item", 0, 1, 0)}}


def test_a_settled_column_costs_no_request() -> None:
    trial = started()
    trial.batch([item(0, "12.34")])
    before = trial.store.requests.copy()
    trial.batch([item(1, "12.5")])
    after = trial.store.requests - before
    other = started(by=plan(", decimals: text"))
    other.batch([item(0, "12.34")])
    before = other.store.requests.copy()
    other.batch([item(1, "12.5")])
    assert after == other.store.requests - before
