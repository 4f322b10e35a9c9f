"""The first record with one meaning settles the form of a decimal column, and the other form is a dead letter from then on."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import JobEvent
from processor.language.definitions.load import load
from processor.values.decimal_forms import LearnedForm
from processor.values.entity import DecimalForm
from processor.values.record import Change, Record
from tests.unit.engine.protocol.decoding import ITEM, decoded, entity, envelope, with_schema
from tests.unit.engine.rounds.settled_items import (
    BYTES,
    DIGITS,
    PLAN,
    item,
    letters,
    plan,
    prices,
    reasons,
    settled,
    started,
)

CURE = "declare the form that the connector writes, `decimals: text` or `decimals: bytes`, or send schemas"


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
    trial.batch([item(3, text, key=4)])
    assert "it may be a number or Debezium's bytes" in reasons(trial)[3]
    trial.batch([item(4, text, key=5), item(5, first), item(6, text, key=2), item(7, refused, key=3)])
    assert prices(trial) == {1: Decimal("12.34"), 2: Decimal(number), 5: Decimal(number)}
    found = reasons(trial)
    assert f"the column has `decimals: {form}` since the record item/0/5: {CURE}" in found[7]
    assert found.keys() == {3, 7}
    assert settled(trial) == {"price": LearnedForm(form, "item", 0, 1, 5)}  # type: ignore[arg-type]
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
    trial.batch([item(0, "12.34", tax="1234")])
    assert settled(trial) == {}
    trial.batch([item(1, None, tax="BNI="), item(2, "BNI=", tax="1234")])
    assert {name: (one.form, one.offset) for name, one in settled(trial).items()} == {
        "tax": ("bytes", 1),
        "price": ("bytes", 2),
    }


def test_a_form_that_a_later_record_of_the_batch_settles_lets_an_earlier_one_settle_another_column() -> None:
    trial = started()
    trial.batch([item(0, "1000"), item(1, "12.34", tax="1234", key=2), item(2, None, tax="BNI=", key=3)])
    assert {name: (one.form, one.offset) for name, one in settled(trial).items()} == {
        "tax": ("bytes", 2),
        "price": ("text", 1),
    }
    assert prices(trial) == {1: Decimal(1000), 2: Decimal("12.34"), 3: None}
    assert reasons(trial) == {}


def test_letters_that_may_be_a_word_or_bytes_settle_nothing() -> None:
    trial = started()
    trial.batch([item(0, "free"), item(1, "AYag", key=2)])
    assert settled(trial) == {}
    assert prices(trial) == {}
    assert "it may be a word or Debezium's bytes: declare `decimals: text` or `decimals: bytes`" in reasons(trial)[0]
    trial.batch([item(2, "AYag", key=3), item(3, "/w==", key=4)])
    assert prices(trial) == {3: Decimal(1000), 4: Decimal("-0.01")}
    trial.driver.replay(letters(trial)[1:])
    assert prices(trial) == {2: Decimal(1000), 3: Decimal(1000), 4: Decimal("-0.01")}


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


def test_text_of_one_meaning_shows_its_form_only_where_no_schema_and_no_plain_row_says_how_to_read_it() -> None:
    row = {"id": 7, "amount": "12.34"}
    schema = [{"field": "amount", "type": "string"}, {"field": "id", "type": "int32"}]
    shows = {"amount": "text"}
    for value, found in (
        (envelope("c", after=row), shows),
        ({**row, "__op": "c"}, shows),
        (row, {}),
        (with_schema({**row, "__op": "c"}, schema), {}),
        (with_schema({**row, "__op": "c"}, schema[1:]), shows),
        (envelope("d", before=row), shows),
    ):
        result = decoded(ITEM, {"id": 7, "amount": "BNI="}, value)
        assert isinstance(result, Change), result
        assert result.shows == found, value
    fee = entity("fee", "amount", "amount decimal(9,2)")
    for key in ({"amount": "12.5"}, "12.5"):
        result = decoded(fee, key, None)
        assert isinstance(result, Change), result
        assert result.shows == shows
    for table, value in ((ITEM, {"id": 7, "bio": "12.34"}), (replace(ITEM, decimals="text"), row)):
        result = decoded(table, None, envelope("c", after=value))
        assert isinstance(result, Change), result
        assert result.shows == {}


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
    trial.batch([item(0, "BNI="), item(1, "12.34")])
    assert settled(trial)["price"].form == "bytes"
    trial.driver.adopt(plan(f", decimals: {declared}"))
    assert settled(trial) == {}
    trial.batch([item(2, "1234", key=2)])
    assert prices(trial)[2] == Decimal({"text": DIGITS, "bytes": BYTES}[declared]["1234"])
    assert settled(trial) == {}
    trial.driver.adopt(PLAN)
    trial.batch([item(3, "12.34", key=3)])
    assert settled(trial)["price"] == LearnedForm("text", "item", 0, 1, 3)


def test_a_replay_reads_a_dead_letter_by_the_form_that_is_settled_by_now() -> None:
    trial = started()
    trial.batch([item(0, "1234"), item(1, "free", key=3)])
    trial.batch([item(2, "12.34", key=2)])
    reports = trial.driver.replay(letters(trial))
    assert {report.record.offset: report.outcome for report in reports} == {0: "applied", 1: "refused"}
    assert prices(trial) == {1: Decimal(1234), 2: Decimal("12.34")}


def test_a_replay_settles_a_form_too() -> None:
    trial = started(by=plan(", decimals: bytes"))
    trial.batch([item(0, "12.34")])
    trial.driver.adopt(PLAN)
    (report,) = trial.driver.replay(letters(trial))
    assert report.outcome == "applied"
    assert (
        settled(trial)["price"] == trial.driver.progress.forms["item"]["price"] == LearnedForm("text", "item", 0, 1, 0)
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
    assert settled(trial) == {"amount": LearnedForm("text", "fee", 0, 1, 1)}
    assert reasons(trial).keys() == {3}


def test_an_array_with_both_forms_is_a_dead_letter() -> None:
    text = "fee: {key: [id], columns: {id: int, parts: 'decimal(9,2)[]'}}"
    trial = started(by=plan_alone(load({"entities.yaml": text, "fees.yaml": "product: fees\nroot: fee\n"}), 5))
    rows = [{"id": n, "parts": parts, "__op": "c"} for n, parts in enumerate([["1.5", "BNI="], ["1234", None]])]
    where: dict[str, Any] = {"topic": "fee", "partition": 0, "epoch": 1, "key": None}
    trial.batch([Record(**where, offset=n, value=json.dumps(row).encode()) for n, row in enumerate(rows)])
    assert reasons(trial).keys() == {0}
    trial.finish()
    assert json.loads(trial.published.messages[-1].value or b"")["parts"] == [1234, None]


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
