"""`statestore explain PRODUCT KEY`, over the state of a trial."""

import json
from contextlib import nullcontext

import pytest

from processor.cli import look
from processor.cli.choices import RequestedDocument
from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.job.kafka import reader
from processor.language.definitions.load import load
from processor.values.record import Record

Printed = pytest.CaptureFixture[str]
ENTITIES = "user:\n  key: [id]\n  columns: {id: int, active: bool}\n"
PLAN = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": "product: p\nroot: user\nwhere: active\n"}), slots=20)


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(plan=PLAN, settings=Settings())
    values = (b'{"id":1,"active":true}', b'{"id":2,"active":false}')
    trial.batch(
        Record(topic="user", partition=0, offset=n, epoch=1, key=b'{"id":%d}' % (n + 1), value=value)
        for n, value in enumerate(values)
    )
    runner = StepRunner(store=trial.store)
    monkeypatch.setattr(look, "stored_boundaries", lambda *_: ())
    monkeypatch.setattr(
        look,
        "requested_document",
        lambda options, _: nullcontext(RequestedDocument(PLAN, PLAN.products["p"], options.key, runner)),
    )
    settings = Settings(bootstrap_servers="b:1")
    monkeypatch.setattr(look, "reachable_settings", lambda _: nullcontext(settings))


def test_it_prints_the_document_and_its_rows(capsys: Printed) -> None:
    assert main(["explain", "p", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        '{"id":1,"active":true}',
        "user 1; topic user, partition 0, offset 0, epoch 1; by PK = 'TABLE#user' AND SK = '1'",
    ]


def test_a_missing_document_has_its_reason_and_the_status_of_get(capsys: Printed) -> None:
    assert main(["explain", "p", "2"]) == 1
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "p has no document for 2: the row of the root is stored, but `where: active` is false"
    assert others[1] == "  left out: `where: active` is false"
    assert main(["explain", "p", "3"]) == 1
    (only,) = capsys.readouterr().out.splitlines()
    assert only.startswith("p has no document for 3: the table has no row user 3: no record of it came from topic user")


def test_json_has_the_same_tree_and_on_request_the_times(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["explain", "p", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "document": {"id": 1, "active": True},
        "waits": None,
        "request": "PK = 'TABLE#user' AND SK = '1'",
        "reason": "",
        "root": {
            "entity": "user",
            "key": "1",
            "origin": {"topic": "user", "epoch": 1, "partition": 0, "offset": 0},
            "left_out": "",
            "empty": [],
            "joins": [],
        },
    }
    came = Record(topic="user", partition=0, offset=0, timestamp=1420070400000, key=None, value=None)
    monkeypatch.setattr(reader, "read_record", lambda *_: came)
    assert main(["explain", "p", "1", "--time"]) == 0
    assert "epoch 1; came 2015-01-01T00:00:00.000+00:00; by PK" in capsys.readouterr().out


def test_a_key_refuses_what_explains_a_definition(capsys: Printed) -> None:
    assert main(["explain", "p", "1", "--mermaid"]) == 1
    assert "leave --definitions, --sql, --mermaid and --tree out" in capsys.readouterr().err
