"""Definitions and settings that make a job read what it publishes: refused before anything is written."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.errors import PlanError

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.plain,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # PySpark's own, and those of the command's end
]


@pytest.mark.rest
@pytest.mark.parametrize("owner", ["entity `user` reads", "product `profile` publishes to"])
def test_a_job_whose_dead_letters_go_to_a_topic_of_its_own_does_not_start(scene: Scene, owner: str) -> None:
    topic = scene.topic("user") if "user" in owner else scene.plan.products["profile"].product.topic
    with (
        pytest.raises(PlanError, match=rf"{owner} the topic `{topic}`, and the job keeps its dead letters"),
        scene.opened(dead_letter_topic=topic),
    ):
        pass
    with scene.opened() as job:
        assert job.lease.generation == 1  # the refused job had not even the lease


def test_apply_refuses_topics_across_all_definitions_of_the_registry(
    scene: Scene, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of another team name neither the entity nor the product that they collide with."""
    settings = scene.settings
    flags = [f"--{n}={getattr(settings, n.replace('-', '_'))}" for n in ("registry-schema", "slots")]
    monkeypatch.setenv("STATESTORE_REGISTRY", settings.registry)

    def refusal(entity_topic: str, product_topic: str, dead_letter_topic: str = "no.topic") -> str:
        entities = {"order": {"topic": entity_topic, "key": ["id"], "columns": {"id": "int"}}}
        (tmp_path / "entities.yaml").write_text(json.dumps(entities))
        (tmp_path / "products").mkdir(exist_ok=True)
        product = {"product": "orders", "topic": product_topic, "root": "order"}
        (tmp_path / "products" / "orders.yaml").write_text(json.dumps(product))
        before = scene.registry.snapshot()
        assert main(["apply", "--definitions", str(tmp_path), *flags, "--rejects-topic", dead_letter_topic]) == 1
        assert scene.registry.snapshot() == before
        return capsys.readouterr().err

    profile, user = scene.plan.products["profile"].product.topic, scene.topic("user")
    assert f"entity order: product profile of the registry already has the topic `{profile}`" in refusal(profile, "o")
    assert f"product orders: entity user of the registry already has the topic `{user}`" in refusal("order", user)
    assert "product orders: product profile of the registry already has" in refusal("order", profile)
    assert "entity `order` reads the topic `order`, and the job keeps its dead letters there" in refusal(
        "order", "o", "order"
    )
    assert "product `orders` publishes to the topic `o`, and the job keeps its dead letters" in refusal(
        "order", "o", "o"
    )
    with pytest.raises(PlanError, match="the job keeps its dead letters there"):
        _prepare(replace(settings, dead_letter_topic=user))


def _prepare(settings: Any) -> None:
    from processor.job.run.open_job import prepare_plan

    prepare_plan(settings, None)
