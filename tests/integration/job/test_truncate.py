"""A truncate of the source stops the job before it commits the batch, until the operator chooses."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from processor.definitions.load import load
from processor.errors import StatestoreError
from processor.plan.planning import plan_of, requirements_of

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


@pytest.mark.slow
def test_a_truncate_stops_the_job_until_the_entity_ignores_it(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), rows.star("ada", "one"), partition=1)
    scene.run()
    before, committed = scene.published(), scene.committed()
    empty = {"before": None, "after": None, "source": {"table": "user"}, "op": "t", "ts_ms": 1}
    scene.produce(rows.user(2, "bob"), ("user", None, empty), partition=1)
    for _ in range(2):
        with pytest.raises(StatestoreError) as error:
            scene.run()
        assert str(error.value).startswith(
            f"the batch failed: topic {scene.topic('user')}, partition 1, offset 2: the source emptied the table of user, and "
        )
        assert "\n" not in str(error.value)
        assert (scene.published(), scene.committed()) == (before, committed)

    texts = {entry.name: {**entry.definition, "truncate": "ignore"} for entry in scene.registry.snapshot().entities}
    definitions = load({"entities.yaml": json.dumps(texts)})
    scene.registry.apply(requirements_of(definitions), who="a test", why="the rows stay")
    scene.plan = plan_of(scene.registry.snapshot())
    assert scene.run().tally["ignored: truncate"] == 1
    assert list(scene.documents()) == ['{"id":1}', '{"id":2}']
