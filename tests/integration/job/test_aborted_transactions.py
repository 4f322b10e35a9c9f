"""Topics whose producers write in transactions: only committed records count, and offsets have gaps."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.kafka.reader import read_page, read_sample, read_topic
from processor.values.record import Message
from tests.support.sampled import sampled

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
UNCOMMITTED = (("isolation.level", "read_uncommitted"),)


class Source:
    """A source whose producer writes users to partition 0, some of them in vain."""

    def __init__(self, scene: Scene) -> None:
        self.topic = scene.topic("user")
        self.producer = Producer(
            {
                "bootstrap.servers": scene.settings.bootstrap_servers,
                "transactional.id": f"source of {self.topic}",
                "transaction.timeout.ms": 600_000,  # a busy machine takes longer than the default of a minute
            }
        )
        self.producer.init_transactions(30)

    def write(self, users: dict[int, str], *, commit: bool) -> None:
        self.producer.begin_transaction()
        for number, name in users.items():
            value = json.dumps({"id": number, "name": name})
            self.producer.produce(self.topic, key=json.dumps({"id": number}), value=value, partition=0)
        self.producer.flush(300)  # the records are in the log, whether the transaction commits or not
        if commit:
            self.producer.commit_transaction(30)
        else:
            self.producer.abort_transaction(30)


def names(scene: Scene) -> dict[int, str]:
    return {document["id"]: document["name"] for document in scene.documents().values()}


@pytest.mark.rest
def test_a_sample_of_the_last_records_has_committed_records_only(scene: Scene) -> None:
    source = Source(scene)
    for number in range(5):
        source.write({number: f"user {number}"}, commit=True)
    source.write({9: "ABORTED"}, commit=False)
    brokers, topic = scene.settings.bootstrap_servers, source.topic
    every = [record.offset for record in read_topic(brokers, {}, topic) if record.partition == 0]
    assert len(every) == 5
    for most, least in ((1, 0), (100, 5), (10_000, 5)):
        sample = [record.offset for record in read_sample(brokers, {}, topic, most)]
        assert sample == every[len(every) - len(sample) :]
        assert len(sample) >= least


@pytest.mark.rest
def test_the_pages_of_a_topic_from_its_end_have_each_committed_record_once(scene: Scene) -> None:
    source = Source(scene)
    for number in range(7):
        source.write({number: f"user {number}"}, commit=True)
    source.write({9: "ABORTED"}, commit=False)
    brokers, topic = scene.settings.bootstrap_servers, source.topic
    every = [record.offset for record in read_topic(brokers, {}, topic)]
    for most, most_bytes, fewest_pages in ((100, 10_000, 1), (6, 10_000, 3), (100, 1, 7)):
        page = read_page(brokers, {}, topic, {}, most=most, most_bytes=most_bytes)
        found = [[record.offset for record in page.records]]
        assert page.messages >= len(every)
        while page.has_earlier:
            page = read_page(brokers, {}, topic, page.begins, most=most, most_bytes=most_bytes)
            found.insert(0, [record.offset for record in page.records])
        assert [offset for offsets in found for offset in offsets] == every
        assert len(found) >= fewest_pages
        assert most_bytes > 1 or max(map(len, found)) == 1


@pytest.mark.rest
@pytest.mark.parametrize("batch_size", sampled([1, 100], 100))
def test_records_of_aborted_transactions_are_not_read(scene: Scene, batch_size: int) -> None:
    source = Source(scene)
    source.write({1: "ada"}, commit=True)
    source.write({1: "ABORTED", 2: "ABORTED"}, commit=False)
    source.write({3: "eve"}, commit=True)
    source.write({3: "ABORTED"}, commit=False)  # the topic ends with a marker
    done = scene.run(batch_size=batch_size)
    assert names(scene) == {1: "ada", 3: "eve"}
    assert done.tally["read"] == done.tally["applied"] == 2
    assert scene.run().tally["read"] == 0

    source.write({3: "ABORTED"}, commit=False)
    assert scene.run().tally["read"] == 0
    source.write({2: "bob"}, commit=True)
    assert scene.run().tally["read"] == 1
    assert names(scene) == {1: "ada", 2: "bob", 3: "eve"}


@pytest.mark.rest
def test_a_batch_ends_before_an_open_transaction_and_the_next_one_begins_there(scene: Scene) -> None:
    source = Source(scene)
    source.write({1: "ada"}, commit=True)
    source.producer.begin_transaction()
    source.producer.produce(source.topic, key='{"id": 2}', value='{"id": 2, "name": "bob"}', partition=0)
    source.producer.flush(300)
    scene.run()
    assert names(scene) == {1: "ada"}
    source.producer.commit_transaction(30)
    scene.run()
    assert names(scene) == {1: "ada", 2: "bob"}


@pytest.mark.rest
def test_an_operator_may_choose_to_read_uncommitted_records(scene: Scene) -> None:
    source = Source(scene)
    source.write({1: "ada"}, commit=True)
    source.write({1: "UNCOMMITTED"}, commit=False)
    assert scene.run(kafka=UNCOMMITTED).tally["read"] == 2
    assert names(scene) == {1: "UNCOMMITTED"}


@pytest.mark.parametrize("extra", [(), UNCOMMITTED], ids=["default", "read_uncommitted"])
def test_topics_that_the_job_publishes_to_are_read_without_aborted_messages(scene: Scene, extra: Any) -> None:
    """The choice of an operator is about the source: an aborted document was never published."""
    topic, servers = scene.topic("user"), scene.settings.bootstrap_servers
    sent, aborted = (TransactionalOutbox(servers, {}, f"{topic} {n}") for n in range(2))
    sent.send(Message(topic, b"1", b"sent"))
    sent.flush()
    aborted.send(Message(topic, b"1", b"aborted"))
    aborted._producer.flush(300)
    TransactionalOutbox(servers, {}, f"{topic} 1")  # aborts what the earlier producer sent
    assert [record.value for record in read_topic(servers, dict(extra), topic)] == [b"sent"]
