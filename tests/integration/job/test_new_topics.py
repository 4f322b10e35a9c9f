"""Topics that an entity did not read before: another topic for its rows, or the topic of a new entity."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from processor.definitions.load import load
from processor.errors import CheckpointError
from processor.plan.planning import plan_of, requirements_of
from tests.sampled import sampled

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

ADA = '{"id":1}'


def apply(scene: Scene, topics: dict[str, str]) -> None:
    """The operator's next definitions: entities of two columns, each with its topic, and a product of users."""
    entities = {
        name: {"topic": topic, "key": ["id"], "columns": {"id": "int", "name": "string"}}
        for name, topic in topics.items()
    }
    product = {"product": "names", "topic": f"{scene.settings.job}.names", "root": "user", "fields": ["id", "name"]}
    texts = {"entities.yaml": json.dumps(entities), "products/names.yaml": json.dumps(product)}
    scene.registry.apply(requirements_of(load(texts)), who="a test", why="")
    scene.plan = plan_of(scene.registry.snapshot())
    scene.admin().ensure(topics.values(), partitions=2, compacted=False)


def name_of_ada(scene: Scene) -> str:
    return str(scene.documents("names")[ADA]["name"])


def test_changes_of_an_entitys_new_topic_are_newer_than_all_that_it_stored(scene: Scene, rows: SimpleNamespace) -> None:
    name = scene.settings.job
    first, second = f"{name}.user", f"{name}.user2"
    apply(scene, {"user": first})
    scene.produce(*(rows.user(1, f"first{n}") for n in range(9)), partition=0)
    scene.run()

    apply(scene, {"user": second})
    scene.produce(rows.user(1, "second"), partition=1)  # at offset 0, and the row is from offset 8
    with pytest.raises(CheckpointError, match=rf"no longer reads {first} .* run with another --checkpoint"):
        scene.run()
    scene.lose_checkpoint()
    scene.run()
    assert name_of_ada(scene) == "second"

    apply(scene, {"user": first})
    scene.produce(rows.user(1, "first again"), partition=0)
    scene.lose_checkpoint()
    scene.run()
    assert name_of_ada(scene) == "first again"
    epochs = {(b.topic, b.epoch) for b in scene.registry.epochs([first, second])}
    assert epochs == {(first, 1), (second, 2), (first, 3)}


@pytest.mark.slow
def test_entities_that_swap_their_topics_go_on_with_newer_versions(scene: Scene, rows: SimpleNamespace) -> None:
    name = scene.settings.job
    one, two = f"{name}.one", f"{name}.two"
    apply(scene, {"user": one, "guest": two})
    scene.produce(*(rows.user(1, f"one{n}") for n in range(9)), partition=0)
    scene.produce(("guest", {"id": 1}, {"id": 1, "name": "two"}), partition=0)
    scene.run()

    apply(scene, {"user": name, "guest": one})  # two entities never have one topic
    apply(scene, {"user": two, "guest": one})
    with pytest.raises(CheckpointError, match=f"no longer reads {one}, {two} as"):
        scene.run()
    scene.lose_checkpoint()
    scene.run()
    assert name_of_ada(scene) == "two"
    before = scene.registry.epochs([one, two])
    scene.produce(rows.user(1, "newer"), partition=0)
    scene.run()
    assert name_of_ada(scene) == "newer"
    assert scene.registry.epochs([one, two]) == before


