"""Topics that an entity did not read before: another topic for its rows, or the topic of a new entity."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from processor.engine.plan.planning import plan_of, requirements_of
from processor.errors import CheckpointError
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.run.topics import record_boundary
from processor.language.definitions.load import load
from processor.values.record import Message
from tests.support.sampled import sampled

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


@pytest.mark.rest
def test_an_entity_reads_its_former_topic_to_its_end_and_then_its_next_one(scene: Scene, rows: SimpleNamespace) -> None:
    name = scene.settings.job
    first, second = f"{name}.user", f"{name}.user2"
    apply(scene, {"user": first})
    scene.produce(*(rows.user(1, f"first{n}") for n in range(9)), rows.user(2, "bob"), partition=0)
    scene.run()
    scene.produce(rows.gone(rows.user(2, "bob")), rows.user(3, "eve"), partition=0)  # before the source moves

    apply(scene, {"user": second})
    assert scene.run().tally["read"] == 2  # the next topic has no record yet
    assert '{"id":2}' not in scene.documents("names")
    scene.produce(rows.user(1, "second"), partition=1)  # at offset 0, and the row is from offset 8
    assert scene.run().tally["read"] == 1
    assert name_of_ada(scene) == "second"
    assert scene.run().tally["read"] == 0

    apply(scene, {"user": first})
    scene.produce(rows.user(1, "first again"), partition=0)
    assert scene.run().tally["read"] == 1  # it continues where the entity left it
    assert name_of_ada(scene) == "first again"
    boundaries = [(b.topic, b.from_offset, b.epoch) for b in scene.registry.epochs([first, second]) if b.partition == 0]
    assert boundaries == [(first, 0, 1), (first, 12, 2), (first, 12, 5), (second, 0, 3), (second, 0, 4)]

    scene.lose_checkpoint()
    scene.run()
    names = {key: document["name"] for key, document in scene.documents("names").items()}
    assert names == {ADA: "first again", '{"id":3}': "eve"}


@pytest.mark.rest
def test_a_new_checkpoint_and_an_old_one_read_the_topics_of_an_entity_in_their_order(
    scene: Scene, rows: SimpleNamespace
) -> None:
    name = scene.settings.job
    first, second = f"{name}.user", f"{name}.user2"
    apply(scene, {"user": first})
    scene.produce(rows.user(1, "first"), partition=0)
    scene.run()
    scene.produce(rows.user(2, "unread"), partition=0)
    apply(scene, {"user": second})
    scene.produce(rows.user(1, "second"), partition=0)
    copy = shutil.copytree(scene.settings.checkpoint, f"{scene.settings.checkpoint}-copy")

    scene.lose_checkpoint()
    scene.run()
    assert {one["name"] for one in scene.documents("names").values()} == {"second", "unread"}
    assert scene.run(checkpoint=str(copy)).tally["read"] == 1  # of the next topic: the entity has left the former one
    assert {one["name"] for one in scene.documents("names").values()} == {"second", "unread"}


@pytest.mark.rest
def test_an_operator_can_give_up_the_rest_of_a_former_topic(scene: Scene, rows: SimpleNamespace) -> None:
    name = scene.settings.job
    first, second = f"{name}.user", f"{name}.user2"
    apply(scene, {"user": first})
    scene.produce(rows.user(1, "first"), partition=0)
    scene.run()
    scene.produce(rows.user(2, "given up"), partition=0)
    apply(scene, {"user": second})
    record_boundary(scene.registry, scene.admin(), second, who="a test", why="from its first record")
    scene.produce(rows.user(1, "second"), partition=0)
    scene.run()
    assert {one["name"] for one in scene.documents("names").values()} == {"second"}


@pytest.mark.rest
def test_a_former_topic_that_is_gone_holds_nothing_up(scene: Scene, rows: SimpleNamespace) -> None:
    name = scene.settings.job
    first, second = f"{name}.user", f"{name}.user2"
    apply(scene, {"user": first})
    scene.produce(rows.user(1, "first"), partition=0)
    scene.run()
    apply(scene, {"user": second})
    broker = AdminClient({"bootstrap.servers": scene.settings.bootstrap_servers})
    broker.delete_topics([first])[first].result(300)
    scene.produce(rows.user(1, "second"), partition=0)
    scene.run()
    assert name_of_ada(scene) == "second"


@pytest.mark.slow
def test_entities_that_swap_their_topics_go_on_with_newer_versions(scene: Scene, rows: SimpleNamespace) -> None:
    name = scene.settings.job
    one, two = f"{name}.one", f"{name}.two"
    apply(scene, {"user": one, "guest": two})
    scene.produce(*(rows.user(1, f"one{n}") for n in range(9)), partition=0)
    scene.produce(("guest", {"id": 1}, {"id": 1, "name": "two"}), partition=0)
    scene.run()
    scene.produce(rows.user(2, "unread"), partition=0)

    apply(scene, {"user": name, "guest": one})  # two entities never have one topic
    apply(scene, {"user": two, "guest": one})
    scene.run()
    assert name_of_ada(scene) == "two"
    assert scene.documents("names")['{"id":2}']["name"] == "unread"
    with scene.opened() as job:
        assert scene.stored(job, "guest", "1")["name"] == "one8"
    before = scene.registry.epochs([one, two])
    scene.produce(rows.user(1, "newer"), partition=0)
    scene.run()
    assert name_of_ada(scene) == "newer"
    assert scene.registry.epochs([one, two]) == before


@pytest.mark.rest
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


@pytest.mark.rest
def test_a_checkpoint_that_lacks_a_file_is_refused(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    scene.run()
    Path(scene.settings.checkpoint, "offsets", "0").unlink()
    with pytest.raises(CheckpointError, match=r"is not whole: it lacks the file offsets/0; run with another"):
        scene.run()


@pytest.mark.rest
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


@pytest.mark.rest
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


@pytest.mark.plain
@pytest.mark.rest
def test_entities_share_a_topic_whose_epochs_are_those_of_each(scene: Scene) -> None:
    topic = f"{scene.settings.job}.app"
    columns = {"id": "int", "name": "string"}
    entities = {
        name: {"topic": topic, "table": name, "format": "debezium", "key": ["id"], "columns": columns}
        for name in ("person", "fan")
    }
    product = {
        "product": "names",
        "topic": f"{scene.settings.job}.names",
        "root": "person",
        "embed": {"stars": {"many": "fan", "on": {"name": "name"}, "fields": ["id"]}},
    }
    texts = {"entities.yaml": json.dumps(entities), "products/names.yaml": json.dumps(product)}
    scene.registry.apply(requirements_of(load(texts)), who="a test", why="")
    scene.plan = plan_of(scene.registry.snapshot())
    scene.admin().ensure([topic], partitions=1, compacted=False)

    def write(*changes: tuple[str, int, str | None]) -> None:
        outbox = KafkaOutbox(scene.settings.bootstrap_servers, {})
        for table, number, name in changes:
            row = {"id": number, "name": name}
            images = {"op": "c", "before": None, "after": row} if name else {"op": "d", "before": row, "after": None}
            value = None if table == "tombstone" else json.dumps({**images, "source": {"table": table}}).encode()
            outbox.produce(Message(topic=topic, key=json.dumps({"id": number}).encode(), value=value, headers=()), 0, 0)
        outbox.flush()

    write(
        ("person", 1, "ada"),
        ("fan", 1, "ada"),
        ("fan", 2, "ada"),
        ("other", 1, "x"),
        ("fan", 2, None),
        ("tombstone", 2, ""),
    )
    tally = scene.run().tally
    assert tally[f"ignored: other table in {topic}"] == 1
    assert tally[f"ignored: control in {topic}"] == 1
    shown = {"id": 1, "name": "ada", "stars": [{"id": 1}]}
    assert scene.documents("names") == {ADA: shown}
    record_boundary(scene.registry, scene.admin(), topic, who="a test", why="a new boundary")
    boundaries = {(b.entity, b.from_offset, b.epoch) for b in scene.registry.epochs([topic])}
    assert boundaries == {(name, *step) for name in entities for step in ((0, 1), (6, 2))}
    write(("fan", 3, "ada"))
    scene.run()
    scene.lose_checkpoint()
    scene.run()
    assert scene.documents("names") == {ADA: {**shown, "stars": [{"id": 1}, {"id": 3}]}}
