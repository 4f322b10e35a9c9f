"""The folder away from a closed one: open, made whole or not at all, and no other is taken for it."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from processor.environment.programs.program import (
    PREFIX,
    DetachedProcess,
    PartProcess,
    PartsState,
    SecretUrl,
    find_open_folder,
    is_open,
    make_open_folder,
    share,
    started_at,
)
from processor.errors import PartError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files that all may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name).resolve()


def nothing(folder: Path) -> None:
    (folder / "data").mkdir()


def test_a_folder_below_a_closed_one_is_not_open(place: Path) -> None:
    below = place / "closed" / "below"
    below.mkdir(parents=True)
    for folder in (place / "closed", below):
        folder.chmod(0o755)
    assert is_open(below)
    (place / "closed").chmod(0o700)
    assert not is_open(below)


def test_a_folder_away_is_open_and_only_ours_to_write(place: Path) -> None:
    folder = make_open_folder("Postgres", nothing)
    assert folder.parent == place
    assert is_open(folder)
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_closed_folder_for_temporary_files_is_passed_over(place: Path) -> None:
    place.chmod(0o700)
    folder = make_open_folder("Postgres", nothing)
    try:
        assert folder.parent != place
        assert is_open(folder)
    finally:
        shutil.rmtree(folder)


def test_a_folder_that_cannot_be_filled_is_removed(place: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        make_open_folder("Postgres", fail)
    assert list(place.iterdir()) == []


def test_the_link_of_a_directory_leads_to_its_folder(place: Path, tmp_path: Path) -> None:
    assert find_open_folder(tmp_path) is None
    folder = make_open_folder("Postgres", nothing)
    (tmp_path / "data").symlink_to(folder / "data")
    assert find_open_folder(tmp_path) == folder
    shutil.rmtree(folder)
    assert find_open_folder(tmp_path) is None


def test_a_planted_link_leads_nowhere(place: Path, tmp_path: Path) -> None:
    precious = place / "precious"
    (precious / "data").mkdir(parents=True)
    (tmp_path / "data").symlink_to(precious / "data")
    assert find_open_folder(tmp_path) is None


def test_a_folder_of_another_user_is_not_taken_for_ours(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place / f"{PREFIX}planted"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "data").symlink_to(folder / "data")
    assert find_open_folder(tmp_path) == folder
    monkeypatch.setattr(os, "geteuid", lambda: folder.lstat().st_uid + 1)
    assert find_open_folder(tmp_path) is None


def test_what_is_shared_all_may_read_and_its_programs_all_may_run(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    for name, mode in (("program", 0o700), ("text", 0o600)):
        (folder / name).touch()
        (folder / name).chmod(mode)
    share(folder)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {"folder": 0o755, "program": 0o755, "text": 0o644}


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
