"""A product whose topic is gone is stopped alone, and has all its documents again after the commands that the job names."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from processor.job.run.run_job import run_job
from registry.edits import operations
from registry.edits.edit import Signature
from tests.integration.job.running_job import broker, configure

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


@pytest.mark.slow
def test_a_product_whose_topic_is_deleted_under_the_job_stops_alone_until_it_is_published_again(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.add("names", fields=["id", "name"])
    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"))
    scene.run()
    topic = f"{scene.settings.job}.profile"
    scene.produce(rows.user(2, "bo"), rows.user(3, "cyd"), partition=0)
    lines: list[str] = []
    with scene.opened(report=lambda event: lines.append(event.text), batch_size=1) as job:
        broker(scene).delete_topics([topic])[topic].result(300)
        run_job(job, once=True)
        assert list(job.driver.progress.backlog.stopped) == ["profile"]
    (line,) = [line for line in lines if line.startswith("product profile stopped: ")]
    assert f"topic {topic} refuses what is sent to it" in line
    assert "start the job again, which creates it, and give `statestore republish` for its product" in line
    assert scene.documents("names") == scene.truth("names")
    lines = [line for line in lines if line.startswith(("product ", "batch "))]
    assert len([line for line in lines if line.startswith("batch ")]) >= 2  # one of them after the stop

    assert run(scene) == [
        f"topic {topic} of product profile was deleted and created again: it lacks every document that has not changed "
        "since. `statestore republish profile` publishes all of them"
    ]
    assert scene.documents().keys() == {'{"id":2}', '{"id":3}'}
    scene.registry.operate(Signature("a test", "its topic was deleted"), operations.republish, "profile")
    run(scene)
    assert run(scene) == []
    assert scene.documents() == scene.truth()


@pytest.mark.slow
def test_a_topic_with_other_partitions_and_one_that_drops_documents_get_a_warning_with_the_command(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(rows.user(1, "ada"))
    assert run(scene) == []
    topic = f"{scene.settings.job}.profile"
    broker(scene).create_partitions([NewPartitions(topic, 3)])[topic].result(300)
    configure(scene, topic, cleanup_policy="delete", retention_ms="86400000")
    scene.produce(rows.user(2, "bob"))
    partitions, policy = run(scene)
    assert partitions.startswith(f"topic {topic} of product profile has 3 partitions, and had 2: ")
    assert "take the highest statestore.sequence of a key; or delete the topic" in partitions
    assert policy == (
        f"topic {topic} of product profile has cleanup.policy=delete and drops documents: kafka-configs.sh --alter "
        f"--entity-type topics --entity-name {topic} --add-config cleanup.policy=compact"
    )
    assert scene.documents() == scene.truth()


def run(scene: Scene) -> list[str]:
    """Runs the job until all is worked off: its warnings about topics of products."""
    lines: list[str] = []
    with scene.opened(report=lambda event: lines.append(event.text) if event.what == "product topic" else None) as job:
        run_job(job, once=True)
    return lines
