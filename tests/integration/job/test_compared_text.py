"""A column of stored rows gets another way to compare: the live documents stay until the new slots are full, then all go out."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.plan.planning import requirements_of
from processor.language.definitions.load import load
from tests.integration.job.profile_definitions import profile_definitions

Scene = Any  # conftest's


@pytest.mark.rest
@pytest.mark.plain
def test_another_way_to_compare_fills_slots_and_publishes_every_document(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "Ada"), rows.user(2, "bob"), rows.star("ada", "r"), rows.star("BOB ", "s"))
    scene.run()
    before = scene.documents()
    texts = profile_definitions(scene.settings.job)
    entities = json.loads(texts["entities.yaml"])
    entities["star"]["columns"]["who"] = {"type": "string", "compare": ["ci", "trimmed"]}
    required = requirements_of(load({**texts, "entities.yaml": json.dumps(entities)}))
    scene.registry.apply(required, who="a test", why="the source's collation")
    assert scene.documents() == before
    scene.run()
    assert scene.documents() == scene.truth()
    assert {key: [star["repo"] for star in one["stars"]] for key, one in scene.documents().items()} == {
        '{"id":1}': ["r"],
        '{"id":2}': ["s"],
    }
    assert all(not one["stars"] for one in before.values())
