"""Rounds that publish Avro: the values that a topic gets, what suppresses a document, and what stops a product."""

from dataclasses import replace
from typing import Any

import pytest

from tests.required import require_schema_packages

require_schema_packages()

from processor.definitions.load import load  # noqa: E402
from processor.job.schema_registry.open_schemas import open_avro_writer  # noqa: E402
from processor.plan.planning import plan_alone  # noqa: E402
from processor.progress.open_changes import PARTITION  # noqa: E402
from processor.records import canonical_json  # noqa: E402
from processor.records.record import Record  # noqa: E402
from processor.settings.settings import Settings  # noqa: E402
from processor.trial.trial import Trial  # noqa: E402
from tests.unit.product.avro_trip import NUMBER, AvroTrip  # noqa: E402

DEFINITIONS = load(
    {
        "entities.yaml": "user: {key: [id], columns: {id: int, name: string, age: int}}",
        "framed.yaml": "{product: framed, root: user, format: avro, fields: [id, name, age]}",
        "plain.yaml": "{product: plain, root: user, fields: [id, age]}",
    }
)
PLAN = plan_alone(DEFINITIONS, slots=20)


def avro_trial(*, log_values: bool = False, **more: Any) -> Trial:
    """A trial whose driver publishes as a job does: with the ids of the schemas."""
    trial = Trial(plan=PLAN, settings=Settings(log_values=log_values), **more)
    trial.driver.executor = replace(trial.driver.executor, open_writer=open_avro_writer)  # type: ignore[type-var]
    trial.driver.schema_ids = {"framed": NUMBER}
    return trial


def user(offset: int, row: dict[str, Any] | None) -> Record:
    value = None if row is None else canonical_json.encode(row)
    return Record(topic="user", partition=0, offset=offset, key=b'{"id":1}', value=value)


def values(trial: Trial, product: str) -> list[bytes | None]:
    return [message.value for message in trial.published.messages if message.topic == product]


def test_a_topic_gets_framed_documents_each_once_and_a_tombstone() -> None:
    trial = avro_trial()
    row = {"id": 1, "name": "a", "age": 2, "other": 1}
    trial.batch([user(0, row)])
    trial.batch([user(1, {**row, "other": 2})])
    trial.batch([user(2, {**row, "name": "b"})])
    trial.batch([user(3, None)])
    trip = AvroTrip(DEFINITIONS.products["framed"], DEFINITIONS.entities)
    documents = [{"id": 1, "name": name, "age": 2} for name in "ab"]
    assert values(trial, "framed") == [*map(trip.write, documents), None]
    assert [message.key for message in trial.published.messages if message.topic == "framed"] == [b'{"id":1}'] * 3
    assert values(trial, "plain") == [b'{"id":1,"age":2}', None]


def test_a_trial_without_a_registry_shows_documents_as_json() -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch([user(0, {"id": 1, "name": "a", "age": 2})])
    assert values(trial, "framed") == [b'{"id":1,"name":"a","age":2}']


@pytest.mark.parametrize("log_values", [True, False])
def test_a_value_beyond_avro_stops_the_product_and_no_other(log_values: bool) -> None:
    trial = avro_trial(log_values=log_values)
    trial.batch([user(0, {"id": 1, "name": "a", "age": 2**63})])
    named = "the document of 1" if log_values else "a document (log_values = true names it)"
    number = "number 9223372036854775808" if log_values else "a number"
    assert trial.stopped == {
        "framed": f"{named} cannot be made (age: expected int, found {number} (Avro has 64 bits: declare decimal(38,0))): "
        "correct the product or the row"
    }
    assert values(trial, "framed") == []
    assert values(trial, "plain") == [b'{"id":1,"age":9223372036854775808}']


def test_a_product_without_a_schema_is_stopped_until_the_next_start() -> None:
    trial = avro_trial()
    events: list[str] = []
    trial.driver.report = lambda event: events.append(event.text)
    trial.driver.unready = {"framed": "the registry refuses it"}
    trial.driver.start()
    trial.driver.adopt(PLAN)
    trial.batch([user(0, {"id": 1, "name": "a", "age": 2})])
    assert trial.stopped == {"framed": "the registry refuses it"}
    assert sum(text.startswith("product framed stopped: the registry refuses it.") for text in events) == 1
    assert (len(values(trial, "framed")), len(values(trial, "plain"))) == (0, 1)
    assert any("backlog" in item["SK"] for item in trial.store.partition(PARTITION))

    again = avro_trial(run=2, other_store=trial.store)
    again.driver.start()
    again.driver.adopt(PLAN)
    again.finish()
    trip = AvroTrip(DEFINITIONS.products["framed"], DEFINITIONS.entities)
    assert values(again, "framed") == [trip.write({"id": 1, "name": "a", "age": 2})]
