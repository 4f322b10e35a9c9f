"""Verify finds documents that somebody overwrote on the topic; repair publishes them again through ledger and fence."""

from random import Random
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.follow_up_stages import RootToRepair
from processor.engine.rounds.step_runner import StepRunner
from processor.environment.stores.kinds import open_store
from processor.errors import Fenced, KafkaError
from processor.job.kafka.outbox import KafkaOutbox, TransactionalOutbox
from processor.job.run.run_job import run_job
from processor.job.run.worker import transactional_id
from processor.tools.inspect.verification import VerificationResult, Verifier, with_open_changes
from processor.tools.operate.repair import Repair
from processor.values.record import Message, Record, partition_of_key
from registry.errors import LeaseHeld

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


def verify(scene: Scene) -> VerificationResult:
    runner = with_open_changes(StepRunner(store=open_store(scene.settings)))
    product = scene.plan.products["profile"]
    return Verifier(plan=scene.plan, runner=runner, wait=lambda: None).verify(product, scene.published, None, Random(1))


def repair(scene: Scene, *roots: RootToRepair) -> int:
    parts = {"settings": scene.settings, "plan": scene.plan, "registry": scene.registry}
    return Repair(**parts, store=open_store(scene.settings), owner="repair").publish(roots)["published"]


def spoil(scene: Scene, message: Record, value: bytes | None) -> None:
    """Somebody writes over a document, into the partition where it is."""
    outbox = KafkaOutbox(scene.settings.bootstrap_servers, {})
    spoilt = Message(topic=message.topic, key=message.key, value=value, headers=())
    outbox.produce(spoilt, message.partition, 0)
    outbox.flush()


@pytest.mark.rest
def test_verify_names_overwritten_documents_and_repair_publishes_them_again(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(*(rows.user(n, f"user{n}") for n in range(5)), rows.star("user1", "repo"))
    scene.produce(rows.gone(rows.user(4, "user4")))
    scene.run()
    good = {record.key: record for record in scene.published()}
    assert verify(scene).differences == ()
    spoil(scene, good[b'{"id":1}'], b'{"id":1}')
    spoil(scene, good[b'{"id":2}'], None)
    topic, other = good[b'{"id":1}'].topic, b'{"id":9}'
    place = partition_of_key(other, len(scene.admin().ends(topic)))
    spoil(scene, Record(topic=topic, partition=place, offset=0, key=other, value=b""), b"{}")
    found = verify(scene).differences
    assert [d.key for d in found] == ['{"id":1}', '{"id":2}', '{"id":9}']
    assert repair(scene, *(RootToRepair((d.product, d.root or ""), d.key) for d in found)) == 3
    last = {record.key: record for record in scene.published()}
    assert {key: record.value for key, record in last.items()} == {
        **{key: record.value for key, record in good.items()},
        b'{"id":9}': None,
    }
    for key in (b'{"id":1}', b'{"id":2}'):
        assert sequence(last[key]) > sequence(good[key])
    assert verify(scene).differences == ()
    scene.produce(rows.star("user2", "repo"))
    assert scene.run().published == 1  # the job continues, and publishes nothing twice


@pytest.mark.rest
def test_repair_is_refused_while_a_job_lives_and_fences_what_was_before(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    scene.run()
    root = RootToRepair(("profile", "1"), '{"id":1}')
    with scene.opened(owner="first", lanes=1, lease_seconds=5) as first:
        running = Thread(target=run_job, args=[first], kwargs={"once": False})
        running.start()
        with pytest.raises(LeaseHeld, match="runs already: first"):
            repair(scene, root)
        first.stopping.set()
        running.join()
    zombie = TransactionalOutbox(scene.settings.bootstrap_servers, {}, transactional_id(scene.settings, 1))
    assert repair(scene, root) == 1
    zombie.send(Message(topic=scene.topic("user"), key=b"1", value=b"from the zombie", headers=()))
    with pytest.raises((Fenced, KafkaError)):
        zombie.flush()


def sequence(record: Record) -> int:
    return int(dict(record.headers)["statestore.sequence"] or b"")
