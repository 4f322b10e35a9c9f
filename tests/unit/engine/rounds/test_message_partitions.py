"""A product may choose the partition of its messages by columns of the root. A document that moves leaves a tombstone where it
was, below its own sequence, and the ledger knows where that is."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import processor.job.run.topics as preparation
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.ledger import INVALIDATED, LedgerEntry, Mark, Placed, group_key, reserve, shown_places
from processor.engine.rounds.follow_up_stages import RootToRepair
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.job.run.binding import invalid_entry, shown_roots
from processor.job.run.topics import earlier_sequences
from processor.language.definitions.load import load
from processor.tools.inspect.verification import Difference, Verifier
from processor.values import canonical_json
from processor.values.record import HEADERS, Message, Record, partition_of_key, sequence_of
from statestore.memory import MemoryStore

ENTITIES = "user: {key: [id], columns: {id: int, tenant_id: int, name: string}}"
WORD = "partition_by: [tenant_id]"
PARTITIONS = 5
SEEN = tuple[int, bool, int]
"""Of a message: its partition, whether it has a document, its sequence."""


def plan(word: str = WORD, topic: str = "users", version: int = 1) -> Plan:
    product = f"{{product: users, root: user, topic: {topic}, fields: [id, name], {word}}}"
    made = plan_alone(load({"entities.yaml": ENTITIES, "users.yaml": product}), slots=3)
    return replace(made, products={"users": replace(made.products["users"], version=version)})


class Job:
    """A trial whose topics have several partitions."""

    def __init__(self, partitions: int = PARTITIONS, **more: Any) -> None:
        self.trial = Trial(plan=plan(), settings=Settings(), **more)
        self.offset = 0
        self.has(partitions)

    def has(self, partitions: int) -> None:
        progress = self.trial.driver.progress
        progress.setup = replace(progress.setup, partitions={"users": partitions})

    def send(self, id_: int, **columns: Any) -> list[SEEN]:
        """The messages that a batch with this row sends. Without columns: its delete."""
        key, value = canonical_json.encode({"id": id_}), canonical_json.encode({"id": id_, **columns})
        record = Record(
            topic="user", partition=0, offset=self.offset, epoch=1, key=key, value=value if columns else None
        )
        self.offset += 1
        return self.seen(lambda: self.trial.batch([record]))

    def seen(self, act: Any) -> list[SEEN]:
        before = len(self.trial.published.messages)
        act()
        return list(map(seen, self.trial.published.messages[before:]))

    def repair(self, *partitions: int) -> list[SEEN]:
        root = RootToRepair(("users", "1"), '{"id":1}', partitions)
        return self.seen(lambda: self.trial.driver.repair([root]))


def seen(message: Message) -> SEEN:
    return message.partition, message.value is not None, sequence_of(dict(message.headers)) or 0


def place(tenant: int | None, partitions: int = PARTITIONS) -> int:
    """The partition that the default partitioner gives the columns, as a key."""
    return partition_of_key(canonical_json.encode({"tenant_id": tenant}), partitions)


def by_key(id_: int) -> int:
    return partition_of_key(canonical_json.encode({"id": id_}), PARTITIONS)


A = 1
B = next(n for n in range(2, 99) if place(n) != place(A))
C = next(n for n in range(2, 99) if place(n) not in (place(A), place(B), by_key(1)))


@pytest.mark.parametrize(
    ("key", "hash"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_have_the_hashes_of_the_clients_of_java(key: bytes, hash: int) -> None:
    assert partition_of_key(key, 2**31) == hash & 0x7FFFFFFF


def test_a_moved_document_leaves_a_tombstone_below_its_sequence() -> None:
    job = Job()
    assert job.send(1, tenant_id=A, name="a") == [(place(A), True, 1)]
    assert job.send(1, tenant_id=A, name="b") == [(place(A), True, 2)]
    assert job.send(1, tenant_id=B, name="b") == [(place(A), False, 3), (place(B), True, 4)]
    assert job.send(1, tenant_id=None, name="b")[-1] == (place(None), True, 6 if place(None) != place(B) else 5)


def test_a_deleted_document_gets_its_tombstone_where_it_was() -> None:
    job = Job()
    job.send(1, tenant_id=A, name="a")
    job.send(1, tenant_id=B, name="a")
    assert job.send(1) == [(place(B), False, 4)]
    assert job.send(1, tenant_id=C, name="a") == [(place(C), True, 5)]


def test_more_partitions_move_a_document_when_it_changes() -> None:
    job = Job()
    more = next(n for n in range(PARTITIONS + 1, 99) if place(A, n) != place(A))
    job.send(1, tenant_id=A, name="a")
    job.has(more)
    assert job.send(1, tenant_id=A, name="b") == [(place(A), False, 2), (place(A, more), True, 3)]


def test_a_topic_with_fewer_partitions_is_another_one_without_the_former_document() -> None:
    job = Job()
    job.send(1, tenant_id=C, name="a")
    job.has(1)
    assert job.send(1, tenant_id=C, name="b")[-1][:2] == (0, True)


def test_a_product_that_gets_or_loses_the_word_moves_its_documents() -> None:
    job = Job()
    job.trial.driver.adopt(plan(word="format: json"))
    assert job.send(1, tenant_id=C, name="a") == [(-1, True, 1)]
    job.trial.driver.adopt(plan(version=2))
    assert job.send(1, tenant_id=C, name="b") == [(by_key(1), False, 2), (place(C), True, 3)]
    job.trial.driver.adopt(plan(word="format: json", version=3))
    assert job.send(1, tenant_id=C, name="c") == [(place(C), False, 4), (by_key(1), True, 5)]


def test_another_topic_gets_no_tombstones_of_the_former_one() -> None:
    job = Job()
    job.send(1, tenant_id=A, name="a")
    job.trial.driver.adopt(plan(topic="people", version=2))
    assert job.send(1, tenant_id=B, name="a") == [(place(B), True, 2)]


def test_a_product_that_leaves_its_topic_for_one_with_messages_moves_the_documents_that_lie_there_by_key() -> None:
    """Its own place was in the topic before, and says nothing of this one."""
    job = Job()
    job.send(1, tenant_id=A, name="a")
    job.trial.driver.adopt(plan(topic="people", version=2))
    progress = job.trial.driver.progress
    progress.setup = replace(progress.setup, earlier_sequences={"users": 7})
    assert job.send(1, tenant_id=C, name="a") == [(by_key(1), False, 8), (place(C), True, 9)]


def test_until_a_message_is_acknowledged_each_former_place_may_show_a_document() -> None:
    entry = LedgerEntry(3, "ab", Mark(1, 2, 0, 0))
    assert shown_places(entry, (4, 1, 2), acknowledged=True) == (4,)
    assert shown_places(entry, (4, 1, 2), acknowledged=False) == (4, 1, 2)
    assert shown_places(entry._replace(hash=""), (4, 1), acknowledged=True) == ()
    assert shown_places(entry._replace(hash=""), (4, 1), acknowledged=False) == (4, 1)
    assert shown_places(entry._replace(hash=INVALIDATED), (4, 1), acknowledged=True) == (4, 1)
    assert shown_places(entry._replace(hash="large:ab"), (4, 1), acknowledged=True) == (4, 1)


def test_a_reservation_without_acknowledgement_keeps_the_place_before_it() -> None:
    job = Job()
    job.send(1, tenant_id=A, name="a")
    at = group_key(job.trial.driver.plan.products["users"].ledger, "1")
    lost = LedgerEntry(3, "ab" * 16, Mark(99, 0, 0, 0), 1)
    item = job.trial.store.get([at])[at]
    placed = {0: Placed("users", (place(B), place(A)))}
    job.trial.store.write(reserve(at, item, {0: lost}, item["key"], placed=placed))
    found = job.send(1, tenant_id=C, name="a")
    assert sorted(found[:-1]) == sorted([(place(B), False, 4), (place(A), False, 5)])
    assert found[-1] == (place(C), True, 6)


def test_a_document_too_large_stays_where_it_was() -> None:
    job = Job()
    job.send(1, tenant_id=A, name="a")
    progress = job.trial.driver.progress
    progress.setup = replace(progress.setup, message_limits={"users": 500})
    assert job.send(1, tenant_id=B, name="b" * 600) == []
    assert job.send(1, tenant_id=B, name="c") == [(place(A), False, 4), (place(B), True, 5)]


def test_two_products_of_one_root_each_keep_their_places() -> None:
    texts = {
        "entities.yaml": ENTITIES,
        "a.yaml": f"{{product: a, root: user, {WORD}}}",
        "b.yaml": "{product: b, root: user}",
    }
    trial = Trial(plan=plan_alone(load(texts), slots=3), settings=Settings())
    trial.driver.progress.setup = replace(trial.driver.progress.setup, partitions={"a": PARTITIONS, "b": PARTITIONS})
    for offset, tenant in enumerate((A, B)):
        value = canonical_json.encode({"id": 1, "tenant_id": tenant})
        trial.batch([Record(topic="user", partition=0, offset=offset, epoch=1, key=b'{"id":1}', value=value)])
    found = [(message.topic, *seen(message)) for message in trial.published.messages]
    assert [one[1:] for one in found if one[0] == "a"] == [
        (place(A), True, 1),
        (place(A), False, 2),
        (place(B), True, 3),
    ]
    assert [one[1:] for one in found if one[0] == "b"] == [(-1, True, 1), (-1, True, 2)]


def records(job: Job, *more: Message) -> Iterator[Record]:
    """The messages of the topic, and these, partition by partition."""
    sent = sorted([*job.trial.published.messages, *more], key=lambda message: message.partition)
    return (
        Record(topic=m.topic, partition=m.partition, offset=n, key=m.key, value=m.value, headers=m.headers)
        for n, m in enumerate(sent)
    )


def differences(job: Job, *more: Message) -> tuple[Difference, ...]:
    job.trial.finish()
    verifier = Verifier(plan=job.trial.driver.plan, runner=StepRunner(store=job.trial.store), wait=lambda: None)
    product = job.trial.driver.plan.products["users"]
    return verifier.verify(product, lambda: records(job, *more), None, Random(1)).differences


def test_verify_finds_an_earlier_document_in_another_partition_and_repair_removes_it() -> None:
    job = Job()
    job.send(1, tenant_id=A, name="a")
    assert differences(job) == ()
    stray = job.trial.published.messages[0]._replace(partition=place(C))
    (found,) = differences(job, stray._replace(headers=(("statestore.sequence", b"0"),)))
    assert (found.partitions, found.strays, found.stale) == ((place(A), place(C)), (place(C),), True)
    assert job.repair(*found.partitions) == [(place(C), False, 3), (place(A), True, 4)]
    job.send(1)
    (found,) = differences(job, stray._replace(headers=(("statestore.sequence", b"0"),)))
    assert (found.published, found.strays) == (None, (place(C),))
    assert (place(C), False) in [one[:2] for one in job.repair(*found.partitions)]


def test_a_table_that_begins_again_knows_where_its_topic_shows_documents() -> None:
    job = Job()
    for tenant in (A, B):
        job.send(1, tenant_id=tenant, name="a")
    job.send(2, tenant_id=A, name="a")
    job.send(2)
    planned = job.trial.driver.plan
    (shown,) = shown_roots(planned, planned.products["users"], records(job))
    assert (shown.root, shown.partitions) == ("1", (place(B),))
    again = Job()
    again.trial.store.write(invalid_entry(planned.products["users"], shown, {}, placed=True))
    assert again.send(1, tenant_id=A, name="a") == [(place(B), False, 4), (place(A), True, 5)]


@pytest.mark.parametrize("word", [WORD, "format: json"])
def test_a_product_that_comes_to_a_topic_moves_the_documents_that_are_there(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    former, own = Job(), Job()
    former.send(1, tenant_id=C, name="a")
    own.trial.driver.adopt(plan(word=word, version=2))
    monkeypatch.setattr(preparation, "read_topic", lambda *_: list(records(former)))
    for _ in range(2):
        found = earlier_sequences(Settings(), plan(word=word), own.trial.store, partitions={"users": PARTITIONS})
    assert found == {"users": 1}
    place_now = place(A) if word == WORD else by_key(1)
    assert own.send(1, tenant_id=A, name="a") == [(place(C), False, 2), (place_now, True, 3)]


def test_a_product_that_comes_to_a_topic_in_order_notes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    key = b'{"id":1}'
    headers = tuple((name, b"1") for name in HEADERS)
    there = Record(topic="users", partition=by_key(1), offset=0, key=key, value=b"{}", headers=headers)
    monkeypatch.setattr(preparation, "read_topic", lambda *_: [there])
    store, planned = MemoryStore(3), plan(word="format: json")
    assert earlier_sequences(Settings(), planned, store, partitions={"users": PARTITIONS}) == {"users": 1}
    assert list(store.items("LEDGER#user#0")) == []
