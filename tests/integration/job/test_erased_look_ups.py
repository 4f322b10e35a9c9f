"""A server that has answered for a row shows nothing of it after its erasure: it keeps no answer."""

import json
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from processor.cli.main import main
from processor.environment.stores.kinds import open_store
from processor.tools.web.serve.app import document_app
from processor.tools.web.serve.reader import PlanView, StateReader, StorePool
from processor.tools.web.server import GuardRules
from tests.integration.job.plain_engine import plain_engine
from tests.integration.job.test_postgres_job import set_environment

Scene = Any  # conftest's
MARK = "rowcanary77af"


@pytest.mark.rest
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of the verb, which ends with its process
def test_a_server_shows_nothing_of_an_erased_row(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_environment(monkeypatch, scene.settings)
    scene.produce(rows.user(1, MARK), rows.user(2, "other"), rows.star("other", "first"))
    scene.run()
    with closing(open_store(scene.settings)) as store:
        reader = StateReader(
            stores=StorePool([store]),
            view=PlanView(snapshot=scene.registry.snapshot, jobs=scene.registry.jobs),
            boundaries=lambda entities: scene.registry.epochs([], list(entities)),
        )
        client = TestClient(document_app(reader, GuardRules()), base_url="http://127.0.0.1")
        shown = client.get("/documents/profile/1")
        assert shown.json()["name"] == MARK
        assert int(shown.headers["statestore-age"]) < 600  # the run has reported
        assert MARK in client.get("/rows/user/1").text
        with plain_engine(scene.positions):
            assert main(["erase", "user", '{"id": 1}', "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["complete"]
        gone = client.get("/documents/profile/1", headers={"If-None-Match": shown.headers["etag"]})
        assert gone.status_code == 404
        marker = client.get("/rows/user/1")
        assert (marker.status_code, marker.json()["columns"]) == (200, None)
        paths = ("/documents/profile/1?as=published", "/products", "/openapi.json", "/health", "/rows/star/1")
        for answer in (gone, marker, *map(client.get, paths)):
            assert MARK not in answer.text + str(answer.headers)
        assert MARK not in str(reader.lineage("profile", "1"))
        assert "was erased (`statestore erase`)" in reader.lineage("profile", "1")["reason"]
        assert client.get("/documents/profile/2").json()["name"] == "other"
