"""`statestore row`, `rows` and `keys`, over the state of a trial."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from processor.cli import look
from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.job.kafka import reader
from processor.language.definitions.load import load
from processor.values import canonical_json
from processor.values.record import Record
from registry.model import EpochBoundary

Printed = pytest.CaptureFixture[str]
ENTITIES = "person:\n  key: [id]\n  columns: {id: int, name: string, boss: int}\n"
PRODUCT = "product: p\nroot: person\nembed: {reports: {many: person, on: {boss: id}}, same: {many: person, on: {name: name}}}\n"


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT}), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    rows: list[dict[str, Any] | None] = [
        {"id": 1, "name": "A\nda", "boss": None, "note": "x"},
        {"id": 2, "name": "Bo", "boss": 1},
        None,
    ]
    trial.batch(
        Record(
            topic="person",
            partition=0,
            offset=n,
            epoch=1,
            key=b'{"id":%d}' % (n + 1),
            value=None if row is None else canonical_json.encode(row),
        )
        for n, row in enumerate(rows)
    )
    boundary = EpochBoundary(topic="person", topic_id="x", partition=0, from_offset=0, epoch=1, entity="person")
    monkeypatch.setattr(look, "stored_boundaries", lambda *_: (boundary,))
    monkeypatch.setattr(look, "stored_state", lambda _: nullcontext((plan, trial.store)))
    settings = Settings(bootstrap_servers="b:1")
    monkeypatch.setattr(look, "reachable_settings", lambda _: nullcontext(settings))


def test_row_shows_columns_slots_and_why_a_column_has_no_value(capsys: Printed) -> None:
    assert main(["row", "person", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "person 1; topic person, partition 0, offset 0, epoch 1",
        "  id     1",
        '  name   "A\\nda"',
        "  boss   null     null since offset 0 or longer",
        '  note   "x"      not declared',
        "  GSI_1  no key   of boss",
        "  GSI_2  A\\nda    of name",
    ]


def test_row_asks_kafka_for_the_time_on_request(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    came = Record(topic="person", partition=0, offset=1, timestamp=1420070400123, key=None, value=None)

    def read(*place: Any) -> Record:
        asked.append(place)
        return came

    monkeypatch.setattr(reader, "read_record", read)
    assert main(["row", "person", "2", "--time", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert asked == [("b:1", {}, "person", 0, 1)]
    assert found["came"] == "2015-01-01T00:00:00.123+00:00"
    assert found["columns"] == {"id": 2, "name": "Bo", "boss": 1}
    assert found["slots"] == {"GSI_1": "1", "GSI_2": "Bo"}
    monkeypatch.setattr(reader, "read_record", lambda *_: None)
    assert main(["row", "person", "2", "--time"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  came unknown: Kafka does not hold the record any more"


def test_row_says_that_a_row_is_deleted_or_was_never_stored(capsys: Printed) -> None:
    assert main(["row", "person", "3"]) == 0
    assert capsys.readouterr().out.startswith("person 3; deleted by topic person, partition 0, offset 2, epoch 1\n")
    assert main(["row", "person", "4"]) == 1
    assert capsys.readouterr().err == (
        "the table has no row person 4: no record of it came from topic person, `statestore dead-letters list` has it, or a "
        "delete or an erasure is long ago\n"
    )


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["rows", "person"], "3 read, 1 of them deleted\n"),
        (["rows", "person", "--after", "2"], "1 read, 1 of them deleted\n"),
        (
            ["rows", "person", "--after", "2", "--limit", "1"],
            "1 read, 1 of them deleted, and there may be more: add --after 3\n",
        ),
    ],
)
def test_rows_count_deleted_rows_apart(words: list[str], end: str, capsys: Printed) -> None:
    assert main(words) == 0
    assert capsys.readouterr().err == end


def test_rows_and_keys_say_how_to_go_on(capsys: Printed) -> None:
    assert main(["rows", "person", "--limit", "1"]) == 0
    first = capsys.readouterr()
    assert json.loads(first.out)["value"] == {"id": 1, "name": "A\nda", "boss": None, "note": "x"}
    assert first.err == "1 read, and there may be more: add --after 1\n"
    assert main(["rows", "person", "--after", "1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["key"] == {"id": 2}
    assert main(["keys", "p"]) == 0
    assert capsys.readouterr().out == '{"id":1}\n{"id":2}\n'


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["rows", "persn"], "there is no entity `persn`; did you mean 'person'?"),
        (["keys", "q"], "there is no product `q`"),
        (["row", "person", '{"idd": 1}'], 'the key of person is id; give it as JSON: {"id":7}'),
    ],
)
def test_a_wrong_name_or_key_gets_its_cure(words: list[str], cure: str, capsys: Printed) -> None:
    assert main(words) == 1
    assert cure in capsys.readouterr().err
