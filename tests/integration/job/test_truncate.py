"""A truncate of the source stops the job before it commits the batch, or deletes the older rows, as the operator chooses."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.rounds.driver import Driver
from processor.errors import StatestoreError
from processor.language.definitions.load import load

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

EMPTY = {"before": None, "after": None, "source": {"table": "user"}, "op": "t", "ts_ms": 1}


def choose(scene: Scene, choice: str) -> None:
    """The operator's next definitions: each entity has this choice."""
    texts = {entry.name: {**entry.definition, "truncate": choice} for entry in scene.registry.snapshot().entities}
    definitions = load({"entities.yaml": json.dumps(texts)})
    scene.registry.apply(requirements_of(definitions), who="a test", why=choice)
    scene.plan = plan_of(scene.registry.snapshot())


@pytest.mark.slow
def test_a_truncate_stops_the_job_until_the_entity_ignores_it(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), rows.star("ada", "one"), partition=1)
    scene.run()
    before, committed = scene.published(), scene.committed()
    scene.produce(rows.user(2, "bob"), ("user", None, EMPTY), partition=1)
    for _ in range(2):
        with pytest.raises(StatestoreError) as error:
            scene.run()
        assert str(error.value).startswith(
            f"the batch failed: topic {scene.topic('user')}, partition 1, offset 2: the source emptied the table of user, and "
        )
        assert "\n" not in str(error.value)
        assert (scene.published(), scene.committed()) == (before, committed)

    choose(scene, "delete")
    with pytest.raises(StatestoreError, match="the topic has 2 partitions, so nobody knows"):
        scene.run()
    assert (scene.published(), scene.committed()) == (before, committed)

    choose(scene, "ignore")
    assert scene.run().tally["ignored: truncate"] == 1
    assert list(scene.documents()) == ['{"id":1}', '{"id":2}']


@pytest.mark.slow
def test_a_truncate_deletes_the_older_rows_and_the_next_run_goes_on_with_it(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = new_scene(partitions=1, walk_page=2)
    choose(scene, "delete")
    scene.produce(*(rows.user(n, f"u{n}") for n in range(7)), *(rows.star(f"u{n}", "one") for n in range(7)))
    scene.run()
    assert [len(one["stars"]) for one in scene.documents().values()] == [1] * 7

    def fail(_: Driver) -> None:
        raise StatestoreError("the walk broke off")

    scene.produce(("star", None, EMPTY), rows.star("u3", "two"), ("user", None, EMPTY), rows.user(3, "u3"))
    with monkeypatch.context() as patched:
        patched.setattr(Driver, "walk", fail)
        with pytest.raises(StatestoreError, match="the walk broke off"):
            scene.run()
    assert len(scene.documents()) == 7
    assert scene.run().tally["deleted"] == 13
    ((key, document),) = scene.documents().items()
    assert (key, [star["repo"] for star in document["stars"]]) == ('{"id":3}', ["two"])
