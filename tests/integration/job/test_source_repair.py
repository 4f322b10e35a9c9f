"""`verify --source --repair` without a job leaves a request, and the next run of the job writes the rows of the source."""

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url

from processor.cli.main import main
from tests.integration.job.test_postgres_job import set_environment

Scene = Any  # conftest's


@pytest.mark.plain
def test_rows_that_never_arrived_are_named_and_repaired(
    scene: Scene,
    rows: SimpleNamespace,
    postgres_url: str,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_environment(monkeypatch, scene.settings)
    monkeypatch.setenv("SOURCE", f"{postgres_url.replace('+psycopg', '')}?options=-csearch_path%3D{schema}")
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f'create schema {schema}; create table {schema}."user" (id int primary key, name text)'
        )
        connection.exec_driver_sql(f"insert into {schema}.\"user\" values (0, 'user0'), (1, 'quiet'), (7, 'new')")
    engine.dispose()
    scene.produce(*(rows.user(n, f"user{n}") for n in range(3)), rows.star("user1", "repo"))
    scene.run()
    verify = ["verify", "user", "--source", "env:SOURCE", "--lag", "0"]
    assert main(verify) == 1
    printed = capsys.readouterr()
    assert "3 rows there, 3 here: 1 missing here, 1 orphaned here (gone there), 1 different" in printed.out
    assert '  different {"id":1}: name' in printed.out
    assert "no job runs" in printed.err
    assert main([*verify, "--repair"]) == 1
    assert "--why is missing" in capsys.readouterr().err
    assert main([*verify, "--repair", "--why", "a lost segment"]) == 1
    assert "no job runs, and its next run repairs 3 rows" in capsys.readouterr().err
    assert main(["history", "--limit", "1"]) == 0
    assert "a lost segment" in capsys.readouterr().out
    scene.produce(rows.star("new", "repo"))
    scene.run()
    assert main(verify) == 0
    documents = {one["id"]: one["name"] for one in scene.documents().values() if one}
    assert documents == {0: "user0", 1: "quiet", 7: "new"}
    scene.produce(rows.user(1, "later"))
    scene.run()
    assert {one["id"]: one["name"] for one in scene.documents().values() if one}[1] == "later"
