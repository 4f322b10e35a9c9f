"""The state file of the standing parts."""

import json
import os
from pathlib import Path

import pytest

from processor.errors import PartError
from processor.local.left import Left, started_at
from processor.local.state import Entry, State


def entry(endpoint: str | None) -> Entry:
    return Entry(process=Left(pid=1, started="1", stop_signal=15), endpoint=endpoint)


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:4711", "postgresql+psycopg://postgres@127.0.0.1:4711/postgres", "http://127.0.0.1:4711"]
)
def test_the_port_is_read_off_every_kind_of_endpoint(endpoint: str) -> None:
    assert entry(endpoint).port == 4711


def test_a_part_that_never_answered_has_no_port() -> None:
    assert entry(None).port is None


def test_a_broken_state_file_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(PartError, match=r"state\.json cannot be read .*End the parts by hand"):
        State(tmp_path / "state.json")


def test_entries_survive_the_command_that_wrote_them(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    fields = {"pid": 7, "started": "9", "stop_signal": 15, "endpoint": "127.0.0.1:1"}
    path.write_text(json.dumps({"version": 1, "parts": {"kafka": fields}}))
    State(path).answered("kafka", "127.0.0.1:2")
    process = Left(pid=7, started="9", stop_signal=15)
    assert State(path).entries == {"kafka": Entry(process=process, endpoint="127.0.0.1:2")}


def test_a_process_id_given_again_is_not_taken_for_ours() -> None:
    now = started_at(os.getpid())
    assert now is not None
    assert Left(pid=os.getpid(), started=now, stop_signal=15).alive()
    assert not Left(pid=os.getpid(), started=now + "0", stop_signal=15).alive()
