"""A document that is too large for its topic: a dead letter takes its place, the others go on, and it goes out once it fits."""

import argparse
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from processor.cli import look, verify
from processor.cli.choices import RequestedDocument
from processor.cli.main import main
from processor.cli.printing.output import UNFIT_LINE
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round import PublishSetup
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import LaneOutbox, Trial
from processor.environment.settings.settings import Settings
from processor.errors import TopicRefused
from processor.language.definitions.load import load
from processor.tools.inspect.verification import Difference
from processor.values.dead_letters import DeadLetter, rejected_record
from processor.values.record import Record

DEFINITIONS = {
    "entities.yaml": json.dumps({"user": {"key": ["id"], "columns": {"id": "int", "name": "string"}}}),
    "names.yaml": json.dumps({"product": "names", "root": "user", "fields": ["id", "name"]}),
}
LIMIT = 400


def started(before: Trial | None = None, limit: int = LIMIT) -> Trial:
    """A job; after `before`, the next run over the same table."""
    plan, run = plan_alone(load(DEFINITIONS), 20), before.run + 1 if before else 1
    trial = Trial(plan=plan, settings=Settings(), run=run, other_store=before.store if before else None)
    trial.driver.progress.setup = PublishSetup(message_limits={"names": limit})
    trial.driver.start()
    return trial


def user(number: int, name: str, offset: int) -> Record:
    value = json.dumps({"id": number, "name": name}).encode()
    return Record(topic="user", partition=0, offset=offset, key=None, value=value)


def sent(trial: Trial) -> list[Any]:
    return [json.loads(message.value or b"null")["name"] for message in trial.published.messages]


def letters(trial: Trial) -> list[tuple[bytes | None, str]]:
    found = map(rejected_record, trial.rejects.messages)
    return [(letter.record.key, letter.reason) for letter in found]


def is_marked(trial: Trial, root: str = "1") -> bool:
    place = trial.plan.products["names"].ledger
    key = group_key(place, root)
    return read_entry(trial.store.get([key]).get(key), place.number).unfit


def test_a_dead_letter_names_the_product_the_root_and_the_size_and_the_other_documents_go_on() -> None:
    job = started()
    events: list[JobEvent] = []
    job.driver.progress.report = events.append
    tally = job.batch([user(1, "A" * 500, 0), user(2, "Bob", 1)])
    assert sent(job) == ["Bob"]
    assert job.stopped == {}
    ((key, reason),) = letters(job)
    assert key == b'{"id":1}'
    assert reason.startswith("the document of product names takes 7")
    assert "topic names takes messages of 400" in reason
    assert is_marked(job)
    assert (tally["read"], tally["applied"], tally["dead letters"], tally["unfit"]) == (2, 2, 0, 1)
    (line,) = [event.text for event in events if event.what == "unfit document"]
    assert "AAA" not in line
    assert line.startswith(reason)
    assert list(job.driver.progress.unfit) == [("names", "1")]


def test_the_document_goes_out_when_it_is_small_again() -> None:
    job = started()
    job.batch([user(1, "Ann", 0)])
    job.batch([user(1, "A" * 500, 1)])
    assert sent(job) == ["Ann"]
    job.batch([user(1, "Ann", 2)])
    assert sent(job) == ["Ann", "Ann"]  # the ledger cannot say whether readers still have the first
    assert not is_marked(job)
    assert job.driver.progress.unfit == {}


def test_the_next_start_publishes_the_document_if_its_topic_takes_it_then() -> None:
    first = started()
    first.batch([user(1, "A" * 500, 0)])
    first.finish()
    second = started(first)
    second.finish()
    assert (sent(second), letters(second), list(second.driver.progress.unfit)) == ([], [], [("names", "1")])
    third = started(second, limit=8_000)
    third.finish()
    assert sent(third) == ["A" * 500]
    assert not is_marked(third)
    fourth = started(third)
    fourth.finish()
    assert (sent(fourth), letters(fourth)) == ([], [])


def test_a_replay_of_the_dead_letter_waits_until_the_document_has_gone_out() -> None:
    job = started()
    job.batch([user(1, "A" * 500, 0)])
    letter = DeadLetter(rejected=rejected_record(job.rejects.messages[0]), kept_since=job.clock.date())
    (report,) = job.driver.replay([letter])
    assert (report.outcome, report.reason) == ("refused", letter.rejected.reason)
    job.batch([user(1, "Ann", 1)])
    (report,) = job.driver.replay([letter])
    assert report.outcome == "superseded"


def test_a_dead_letter_topic_that_refuses_the_letter_fails_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise TopicRefused("statestore.rejects", "not authorized")

    job = started()
    monkeypatch.setattr(LaneOutbox, "flush", refuse)
    with pytest.raises(TopicRefused, match=r"topic statestore\.rejects refuses"):
        job.batch([user(1, "A" * 500, 0)])


def test_get_and_verify_say_that_the_document_has_not_gone_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = started()
    job.batch([user(1, "A" * 500, 0), user(2, "Bob", 1)])
    runner, plan = StepRunner(store=job.store), job.plan
    for root, line in (("1", f"names {{'id': 1}}: {UNFIT_LINE}\n"), ("2", "")):
        asked = RequestedDocument(plan, plan.products["names"], root, runner)
        monkeypatch.setattr(look, "requested_document", lambda *_, asked=asked: nullcontext(asked))
        options = argparse.Namespace(product="names", key={"id": int(root)}, json=False, pretty=False)
        monkeypatch.setattr(look, "reachable_settings", lambda _: nullcontext(Settings()))
        assert look.get(options) == 0
        assert capsys.readouterr().err == line
    differences = [
        Difference(product="names", key=f'{{"id":{root}}}', root=root, published=None, state=b"{}") for root in "12"
    ]
    assert verify.unfit_among(job.plan, job.store, differences) == differences[:1]


def test_try_shows_the_dead_letter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processor.engine.rounds.publish_stage.MAX_MESSAGE_BYTES", LIMIT)
    for name, text in DEFINITIONS.items():
        (tmp_path / name).write_text(text)
    line = json.dumps({"topic": "user", "value": {"id": 1, "name": "A" * 500}})
    (tmp_path / "rows.jsonl").write_text(f"{line}\n")
    assert main(["try", "--definitions", str(tmp_path), "--from", str(tmp_path / "rows.jsonl")]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert 'dead letter: names {"id":1}: the document of product names takes ' in shown.err
    assert "1 unfit (a dead letter takes the place of the document)" in shown.err