@pytest.mark.parametrize(
    "last_batch", sampled(["committed", "not committed", "planned with the new topic"], "not committed")
)
def test_a_new_entitys_topic_begins_where_retention_left_it(
    scene: Scene, rows: SimpleNamespace, last_batch: str
) -> None:
    name = scene.settings.job
    apply(scene, {"user": f"{name}.user"})
    scene.produce(rows.user(1, "ada"), partition=0)
    scene.run()
    if last_batch != "committed":
        scene.uncommit_last()
    apply(scene, {"guest": f"{name}.guest", "user": f"{name}.user"})
    scene.produce(*(("guest", {"id": n}, {"id": n, "name": f"guest{n}"}) for n in range(20)), partition=0)
    broker = AdminClient({"bootstrap.servers": scene.settings.bootstrap_servers})
    (deleted,) = broker.delete_records([TopicPartition(f"{name}.guest", 0, 12)]).values()
    assert deleted.result(300).low_watermark == 12
    if last_batch == "planned with the new topic":
        plan_topic(scene, f"{name}.guest", {"0": 15, "1": 0})

    assert scene.run().tally["read"] == 8 + (last_batch != "committed")
    with scene.opened() as job:
        assert scene.stored(job, "guest", "11") is None
        assert scene.stored(job, "guest", "12")["name"] == "guest12"
    scene.produce(("guest", {"id": 5}, {"id": 5, "name": "later"}), partition=0)
    assert scene.run().tally["read"] == 1


def plan_topic(scene: Scene, topic: str, ends: dict[str, int]) -> None:
    """Leaves the checkpoint as Spark does when it plans a batch with a topic that appeared under the job, and fails."""
    planned = Path(scene.settings.checkpoint, "offsets", "0")
    *head, last = planned.read_text().split("\n")
    planned.with_name(".0.crc").unlink()
    planned.write_text("\n".join([*head, json.dumps({**json.loads(last), topic: ends})]))


def test_a_checkpoint_whose_next_records_retention_removed_is_refused_with_the_way_out(
    scene: Scene, rows: SimpleNamespace
) -> None:
    apply(scene, {"user": (topic := f"{scene.settings.job}.user")})
    scene.produce(*(rows.user(n, f"user{n}") for n in range(3)), partition=0)
    scene.run()
    scene.produce(*(rows.user(n, "later") for n in range(3)), partition=0)
    broker = AdminClient({"bootstrap.servers": scene.settings.bootstrap_servers})
    broker.delete_records([TopicPartition(topic, 0, 5)])[TopicPartition(topic, 0)].result(300)
    with pytest.raises(CheckpointError, match=rf"topic {topic}, partition 0: .* offset 3, .* begins at 5: .* another"):
        scene.run()
    scene.lose_checkpoint()
    scene.produce(*(rows.user(n, "again") for n in range(3)), partition=0)
    scene.run()
    assert [one["name"] for one in scene.documents("names").values()] == ["again"] * 3


def test_a_checkpoint_that_lacks_a_file_is_refused(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    scene.run()
    Path(scene.settings.checkpoint, "offsets", "0").unlink()
    with pytest.raises(CheckpointError, match=r"is not whole: it lacks the file offsets/0; run with another"):
        scene.run()


def test_a_checkpoint_that_is_ahead_of_its_topic_is_refused(scene: Scene, rows: SimpleNamespace) -> None:
    """As after a broker that came back without its last records."""
    scene.produce(rows.user(1, "ada"), partition=0)
    scene.run()
    plan_topic(scene, scene.topic("user"), {"0": 7, "1": 0})
    with pytest.raises(
        CheckpointError, match=r"offset 7, and the partition ends at 1: it lost records .* `statestore epoch"
    ):
        scene.run()


PARALLEL = [{"lanes": 5}, {"lanes": 1, "partitions": 3, "batch_size": 1}]


@pytest.mark.parametrize("changes", sampled(PARALLEL, PARALLEL[0]), ids=str)
def test_settings_of_parallelism_keep_the_checkpoint(
    scene: Scene, rows: SimpleNamespace, changes: dict[str, int]
) -> None:
    scene.produce(*(rows.user(n, f"user{n}") for n in range(9)), partition=0)
    scene.run()
    scene.uncommit_last()
    scene.produce(rows.user(1, "later"), partition=0)
    again = scene.run(**changes)
    assert (again.tally["read"], again.published) == (10, 1)
    assert scene.documents() == scene.truth()
