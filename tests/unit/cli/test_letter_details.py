"""`statestore dead-letters show`: a dead letter in full, with the columns that do not fit, and no line that a record forges."""

import json
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from processor.cli import choices, dead_letters
from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.replays import PARTITION, ReplayReport, refuse_replay, refused_replays, replay_key
from processor.engine.rounds.decoding import write_form
from processor.engine.rounds.events import VirtualClock
from processor.errors import KafkaError
from processor.job.run import dead_letters as job_letters
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter, RefusedBy
from processor.values.decimal_forms import FormNote, LearnedForm
from processor.values.record import CutRecord, Record, Rejected
from statestore.memory import MemoryStore

ENTITIES = {"user": {"key": ["id"], "columns": {"id": "int", "name": "string", "born": "date", "age": "int"}}}
PLAN = plan_alone(load({"entities.yaml": json.dumps(ENTITIES), "p.yaml": "{product: p, root: user}"}), 5)
VALUE = b'{"id": 1, "name": 7, "born": "soon",\n"cure": "\xc2\x9b[2J"}'
RECORD = Record(
    topic="user", partition=0, offset=17, epoch=2, timestamp=1_772_352_000_000, key=b'{"id":1}', value=VALUE,
    headers=(("trace", b"\xff\x00a"), ("empty", None)),
)  # fmt: skip
LETTER = DeadLetter(
    rejected=Rejected(
        record=RECORD, reason="column 'name': expected string, found number 7", code="column-type", entity="user"
    ),
    kept_since=1_772_352_100,
    last_seen=1_772_352_200,
    refused_by=RefusedBy("1.2.3", 4),
    refused_again="column 'name': expected string, found a number",
)


@pytest.fixture(autouse=True)
def topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "read_stored_letters", lambda _: [(LETTER, "")])
    monkeypatch.setattr(choices, "stored_state", lambda _: nullcontext((PLAN, MemoryStore())))


def shown(capsys: Any, *words: str) -> list[str]:
    assert main(["dead-letters", "show", *words, "--bootstrap-servers", "nowhere:1"]) == 0
    out: str = capsys.readouterr().out
    return out.splitlines()


def test_show_prints_all_that_a_letter_holds(capsys: Any) -> None:
    lines = shown(capsys, "user/0/17")
    assert lines[0] == "user/0 offset 17 epoch 2"
    facts = {line[2:16].strip(): line[16:] for line in lines if line[2:3].isalpha() and line[15:16] == " "}
    assert facts["code"] == "column-type: a value is not of the declared type of its column"
    assert facts["reason"] == "column 'name': expected string, found number 7"
    assert "then replay" in facts["cure"]
    assert facts["state"] == "waits"
    assert facts["refused again"] == "column 'name': expected string, found a number"
    assert facts["first seen"].startswith("2026-03-01T08:01:40+00:00 (")
    assert facts["last seen"].startswith("2026-03-01T08:03:20+00:00 (")
    assert facts["refused by"] == "statestore 1.2.3, registry version 4"
    assert facts["entity"] == "user"
    assert facts["record time"] == "2026-03-01T08:00:00+00:00"
    at = lines.index("  header 1 'trace'")
    assert lines[at + 1].split("  ")[2] == "00000000"
    assert "ff 00 61" in lines[at + 1]
    assert lines[at + 1].endswith("|..a|")
    assert lines[at + 2 : at + 4] == ["  header 2 'empty'", "    null"]
    assert lines[lines.index("  key") + 1] == '    {"id":1}'


def test_show_names_every_column_that_does_not_fit_and_those_that_differ(capsys: Any) -> None:
    lines = shown(capsys, "user/0/17")
    assert lines[lines.index("  columns") + 1 :] == [
        "    column 'name': expected string, found number 7",
        "    column 'born': expected date, found text 'soon'",
        "    declared, and not in the record: age",
        "    in the record, and not declared: cure",
    ]


