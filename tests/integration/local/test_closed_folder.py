"""The embedded Postgres in folders that are closed to other users (mode 0700), as a container's home is, or what mktemp makes.

Root's server runs as another user, who may not enter them; for any other user these tests say that closed folders do no harm.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from processor.environment.programs import servers
from processor.environment.programs.program import find_open_folder, remove_folder, start_detached
from processor.environment.programs.servers import start_postgres
from tests.support.required import require_proc


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of mode 0700 with an environment in it, from which the programs of Postgres are taken."""
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    installed = servers._binaries().parent
    package, site = installed.parent, folder / "environment"
    shutil.copytree(installed, site / package.name / installed.name, symlinks=True)
    (site / package.name / "__init__.py").touch()
    for libraries in (package.with_name(f"{package.name}.libs"), package / ".dylibs"):
        if libraries.is_dir():
            shutil.copytree(libraries, site / libraries.relative_to(package.parent))
    monkeypatch.syspath_prepend(str(site))
    assert servers._binaries().is_relative_to(folder)
    return folder


@pytest.mark.rest
def test_a_server_answers_whose_programs_and_data_are_closed_to_others(
    closed: Path, talk: SimpleNamespace, processes: Callable[[Path], list[str]]
) -> None:
    part = start_postgres(closed / "postgres")
    try:
        assert talk.postgres(part.endpoint, "select upper('é'), 'B' < 'a'") == [("É", True)]
        assert len(processes(closed)) >= 1
    finally:
        part.stop()
    assert processes(closed) == []
    assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.rest
def test_a_server_answers_whose_programs_alone_are_closed_to_others(
    closed: Path, temporary: Path, talk: SimpleNamespace
) -> None:
    directory = temporary / "postgres"
    part = start_postgres(directory)
    try:
        assert talk.postgres(part.endpoint, "select 1") == [(1,)]
    finally:
        part.stop()
        shutil.rmtree(directory)


@pytest.mark.rest
def test_data_are_served_again_after_their_directory_was_closed(temporary: Path, talk: SimpleNamespace) -> None:
    directory = temporary / "postgres"
    directory.mkdir()
    directory.chmod(0o755)
    part = start_postgres(directory, launch=start_detached)
    talk.postgres(part.endpoint, "create table kept as select 7 as n")
    part.stop()
    directory.chmod(0o700)
    part = start_postgres(directory, launch=start_detached)
    try:
        assert talk.postgres(part.endpoint, "select n from kept") == [(7,)]
    finally:
        part.stop()
        remove_folder(find_open_folder(directory))
        remove_folder(directory)


def test_a_server_in_a_closed_folder_has_no_rights_of_root(closed: Path) -> None:
    require_proc()
    part = start_postgres(closed / "postgres")
    try:
        pid = (closed / "postgres" / "data" / "postmaster.pid").read_text().split("\n")[0]
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert int(status["CapEff"], 16) == 0
    finally:
        part.stop()
