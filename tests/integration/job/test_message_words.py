"""Products whose messages have headers, places and keys of their own, two of them in one topic, on a real broker."""

import json
from collections.abc import Callable
from contextlib import closing
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.identity import SEQUENCES
from processor.engine.rounds.follow_up_stages import RootToRepair
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.stores.kinds import open_store
from processor.job.kafka.outbox import KafkaOutbox
from processor.language.definitions.load import load
from processor.tools.inspect.verification import VerificationResult, Verifier, with_open_changes
from processor.tools.operate.repair import Repair
from processor.values.record import HEADERS, Message, partition_of_key
from tests.integration.job.profile_definitions import profile_definitions

Scene = Any  # conftest's
pytestmark = [pytest.mark.plain, pytest.mark.rest]


def share_a_topic(scene: Scene) -> None:
    """Two more products, in one topic."""
    people = {
        "product": "people",
        "topic": f"{scene.settings.job}.documents",
        "root": "user",
        "key": {"kind": "'user'", "id": "id"},
        "headers": {"name": "name", "kind": "'user'"},
        "partition_by": ["name"],
        "fields": ["id"],
    }
    gifts = {**people, "product": "gifts", "root": "star", "key": {"kind": "'star'", "who": "who", "repo": "repo"}}
    gifts = {name: value for name, value in gifts.items() if name not in ("headers", "partition_by", "fields")}
    texts = {"people.json": json.dumps(people), "gifts.json": json.dumps(gifts)}
    definitions = load(profile_definitions(scene.settings.job) | texts)
    scene.registry.apply(requirements_of(definitions), who="a test", why="one topic")
    scene.plan = plan_of(scene.registry.snapshot())


def seen(scene: Scene) -> list[tuple[str, int, bool, dict[str, bytes]]]:
    """Of each message, partition by partition: its key, its partition, whether it has a document, its own headers."""
    return [
        (r.key.decode(), r.partition, r.value is not None, {n: t for n, t in r.headers if n not in HEADERS})
        for r in scene.published("people")
    ]


def verify(scene: Scene, product: str) -> VerificationResult:
    with closing(open_store(scene.settings)) as store:
        verifier = Verifier(plan=scene.plan, runner=with_open_changes(StepRunner(store=store)), wait=lambda: None)
        return verifier.verify(scene.plan.products[product], lambda: scene.published(product), None, Random(1))


def noted(scene: Scene) -> dict[str, dict[str, Any]]:
    """What the table notes of the topics of products."""
    with closing(open_store(scene.settings)) as store:
        return {item["SK"]: dict(item) for item in store.partition(SEQUENCES)}


def place(name: str) -> int:
    return partition_of_key(json.dumps({"name": name}).encode(), 2)


FIRST, SECOND = "ann", next(n for n in ("bob", "eve", "dan", "kim", "joe", "lea") if place(n) != place("ann"))
KEY = '{"kind":"user","id":1}'


@pytest.mark.parametrize("kind", ["postgres", "dynamodb"])
def test_two_products_share_a_topic_and_a_document_moves_between_its_partitions(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, kind: str
) -> None:
    scene = new_scene(store=kind)
    scene.plain = True
    share_a_topic(scene)
    scene.produce(rows.user(1, FIRST), *(rows.star(FIRST, f"r{n}") for n in range(6)))
    scene.run()
    gifts = [one for one in seen(scene) if "star" in one[0]]
    assert len(gifts) == 6
    assert all(one[1] == partition_of_key(one[0].encode(), 2) for one in gifts)  # as librdkafka chooses
    own = {"kind": b"user"}
    assert [one for one in seen(scene) if one[0] == KEY] == [(KEY, place(FIRST), True, {"name": FIRST.encode(), **own})]
    before = noted(scene)

    scene.produce(rows.user(1, SECOND))
    assert scene.run().published == 2  # the profile, too
    assert sorted(one for one in seen(scene) if one[0] == KEY) == sorted(
        [
            (KEY, place(FIRST), True, {"name": FIRST.encode(), **own}),
            (KEY, place(FIRST), False, own),
            (KEY, place(SECOND), True, {"name": SECOND.encode(), **own}),
        ]
    )
    scene.lose_checkpoint()
    assert scene.run().published == 0
    assert noted(scene) == before

    people, gifts_result = verify(scene, "people"), verify(scene, "gifts")
    assert (people.differences, people.compared, people.passed) == ((), 1, {"gifts": 6})
    assert (gifts_result.differences, gifts_result.compared, gifts_result.passed) == ((), 6, {"people": 3})

    outbox = KafkaOutbox(scene.settings.bootstrap_servers, {})
    stray = Message(topic=f"{scene.settings.job}.documents", key=KEY.encode(), value=b'{"id":1}')
    outbox.produce(stray, place(FIRST), 0)
    outbox.flush()
    (found,) = verify(scene, "people").differences
    assert found.strays == (place(FIRST),)
    parts = {"settings": scene.settings, "plan": scene.plan, "registry": scene.registry}
    root = RootToRepair((found.product, found.root or ""), found.key, found.partitions)
    with closing(open_store(scene.settings)) as store:
        assert Repair(**parts, store=store, owner="repair").publish([root])["published"] == 1
    assert verify(scene, "people").differences == ()

    scene.produce(rows.gone(rows.user(1, SECOND)))
    scene.run()
    last = {one[1]: one[2] for one in seen(scene) if one[0] == KEY}
    assert last == {0: False, 1: False}
    assert verify(scene, "people").differences == ()
    assert verify(scene, "gifts").differences == ()
