"""Rounds that publish Avro: the values that a topic gets, what suppresses a document, and a document that does not fit."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.engine.plan.planning import plan_alone  # noqa: E402
from processor.engine.protocol.pending import PARTITION  # noqa: E402
from processor.engine.rounds.round import PublishSetup  # noqa: E402
from processor.engine.rounds.trial import Trial  # noqa: E402
from processor.environment.settings.settings import Settings  # noqa: E402
from processor.job.kafka.schemas import open_avro_writer  # noqa: E402
from processor.language.definitions.load import load  # noqa: E402
from processor.values import canonical_json  # noqa: E402
from processor.values.dead_letters import DeadLetter, rejected_record  # noqa: E402
from processor.values.record import Record  # noqa: E402
from tests.unit.language.product.avro_trip import NUMBER, AvroTrip  # noqa: E402

TEXTS = {
    "entities.yaml": "user: {key: [id], columns: {id: int, name: string, age: int}}",
    "framed.yaml": "{product: framed, root: user, format: avro, fields: [id, name, age]}",
    "plain.yaml": "{product: plain, root: user, fields: [id, age]}",
}
DEFINITIONS = load(TEXTS)
PLAN = plan_alone(DEFINITIONS, slots=20)
TRIP = AvroTrip(DEFINITIONS.products["framed"], DEFINITIONS.entities)
BEYOND = {"id": 1, "name": "a", "age": 2**63}
REASON = (
    "the document of product framed does not fit its Avro schema: age: expected int, found a number (Avro has 64 bits: declare "
    "decimal(38,0))"
)


def avro_trial(*, log_values: bool = False, **more: Any) -> Trial:
    """A trial whose driver publishes as a job does: with the ids of the schemas."""
    trial = Trial(plan=PLAN, settings=Settings(log_values=log_values), **more)
    trial.driver.rounds.executor = replace(trial.driver.rounds.executor, open_writer=open_avro_writer)  # type: ignore[type-var]
    trial.driver.progress.setup = PublishSetup(schema_ids={"framed": NUMBER})
    return trial


def user(offset: int, row: dict[str, Any] | None, id_: int = 1) -> Record:
    value = None if row is None else canonical_json.encode(row)
    return Record(topic="user", partition=0, offset=offset, key=b'{"id":%d}' % id_, value=value)


def values(trial: Trial, product: str) -> list[bytes | None]:
    return [message.value for message in trial.published.messages if message.topic == product]


def test_a_topic_gets_framed_documents_each_once_and_a_tombstone() -> None:
    trial = avro_trial()
    row = {"id": 1, "name": "a", "age": 2, "other": 1}
    trial.batch([user(0, row)])
    trial.batch([user(1, {**row, "other": 2})])
    trial.batch([user(2, {**row, "name": "b"})])
    trial.batch([user(3, None)])
    documents = [{"id": 1, "name": name, "age": 2} for name in "ab"]
    assert values(trial, "framed") == [*map(TRIP.write, documents), None]
    assert [message.key for message in trial.published.messages if message.topic == "framed"] == [b'{"id":1}'] * 3
    assert values(trial, "plain") == [b'{"id":1,"age":2}', None]


def test_a_trial_without_a_registry_shows_documents_as_json() -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch([user(0, {"id": 1, "name": "a", "age": 2})])
    assert values(trial, "framed") == [b'{"id":1,"name":"a","age":2}']


def letters(trial: Trial) -> list[tuple[str, str, bytes | None, bytes | None, str]]:
    found = [(one, one.record) for one in map(rejected_record, trial.rejects.messages)]
    return [(one.code, record.topic, record.key, record.value, one.reason) for one, record in found]


@pytest.mark.parametrize("log_values", [True, False])
def test_a_value_beyond_avro_is_a_dead_letter_without_the_value_and_all_else_goes_on(log_values: bool) -> None:
    trial = avro_trial(log_values=log_values)
    events: list[str] = []
    trial.driver.progress.report = lambda event: events.append(event.text)
    tally = trial.batch([user(0, BEYOND), user(1, {**BEYOND, "id": 2, "age": 3}, 2)])
    assert letters(trial) == [("document-misfit", "framed", b'{"id":1}', None, REASON)]
    assert any(text.startswith(f"{REASON}. Its dead letter names the root") for text in events)
    assert trial.stopped == {}
    assert list(trial.driver.progress.unfit) == [("framed", "1")]
    assert values(trial, "framed") == [TRIP.write({"id": 2, "name": "a", "age": 3})]
    assert values(trial, "plain") == [b'{"id":1,"age":9223372036854775808}', b'{"id":2,"age":3}']
    assert (tally["read"], tally["applied"], tally["dead letters"], tally["unfit"]) == (2, 2, 0, 1)


def test_the_document_goes_out_when_a_change_makes_it_fit() -> None:
    trial = avro_trial()
    trial.batch([user(0, {**BEYOND, "age": 2})])
    trial.batch([user(1, BEYOND)])
    trial.batch([user(2, {**BEYOND, "other": 1})])
    assert len(letters(trial)) == 1, "the same document gets no second dead letter"
    letter = DeadLetter(rejected=rejected_record(trial.rejects.messages[0]), kept_since=trial.clock.date())
    assert [report.outcome for report in trial.driver.replay([letter])] == ["refused"]
    trial.batch([user(3, {**BEYOND, "age": 2})])
    assert [report.outcome for report in trial.driver.replay([letter])] == ["superseded"]
    assert values(trial, "framed") == [TRIP.write({**BEYOND, "age": 2})] * 2
    assert trial.driver.progress.unfit == {}


def test_the_document_goes_out_under_definitions_whose_type_holds_it() -> None:
    trial = avro_trial()
    trial.driver.start()
    trial.driver.adopt(PLAN)
    trial.batch([user(0, BEYOND)])
    trial.finish()  # no change is open and no walk is due, so the backlog alone knows the root
    wide = load({**TEXTS, "entities.yaml": TEXTS["entities.yaml"].replace("age: int", "age: 'decimal(38,0)'")})
    trial.driver.adopt(plan_alone(wide, slots=20))
    trial.finish()
    assert values(trial, "framed") == [AvroTrip(wide.products["framed"], wide.entities).write(BEYOND)]
    assert trial.driver.progress.unfit == {}


def test_a_value_that_the_avro_library_refuses_is_a_dead_letter_too() -> None:
    def refuse(_: object) -> bytes:
        raise TypeError("a secret")

    trial = avro_trial()
    trial.driver.rounds.executor = replace(trial.driver.rounds.executor, open_writer=lambda _: refuse)  # type: ignore[type-var]
    trial.batch([user(0, {**BEYOND, "age": 2})])
    assert [reason for *_, reason in letters(trial)] == [
        "the document of product framed does not fit its Avro schema: TypeError"
    ]


def test_a_trial_without_a_registry_shows_the_misfit() -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    trial.batch([user(0, BEYOND)])
    assert [reason for *_, reason in letters(trial)] == [REASON]
    assert values(trial, "framed") == []


def test_a_product_without_a_schema_is_stopped_until_the_next_start() -> None:
    trial = avro_trial()
    events: list[str] = []
    trial.driver.progress.report = lambda event: events.append(event.text)
    trial.driver.progress.setup = replace(trial.driver.progress.setup, unready={"framed": "the registry refuses it"})
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
    assert values(again, "framed") == [TRIP.write({"id": 1, "name": "a", "age": 2})]
