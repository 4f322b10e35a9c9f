"""The state file of the shared parts."""

import json
import os
from pathlib import Path

import pytest

from processor.environment.programs.processes import DetachedProcess, PartProcess, PartsState, started_at
from processor.environment.programs.program import SecretUrl
from processor.errors import PartError


def part_process(endpoint: str | None) -> PartProcess:
    return PartProcess(process=DetachedProcess(pid=1, started="1", stop_signal=15), endpoint=endpoint)


@pytest.mark.parametrize(
    "endpoint", ["127.0.0.1:4711", "postgresql+psycopg://postgres@127.0.0.1:4711/postgres", "http://127.0.0.1:4711"]
)
def test_every_kind_of_endpoint_gives_its_port(endpoint: str) -> None:
    assert part_process(endpoint).port == 4711


def test_a_part_that_never_answered_has_no_port() -> None:
    assert part_process(None).port is None


def test_the_error_names_a_broken_state_file_and_its_repair(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(PartError, match=r"state\.json cannot be read .*End their processes by hand"):
        PartsState(tmp_path / "state.json")


def test_parts_survive_the_command_that_wrote_them(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    fields = {"pid": 7, "started": "9", "stop_signal": 15, "endpoint": "127.0.0.1:1"}
    path.write_text(json.dumps({"version": 1, "parts": {"kafka": fields}}))
    PartsState(path).set_endpoint("kafka", "127.0.0.1:2")
    process = DetachedProcess(pid=7, started="9", stop_signal=15)
    assert PartsState(path).parts == {"kafka": PartProcess(process=process, endpoint="127.0.0.1:2")}


def test_a_process_with_the_same_id_and_another_start_time_is_not_ours() -> None:
    now = started_at(os.getpid())
    assert now is not None
    assert DetachedProcess(pid=os.getpid(), started=now, stop_signal=15).alive()
    assert not DetachedProcess(pid=os.getpid(), started=now + "0", stop_signal=15).alive()


def test_only_the_owner_can_read_the_passwords_of_the_state(tmp_path: Path) -> None:
    url = "postgresql+psycopg://postgres:secret@127.0.0.1:4711/postgres"
    path = tmp_path / "state.json"
    path.write_text('{"version": 1, "parts": {}}')
    path.chmod(0o644)
    state = PartsState(path)
    state._put(
        "postgres", PartProcess(process=DetachedProcess(pid=1, started="x", stop_signal=2), endpoint=SecretUrl(url))
    )
    assert path.stat().st_mode & 0o777 == 0o600
    (found,) = PartsState(path).parts.values()
    assert (found.endpoint, found.port) == (url, 4711)
    assert "secret" not in repr(found)
    assert repr(SecretUrl("http://127.0.0.1:4711")) == "'http://127.0.0.1:4711'"
