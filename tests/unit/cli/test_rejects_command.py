"""`statestore rejects`: the dead letters that `list` shows, in each format, and a replay of none."""

import json
from typing import Any

import pytest

from processor.cli import rejects_command
from processor.cli.main import main
from processor.records.dead_letters import DeadLetter
from processor.records.record import Record, Rejected


def letter(topic: str, offset: int, reason: str) -> DeadLetter:
    record = Record(topic=topic, partition=offset % 2, offset=offset, epoch=1, timestamp=5, key=b"1", value=b"{")
    return DeadLetter(rejected=Rejected(record=record, reason=reason), kept_since=0.0)


LETTERS = [
    (letter("star", 3, "key part 'id' is missing"), ""),
    (letter("user", 4, "value: broken"), "applied"),
    (letter("user", 5, "value: broken"), ""),
    (letter("user", 16, "value: broken"), ""),
]


@pytest.fixture(autouse=True)
def topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects_command, "read_dead_letters", lambda _: LETTERS)


def listed(capsys: Any, *words: str) -> list[str]:
    assert main(["rejects", "list", *words]) == 0
    out: str = capsys.readouterr().out
    return out.splitlines()


def test_list_counts_the_dead_letters_that_wait_by_topic_and_reason(capsys: Any) -> None:
    assert listed(capsys) == ["       2  user: value: broken", "       1  star: key part 'id' is missing"]


def test_each_prints_position_and_reason(capsys: Any) -> None:
    lines = listed(capsys, "--each", "--all", "--topic", "user", "--partition", "0")
    assert lines == [
        "user/0 offset 4 epoch 1: value: broken (replayed: applied)",
        "user/0 offset 16 epoch 1: value: broken",
    ]


def test_json_prints_a_recorded_line_for_each_dead_letter(capsys: Any) -> None:
    (line,) = map(json.loads, listed(capsys, "--json", "--all", "--offsets", "4"))
    where = {"topic": "user", "partition": 0, "offset": 4, "timestamp": 5, "epoch": 1}
    assert line == where | {"key": 1, "value": "{", "reason": "value: broken", "replayed": "applied"}


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ([], [3, 5, 16]),
        (["--offsets", "5"], [5]),
        (["--offsets", "4-16"], [5, 16]),
        (["--reason", "missing"], [3]),
        (["--topic", "user", "--partition", "1"], [5]),
        (["--topic", "none"], []),
    ],
)
def test_flags_select_dead_letters(capsys: Any, words: list[str], offsets: list[int]) -> None:
    assert [json.loads(line)["offset"] for line in listed(capsys, "--json", *words)] == offsets


@pytest.mark.parametrize("text", ["x", "3-", "-3", "1-2-3", ""])
def test_a_text_that_is_not_a_range_of_offsets_is_wrong_usage(text: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["rejects", "list", f"--offsets={text}"])
    assert stopped.value.code == 2


def test_a_replay_of_no_dead_letter_starts_no_job(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    words = ["--topic", "none", "--bootstrap-servers", "nowhere:1"]
    assert main(["rejects", "replay", *words]) == 0
    assert capsys.readouterr().err == "no dead letter of this selection waits\n"
