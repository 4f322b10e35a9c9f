"""The job continues over the state, the registry and the checkpoint that an earlier release left: nothing goes out twice."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_of, requirements_of
from processor.environment.settings.resolve import open_registry
from processor.environment.stores.kinds import open_store
from processor.language.definitions.load import load
from statestore.dynamodb.store import DynamoStore
from statestore.items import FORMAT
from statestore.keys import Key
from statestore.store import Terminal
from tests.releases.release import DEFINITIONS, RELEASES, SETTINGS
from tests.releases.restore import restore

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]


@pytest.fixture(params=sorted(RELEASES.iterdir()), ids=lambda folder: str(folder.name))
def left(request: pytest.FixtureRequest, scene: Scene, tmp_path: Path) -> Iterator[Scene]:
    """The parts that the release left, at the addresses of the scene."""
    names = ("endpoint", "region", "registry", "bootstrap_servers", "threads")
    found = {name: getattr(scene.settings, name) for name in names}
    settings = replace(SETTINGS, **found, checkpoint=str(tmp_path / "checkpoint"))
    with open_registry(settings) as registry:
        records = restore(request.param, settings, registry)
        registry.migrate(settings.slots)
        plan = plan_of(registry.snapshot())
        yield replace(scene, settings=settings, registry=registry, plan=plan, lines=records)


def test_the_job_of_this_release_goes_on_where_an_earlier_one_stopped(left: Scene, rows: SimpleNamespace) -> None:
    refuses_items_of_a_newer_release(left)
    first, before = left.run(), left.published()
    assert first.tally["read"] == 0
    assert left.documents() == left.truth()  # which also looks at the sequences
    assert left.documents("team") == left.truth("team")
    shown = [(message.key, message.value) for message in before]
    assert len(set(shown)) == len(shown)

    left.produce(("user", {"id": 1}, {"id": 1, "name": "ada the second"}), partition=0)
    left.produce(("team", {"id": 2}, {"id": 2, "member_ids": [3, 1]}), partition=0)
    names = {"product": "names", "topic": "release.names", "root": "user", "fields": ["id", "name"]}
    definitions = load(DEFINITIONS | {"names.yaml": json.dumps(names)})
    left.registry.apply(requirements_of(definitions), who="a test", why="an edit by this release")
    assert left.run().tally["read"] == 2
    for product in ("profile", "team", "names"):
        assert left.documents(product) == left.truth(product), product
    assert left.run().tally == {}


def refuses_items_of_a_newer_release(left: Scene) -> None:
    """A newer release raises the format of the identity first: then this one does not start, and writes nothing."""
    store = open_store(left.settings)
    assert isinstance(store, DynamoStore)
    key, before = {"PK": {"S": "IDENTITY"}, "SK": {"S": "table"}}, left.published()
    update = {"TableName": left.settings.table, "Key": key, "UpdateExpression": "SET #f = :f"}
    update |= {"ExpressionAttributeNames": {"#f": "_f"}}
    for found in (FORMAT + 1, FORMAT):
        store._boto3.api.update_item(**update, ExpressionAttributeValues={":f": {"N": f"{found}"}})
        if found > FORMAT:
            with pytest.raises(Terminal, match=r"IDENTITY / table: the item has format 2, .* install that release"):
                left.run()
    assert left.published() == before
    assert store.get([Key("RUNS", "0000000003")]) == {}
    store.close()
