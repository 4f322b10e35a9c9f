"""A product whose topic refuses a document is stopped alone, and goes on where it stopped once the topic takes it."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from processor.job.run_job import run_job

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


def test_a_document_beyond_its_topic_s_limit_stops_its_product_until_the_limit_is_raised(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.add("names", fields=["id", "name"])
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"))
    scene.run()
    limit(scene, 2_000)
    scene.produce(rows.star("ada", "long", note="x" * 5_000), rows.user(2, "bo"), rows.user(3, "cyd"), partition=0)
    before = scene.documents()
    stopped, lines = run(scene)
    assert list(stopped) == ["profile"]
    assert f"topic {scene.settings.job}.profile refuses what is sent to it" in stopped["profile"]
    lines = [line for line in lines if line.startswith(("product ", "batch "))]
    assert [line for line in lines if line.startswith("product profile stopped: ")] == lines[:1]
    assert scene.documents() == before
    assert scene.documents("names") == scene.truth("names")
    assert len([line for line in lines if line.startswith("batch ")]) >= 2  # one of them after the stop

    assert list(run(scene)[0]) == ["profile"]  # this start comes too early: the backlog stays
    assert scene.documents()['{"id":1}'] == before['{"id":1}']

    limit(scene, 8_000_000)
    names = scene.published("names")
    assert run(scene)[0] == {}
    assert scene.documents() == scene.truth()
    assert scene.published("names") == names
    assert scene.run().tally == {}


def run(scene: Scene) -> tuple[dict[str, str], list[str]]:
    """Runs the job until all is worked off: the products that are stopped then, and what was reported."""
    lines: list[str] = []
    with scene.opened(report=lambda event: lines.append(event.text), batch_size=1) as job:
        run_job(job, once=True)
        return job.driver.backlog.stopped, lines


def limit(scene: Scene, size: int) -> None:
    """Sets how large a message of the product's topic may be, in bytes."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, f"{scene.settings.job}.profile", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": scene.settings.bootstrap_servers})
    for future in admin.incremental_alter_configs([topic]).values():
        future.result()
