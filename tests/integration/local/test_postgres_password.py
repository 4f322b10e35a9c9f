"""The embedded Postgres lets in only those who know its password, and only the server's user can read the password."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from processor.environment.programs.program import find_open_folder, remove_folder, start_detached
from processor.environment.programs.servers import start_postgres
from processor.errors import PartError


def test_no_other_user_of_the_machine_gets_in(tmp_path: Path, talk: SimpleNamespace) -> None:
    part = start_postgres(tmp_path / "postgres")
    try:
        assert talk.postgres(part.endpoint, "select 1") == [(1,)]
        url = str(part.endpoint).replace("+psycopg", "")
        word = url.partition("postgres:")[2].partition("@")[0]
        assert len(word) == 32
        for other in (url.replace(f":{word}", ""), url.replace(word, "guess")):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(other, passfile="/nowhere").close()
        rules = talk.postgres(part.endpoint, "select distinct auth_method from pg_hba_file_rules")
        assert rules == [("scram-sha-256",)]
    finally:
        part.stop()


def test_the_password_is_in_a_file_of_its_owner_and_nowhere_else(tmp_path: Path, talk: SimpleNamespace) -> None:
    part = start_postgres(tmp_path / "postgres")
    try:
        word = part.endpoint.partition("postgres:")[2].partition("@")[0]
        data = (tmp_path / "postgres" / "data").resolve()
        file = data.parent / "password"
        assert file.read_text() == word
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.stat().st_uid == data.stat().st_uid
        assert word not in (tmp_path / "postgres" / "log.txt").read_text()
        assert word not in repr(part)
        for name in ("cmdline", "environ") if os.path.isdir("/proc") else ():
            assert word.encode() not in Path(f"/proc/{part.process.pid}/{name}").read_bytes()
    finally:
        part.stop()


@pytest.mark.rest
def test_a_started_again_server_keeps_its_password(tmp_path: Path, talk: SimpleNamespace) -> None:
    directory = tmp_path / "postgres"
    part = start_postgres(directory, launch=start_detached)
    part.stop()
    again = start_postgres(directory, launch=start_detached)
    try:
        assert again.endpoint.rpartition("@")[0] == part.endpoint.rpartition("@")[0]
        assert talk.postgres(again.endpoint, "select 1") == [(1,)]
    finally:
        again.stop()
    ((directory / "data").resolve().parent / "password").unlink()
    with pytest.raises(PartError, match=r"of an earlier release and has no password\. Remove the data"):
        start_postgres(directory)
    remove_folder(find_open_folder(directory))
