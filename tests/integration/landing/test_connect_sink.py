"""The settings of the page for Kafka Connect land a product's documents in Postgres; the sink cannot refuse an older message."""

import json
import re
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from sqlalchemy import make_url

from tests.integration.landing.conftest import PARTITIONS, LandingScene
from tests.support.connect_worker import JDBC_SINK, connect_worker

pytestmark = pytest.mark.rest
PAGE = Path(__file__).parents[3] / "docs" / "operate.md"
SECONDS = 60.0


def settings_of_page(**given: str) -> dict[str, str]:
    """The properties of the page, with these values in place of its names in capitals."""
    (block,) = re.findall(r"```properties\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    found = dict(line.split("=", 1) for line in block.splitlines())
    return {name: re.sub(r"\b[A-Z]{3,}\b", lambda word: given[word[0]], value) for name, value in found.items()}


def landed(scene: LandingScene) -> dict[str, Any]:
    """Key -> document, as the sink has written them; empty before its first table."""
    if not scene.sql("select 1 from pg_tables where tablename = 'sunk' and schemaname = current_schema()"):
        return {}
    rows = scene.sql("select key, document from sunk")
    return {key: None if document is None else json.loads(document) for key, document in rows}


def arrives(scene: LandingScene, number: int) -> None:
    """Publishes a last message in each partition, and waits until the sink has written them."""
    marks = {f"{number}-{n}": n for n in range(PARTITIONS)}
    for mark, partition in marks.items():
        scene.publish(mark, {"mark": mark}, partition=partition)
    until = monotonic() + SECONDS
    while not {f'{{"id":"{mark}"}}' for mark in marks} <= landed(scene).keys():
        assert monotonic() < until, landed(scene)
        sleep(0.2)


def test_the_settings_of_the_page_land_documents_but_not_by_sequence(scene: LandingScene, tmp_path: Path) -> None:
    url = make_url(scene.url)
    schema = str(url.query["options"]).partition("search_path=")[2]
    settings = settings_of_page(
        TOPIC=scene.topic.name,
        HOST=f"{url.host}:{url.port}",
        DATABASE=f"{url.database}?currentSchema={schema}",
        USER=url.username or "",
        PASSWORD=url.password or "",
        TABLE="sunk",
    )
    for n in range(5):
        scene.publish(n, {"n": n, "list": [{"a": n}], "big": 2**53 + 1, "price": 1.10})
    with connect_worker(tmp_path / "connect", scene.broker, JDBC_SINK, settings):
        arrives(scene, 1)
        scene.publish(3, {"n": 33})
        scene.publish(4, None)
        arrives(scene, 2)
        assert landed(scene) == scene.last  # a deleted document leaves its key
        scene.publish(3, {"n": 3}, sequence=1)  # as a repeated message, or the last one of another partition
        scene.publish(4, {"n": 4}, sequence=1)
        arrives(scene, 3)
        wrong = {'{"id":3}': {"n": 3}, '{"id":4}': {"n": 4}}
        assert landed(scene) == scene.last | wrong
    scene.land()
    assert scene.table() == scene.expected()