def test_show_compares_a_decimal_with_the_form_that_a_record_settled(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced = {"user": {"key": ["id"], "columns": {"id": "int", "price": "decimal(12,2)"}}}
    plan = plan_alone(load({"entities.yaml": json.dumps(priced), "p.yaml": "{product: p, root: user}"}), 5)
    store = MemoryStore()
    store.write(write_form(FormNote("user", "price", LearnedForm("text", "user", 0, 1, 3))))
    value = b'{"before": null, "after": {"id": 1, "price": "free"}, "op": "c", "source": {}}'
    rejected = replace(LETTER.rejected, record=replace(RECORD, value=value))
    monkeypatch.setattr(dead_letters, "read_stored_letters", lambda _: [(replace(LETTER, rejected=rejected), "")])
    monkeypatch.setattr(choices, "stored_state", lambda _: nullcontext((plan, store)))
    lines = shown(capsys, "user/0/17")
    assert "found text 'free' (the column has `decimals: text` since the record user/0/3" in lines[-1]


def test_no_line_of_a_record_looks_like_a_line_of_show(capsys: Any) -> None:
    lines = shown(capsys, "user/0/17")
    at = lines.index("  value")
    assert lines[at + 1 : at + 3] == ['    {"id": 1, "name": 7, "born": "soon",', '    "cure": "\\u009b[2J"}']


@pytest.mark.parametrize(
    "words",
    [["user/0/17/2"], ["user/0 offset 17"], ["user/0", "offset", "17", "epoch", "2"], ["user/0 offset 17 epoch 2"]],
)
def test_a_position_may_have_the_form_of_list(capsys: Any, words: list[str]) -> None:
    assert shown(capsys, *words)[0] == "user/0 offset 17 epoch 2"


@pytest.mark.parametrize(
    ("position", "error"),
    [
        (
            "user/0/18",
            "no dead letter of statestore.rejects is from user/0/18: `statestore dead-letters list --each --all` prints",
        ),
        ("user/0/17/1", "no dead letter of statestore.rejects is from user/0/17/1"),
        ("17", "'17' is not a position: give TOPIC/PARTITION/OFFSET, such as user/0/17"),
    ],
)
def test_a_position_without_a_letter_is_an_error_with_the_cure(capsys: Any, position: str, error: str) -> None:
    assert main(["dead-letters", "show", position, "--bootstrap-servers", "nowhere:1"]) == 1
    assert error in capsys.readouterr().err


def test_show_says_where_the_record_of_a_cut_letter_comes_from(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    cut = CutRecord(parts="value", size=123_456, sha256="")
    part = replace(LETTER.rejected, record=replace(RECORD, value=VALUE[:9]), cut=cut)
    letter = replace(LETTER, rejected=part)
    monkeypatch.setattr(dead_letters, "read_stored_letters", lambda _: [(letter, "")])

    def read(outcome: Any) -> list[str]:
        monkeypatch.setattr(job_letters, "with_whole_record", outcome)
        return shown(capsys, "user/0/17")

    lines = read(lambda *_: LETTER)
    assert "  kept in part  value, of 123,456 bytes; here is the whole record, from its source topic" in lines
    assert '    {"id": 1, "name": 7, "born": "soon",' in lines
    lines = read(lambda *_: letter)
    assert "  kept in part  value, of 123,456 bytes; here is this part" in lines
    assert "  columns" not in lines

    def unreachable(*_: Any) -> Any:
        raise KafkaError("no topic user")

    assert "  kept in part  value, of 123,456 bytes; here is this part" in read(unreachable)


def test_a_letter_that_a_replay_refuses_shows_when_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table keeps the reason without values of the record."""
    store = MemoryStore(5, lag=0, clock=VirtualClock().now)
    report = ReplayReport(record=RECORD, outcome="refused", reason="found text 'secret'", plain="found text")
    store.write(refuse_replay(report, datetime(2026, 3, 2, tzinfo=UTC)))
    (item,) = store.partition(PARTITION)
    assert "secret" not in str(item)
    ((at, why),) = refused_replays([item]).values()
    assert (at.isoformat(), why) == ("2026-03-02T00:00:00+00:00", "found text")
    assert list(refused_replays([item])) == [replay_key(RECORD)]
