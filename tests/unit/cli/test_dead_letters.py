"""`statestore dead-letters`: the dead letters that `list` shows, in each format, and a replay of none."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli import choices, dead_letters, stored_letters
from processor.cli.main import main
from processor.engine.protocol.replays import PARTITION, ReplayReport, drop, end_replay, ended_replays, replay_key
from processor.job.run.dead_letters import age, dead_letter_outcomes
from processor.values.dead_letters import DeadLetter
from processor.values.reasons import REASONS, ReasonCode
from processor.values.record import Record, Rejected
from statestore.memory import MemoryStore


def letter(
    topic: str, offset: int, reason: str, code: ReasonCode = "not-json", hours: int = 0, again: str = ""
) -> DeadLetter:
    record = Record(topic=topic, partition=offset % 2, offset=offset, epoch=1, timestamp=5, key=b"1", value=b"{")
    kept = (KEPT - timedelta(hours=hours)).timestamp()
    return DeadLetter(
        rejected=Rejected(record=record, reason=reason, code=code, entity=topic),
        kept_since=kept,
        last_seen=kept,
        refused_again=again,
    )


KEPT = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=5)
LETTERS = [
    (letter("star", 3, "key part 'id' is missing", "key-missing", hours=48), ""),
    (letter("user", 4, "value: broken"), "applied"),
    (letter("user", 5, "value: broken"), ""),
    (letter("user", 16, "value: broken", again="a part of it is gone"), ""),
]
YESTERDAY = (KEPT - timedelta(hours=24)).isoformat()


@pytest.fixture(autouse=True)
def topic(monkeypatch: pytest.MonkeyPatch) -> None:
    show(monkeypatch, LETTERS)
    monkeypatch.setattr(dead_letters, "open_registry", lambda _: nullcontext(registry()))


def registry(**more: Any) -> Any:
    """A registry without requests."""
    asked: dict[str, Any] = {"ask": lambda *_, **__: 1, "note_drop": lambda *_, **__: 1, "withdraw": lambda _: False}
    replays = SimpleNamespace(waiting=tuple, recent=tuple, **asked)
    return SimpleNamespace(replays=replays, letters=SimpleNamespace(settle=lambda *_: None), **more)


def show(monkeypatch: pytest.MonkeyPatch, letters: list[tuple[DeadLetter, str]]) -> None:
    for module in (dead_letters, stored_letters):
        monkeypatch.setattr(module, "read_stored_letters", lambda _: letters)


def listed(capsys: Any, *words: str) -> list[str]:
    assert main(["dead-letters", "list", *words]) == 0
    out: str = capsys.readouterr().out
    return out.splitlines()


def test_list_counts_the_dead_letters_that_wait_by_topic_and_code(capsys: Any) -> None:
    assert listed(capsys) == [
        "       2       5 h  user: not-json: " + REASONS["not-json"].meaning,
        "       1    2 days  star: key-missing: " + REASONS["key-missing"].meaning,
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["user/0/4"],
        ["user/0", "offset", "4", "epoch", "1:"],
        ["user/0", "offset", "4:"],
        ["user/0/4/1", "user/0 offset 99"],
    ],
)
def test_a_position_as_list_and_the_log_print_it_chooses_the_letter(capsys: Any, words: list[str]) -> None:
    assert [line.split(":")[0] for line in listed(capsys, *words, "--each", "--all")] == ["user/0 offset 4 epoch 1"]


def test_each_prints_position_and_reason(capsys: Any) -> None:
    lines = listed(capsys, "--each", "--all", "--topic", "user", "--partition", "0")
    assert lines == [
        "user/0 offset 4 epoch 1: not-json: value: broken (kept for 5 h; replayed: applied)",
        "user/0 offset 16 epoch 1: not-json: value: broken (kept for 5 h; refused again 5 h ago: a part of it is gone)",
    ]


def test_json_prints_a_recorded_line_for_each_dead_letter(capsys: Any) -> None:
    (line,) = map(json.loads, listed(capsys, "--json", "--all", "--offsets", "4"))
    kept = {"kept_since": KEPT.isoformat(timespec="seconds"), "last_seen": KEPT.isoformat(timespec="seconds")}
    where = kept | {"topic": "user", "partition": 0, "offset": 4, "timestamp": 5, "epoch": 1}
    assert line == where | {
        "key": 1,
        "value": "{",
        "code": "not-json",
        "reason": "value: broken",
        "replayed": "applied",
    }


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ([], [3, 5, 16]),
        (["--offsets", "5"], [5]),
        (["--offsets", "4-16"], [5, 16]),
        (["--reason", "missing"], [3]),
        (["--topic", "user", "--partition", "1"], [5]),
        (["--code", "not-json"], [5, 16]),
        (["--code", "key-missing", "--offsets", "0-9"], [3]),
        (["--entity", "star"], [3]),
        (["--since", YESTERDAY], [5, 16]),
        (["--until", YESTERDAY], [3]),
        (["--since", YESTERDAY[:10], "--until", "2999-01-01"], [5, 16]),
        (["--topic", "none"], []),
    ],
)
def test_flags_select_dead_letters(capsys: Any, words: list[str], offsets: list[int]) -> None:
    assert [json.loads(line)["offset"] for line in listed(capsys, "--json", *words)] == offsets


@pytest.mark.parametrize("text", ["x", "3-", "-3", "1-2-3", ""])
def test_a_text_that_is_not_a_range_of_offsets_is_wrong_usage(text: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["dead-letters", "list", f"--offsets={text}"])
    assert stopped.value.code == 2


@pytest.mark.parametrize("words", [["--since", "noon"], ["--until", "2026-13-01"], ["--code", "no-such-code"]])
def test_a_time_or_a_code_that_does_not_exist_is_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["dead-letters", "list", *words])
    assert stopped.value.code == 2


def test_a_replay_of_no_dead_letter_starts_no_job(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    words = ["--topic", "none", "--bootstrap-servers", "nowhere:1"]
    assert main(["dead-letters", "replay", *words]) == 0
    assert capsys.readouterr().err == "no dead letter of this selection waits\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1 s"), (119, "119 s"), (120, "2 min"), (7300, "2 h"), (10**6, "11 days")]
)
def test_an_age_is_in_its_largest_unit(seconds: int, text: str) -> None:
    assert age(datetime.now(UTC).timestamp() - seconds) == text


def test_a_letter_that_a_person_dropped_in_a_former_epoch_stays_dropped_and_one_that_was_replayed_then_waits() -> None:
    store, again = MemoryStore(3), letter("user", 5, "value: broken")
    again = replace(
        again, rejected=replace(again.rejected, record=replace(again.rejected.record, epoch=2)), former=(1,)
    )
    for note, outcome in (
        (end_replay(letter("user", 5, "").rejected.record, "applied"), ""),
        (drop(letter("user", 5, "").rejected.record, who="ada", why="a test", at=KEPT), "dropped"),
    ):
        store.write(note)
        ((_, found),) = dead_letter_outcomes([again], store.partition(PARTITION))
        assert found.partition(" ")[0] == outcome


def test_a_drop_needs_a_reason_and_keeps_it_with_the_name_and_the_time(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    store = MemoryStore(5, lag=0, clock=lambda: 0.0)
    monkeypatch.setattr(choices, "stored_state", lambda _: nullcontext((SimpleNamespace(), store)))
    monkeypatch.setattr(dead_letters, "user_name", lambda: "ann")
    words = ["dead-letters", "drop", "--topic", "user", "--offsets", "5-9", "--bootstrap-servers", "nowhere:1"]
    assert main(words) == 1
    assert "--why is missing" in capsys.readouterr().err
    assert main([*words, "--why", "a test of the source"]) == 0
    assert capsys.readouterr().out == "1 dead letters dropped\n"

    ended = ended_replays(store.partition(PARTITION))
    letters = [(letter, ended.get(replay_key(letter.rejected.record), outcome)) for letter, outcome in LETTERS]
    show(monkeypatch, letters)
    assert [json.loads(line)["offset"] for line in listed(capsys, "--json")] == [3, 16]
    assert main(["dead-letters", "list"]) == 0
    assert capsys.readouterr().err == "2 dead letters wait, 1 were replayed, 1 were dropped\n"
    (line,) = listed(capsys, "--each", "--all", "--offsets", "5")
    assert line.startswith("user/1 offset 5 epoch 1: not-json: value: broken (kept for 5 h; dropped by ann at ")
    assert line.endswith(": a test of the source)")
    assert main(["dead-letters", "replay", "--offsets", "5", "--bootstrap-servers", "nowhere:1"]) == 0
    assert capsys.readouterr().err == "no dead letter of this selection waits\n"


@pytest.mark.parametrize(
    ("reasons", "status", "words"),
    [
        (("value: broken", "value: broken"), 0, ["still waits", "still waits"]),
        (("value: broken", "a part of it is gone"), 0, ["still waits", "still waits"]),
        (("value: broken", "the row is too large"), 1, ["still waits", "refused for a new reason"]),
    ],
)
def test_the_status_of_a_replay_tells_new_failures_from_letters_that_wait(
    reasons: tuple[str, ...], status: int, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("pyspark")
    from processor.cli import process
    from processor.job.run import run_job

    def run_replays(_: Any, letters: list[DeadLetter], request: int) -> Iterator[ReplayReport]:
        assert request == 1
        for one, reason in zip(letters, reasons, strict=True):
            yield ReplayReport(record=one.rejected.record, outcome="refused", reason=reason)

    job = SimpleNamespace(driver=SimpleNamespace(tally={"corrections": 0}))
    monkeypatch.setattr(dead_letters, "open_registry", lambda _: nullcontext(registry(snapshot=None, jobs=list)))
    monkeypatch.setattr(process, "open_operator_run", lambda *_, **__: job)
    monkeypatch.setattr(run_job, "run_replays", run_replays)
    assert main(["dead-letters", "replay", "--topic", "user", "--bootstrap-servers", "nowhere:1"]) == status
    printed = capsys.readouterr()
    assert [line.partition(":")[0] for line in printed.err.splitlines()[:-1]] == words
    assert printed.out.startswith("2 of 2 dead letters replayed = 0 applied")
