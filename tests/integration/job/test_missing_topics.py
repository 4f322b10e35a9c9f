"""A job whose topics are all missing, as after a typo in their prefix: a person learns of it, and of the nearest names."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.plan.planning import requirements_of
from processor.job.metrics.status import wrong_lines
from processor.job.run import topics
from processor.language.definitions.load import load
from tests.integration.job.profile_definitions import profile_definitions
from tests.integration.job.running_job import running, wait_until

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.rest,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]


def name_topics(scene: Scene, prefix: str) -> None:
    """The operator's next definitions: all topics with this prefix."""
    texts = profile_definitions(scene.settings.job)
    entities = json.loads(texts["entities.yaml"])
    for name, entity in entities.items():
        entity["topic"] = f"{prefix}.{name}"
    definitions = load(texts | {"entities.yaml": json.dumps(entities)})
    scene.registry.apply(requirements_of(definitions), who="a test", why="topics have a prefix")


def wrong(scene: Scene) -> list[str]:
    """What a person must repair."""
    return [line for status in scene.registry.jobs() for line in wrong_lines(status)]


def test_a_job_without_any_topic_is_wrong_after_a_while_and_right_once_the_names_are(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "GRACE_SECONDS", 0.0)
    right = scene.settings.job
    scene.produce(rows.user(1, "ada"))
    name_topics(scene, f"typo{right}")
    with running(scene) as job:
        wait_until(lambda: bool(wrong(scene)), job)
        (status,) = scene.registry.jobs()
        (line,) = wrong(scene)
        assert line.startswith("the job reads nothing: none of its topics exists, for ")
        for entity in ("user", "star"):
            assert f"typo{right}.{entity} (the broker has {right}.{entity})" in line
        assert (status.report["doing"], status.report["topics"]) == ("waits for its topics", {})
        assert status.report["missing_topics"][f"typo{right}.user"]["products"] == ["profile"]
        name_topics(scene, right)
        wait_until(lambda: len(scene.documents()) == 1, job)
        wait_until(lambda: not wrong(scene), job)
    assert job.failures == []
