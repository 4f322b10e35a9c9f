"""A table or a registry that went back to an earlier moment, as after a failover to a standby that lacked the last writes: the
job finds that at its start, or at the end of its next round, and continues from there when an operator says so."""

from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from processor.environment.stores.kinds import open_store
from processor.errors import OwnedByAnother
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox, TransactionalOutbox
from processor.job.kafka.reader import TAIL, read_tails
from processor.values.record import Message
from statestore.copy_items import copy_items
from statestore.keys import Key
from statestore.memory import MemoryStore
from tests.integration.job.running_job import running, wait_until

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
NO_ITEM = Key("NO", "item")
WENT_BACK = r"the table .* went back to an earlier moment: "
CURE = r".*`statestore run --adopt` with a new --checkpoint"


class Standby:
    """A copy of a scene's table, which lacks every later write until `takes_over`."""

    def __init__(self, scene: Scene) -> None:
        self._settings, self._kept = scene.settings, MemoryStore(20)
        with closing(open_store(self._settings)) as store:
            copy_items(store, self._kept, without=NO_ITEM, report=lambda _: None)

    def takes_over(self) -> None:
        with closing(open_store(self._settings)) as store:
            copy_items(self._kept, store, without=NO_ITEM, report=lambda _: None)


def edit_leases(scene: Scene, values: str) -> None:
    with scene.registry._database.transaction() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))  # a backup knows no triggers
        connection.execute(text(f"UPDATE leases SET {values}"))


@pytest.fixture(params=["postgres", pytest.param("dynamodb", marks=pytest.mark.rest)])
def behind(request: pytest.FixtureRequest, new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Scene:
    """A stopped job whose table lacks the writes of its last run."""
    scene = new_scene(store=request.param)
    scene.produce(rows.user(1, "ann"), rows.user(2, "bob"), rows.star("ann", "repo"))
    scene.run()
    standby = Standby(scene)
    scene.produce(rows.user(1, "ann, changed"), rows.user(3, "eve"), rows.gone(rows.user(2, "bob")))
    scene.run()
    assert scene.documents() == scene.truth()
    standby.takes_over()
    return scene


def goes_on(scene: Scene) -> None:
    """An operator lets the job go on from the earlier moment."""
    before = scene.published()
    with pytest.raises(OwnedByAnother, match=r"checkpoint .* is foreign"):
        scene.run(adopt=True)
    assert scene.published() == before
    scene.lose_checkpoint()
    scene.run(adopt=True)
    assert scene.documents() == scene.truth()  # which also looks at the sequences
    assert scene.run().published == 0


def test_a_broker_shows_which_of_the_last_messages_are_of_a_transaction(addresses: Any) -> None:
    servers, topic = addresses.bootstrap_servers, "tails"
    Admin(servers, {}).ensure([topic], partitions=1, compacted=True)

    def tail() -> tuple[bytes | None, list[bytes | None]]:
        (found,) = read_tails(servers, {}, [topic])
        return found.last.value if found.last else None, [one.value for one in found.loose]

    job, other = TransactionalOutbox(servers, {}, topic), KafkaOutbox(servers, {})
    job.send(Message(topic, b"1", b"ours"))
    job.flush()
    assert tail() == (b"ours", [])
    forged = [b"forged %d" % n for n in range(2 * TAIL)]
    for value in forged:
        other.send(Message(topic, b"1", value))
    other.flush()
    assert tail() == (b"ours", forged)
    job.send(Message(topic, b"1", b"in an open transaction"))
    KafkaOutbox.flush(job)
    assert tail() == (forged[-1], [])  # its transaction may end behind what readers see
    job.flush()
    assert tail() == (b"in an open transaction", [])


@pytest.mark.rest
def test_a_table_without_its_last_writes_is_refused_until_an_operator_goes_on(behind: Scene) -> None:
    before = behind.published()
    with pytest.raises(OwnedByAnother, match=WENT_BACK + r"the registry knows that round \d+ of run 2 ended" + CURE):
        behind.run()
    assert behind.published() == before
    goes_on(behind)


@pytest.mark.rest
def test_a_table_in_postgres_that_lacks_rows_without_a_document_is_refused_too(
    new_scene: Callable[..., Scene], rows: SimpleNamespace
) -> None:
    scene = new_scene(store="postgres")
    scene.produce(rows.user(1, "ann"))
    scene.run()
    standby = Standby(scene)
    scene.produce(rows.star("nobody", "repo"))
    assert scene.run().published == 0
    standby.takes_over()
    with pytest.raises(OwnedByAnother, match=WENT_BACK + r"the registry knows that round \d+ of run 2 ended" + CURE):
        scene.run()
    goes_on(scene)


@pytest.mark.rest
def test_a_registry_that_went_back_with_the_table_is_no_excuse_because_the_topics_did_not(behind: Scene) -> None:
    edit_leases(behind, "ended_run = NULL, ended_round = NULL, generation = 1")
    with pytest.raises(OwnedByAnother, match=WENT_BACK + r"topic .*profile, .* has message \d+ of a root" + CURE):
        behind.run()
    goes_on(behind)


@pytest.mark.rest
def test_a_registry_that_alone_went_back_is_refused_with_the_way_to_a_new_one(
    new_scene: Callable[..., Scene], rows: SimpleNamespace
) -> None:
    scene = new_scene(store="postgres")
    scene.produce(rows.user(1, "ann"))
    scene.run()
    edit_leases(scene, "generation = 0, ended_run = NULL, ended_round = NULL")
    with pytest.raises(
        OwnedByAnother, match=r"registry .* went back to an earlier moment: the table knows run 1, .*rebuild-reg"
    ):
        scene.run()


@pytest.mark.rest
def test_a_running_job_publishes_nothing_over_a_table_that_went_back(
    new_scene: Callable[..., Scene], rows: SimpleNamespace
) -> None:
    scene = new_scene(store="postgres")
    scene.produce(rows.user(1, "ann"), partition=0)
    with running(scene) as job:
        wait_until(lambda: len(scene.documents()) == 1, job)
        standby = Standby(scene)
        scene.produce(rows.user(1, "ann, changed"), partition=0)
        wait_until(lambda: scene.documents() == scene.truth(), job)
        standby.takes_over()
        scene.produce(rows.user(2, "bob"), partition=0)
        assert "the table went back to an earlier moment: run 1 ended round" in str(job.failure())
    with pytest.raises(OwnedByAnother, match=WENT_BACK):
        scene.run()
    goes_on(scene)
