"""A broker that loses its last records gives their offsets again: an erasure learns from `statestore epoch` which records are
new."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.job.kafka.admin import Admin
from tests.integration.job.plain_engine import plain_engine
from tests.integration.job.test_postgres_job import set_environment

Scene = Any  # conftest's


@pytest.mark.rest
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of the verb, which ends with its process
def test_an_erased_person_registers_again_at_offsets_that_the_broker_had_lost(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_environment(monkeypatch, scene.settings)
    topic = scene.topic("user")
    scene.produce(rows.user(1, "old"), rows.user(2, "other"), partition=0)
    scene.run()
    ends = Admin.ends
    with monkeypatch.context() as longer, plain_engine(scene.positions):
        lost = 9  # records that the topic has at the erasure, and later no more
        longer.setattr(
            Admin, "ends", lambda self, name: {p: n + lost * (name == topic) for p, n in ends(self, name).items()}
        )
        assert main(["erase", "user", '{"id": 1}', "--json"]) == 0
    scene.produce(rows.user(1, "too early"), partition=0)
    assert scene.run().tally["ignored: erased"] == 1
    capsys.readouterr()

    for epoch in (2, 3):  # the operator gives the command again
        assert main(["epoch", topic, "--why", "the broker has lost its last records"]) == 0
        assert f"{topic}/0: epoch {epoch} from offset 3" in capsys.readouterr().out
    scene.produce(rows.user(1, "a new start"), partition=0)
    scene.lose_checkpoint()
    assert scene.run().tally["ignored: erased"] == 2
    assert scene.documents()['{"id":1}']["name"] == "a new start"
    assert scene.documents()['{"id":2}']["name"] == "other"
