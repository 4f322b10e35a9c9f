"""Dead letters leave a real broker: those of the row, also framed ones, and no letter that the erasure did not read."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from time import sleep
from typing import Any

import pytest
from confluent_kafka import Producer

from processor.engine.protocol.replays import PARTITION, drop, ended_replays
from processor.environment.embedded import Addresses
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.tools.operate.erase import LetterChoice, RemovedLetters, RowLetters, erase_letters
from processor.values.dead_letters import reject_message, rejected_record
from processor.values.entity import ColumnType, Entity
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Message, Record, Rejected
from statestore.memory import MemoryStore
from statestore.store import Store

NAMES = count()
PERSON = Entity(
    name="person",
    topic="people",
    key=("email",),
    columns={"email": ColumnType(name="string"), "age": ColumnType(name="int")},
)
ADA, BOB, NADA = "ada@example.org", "bob@example.org", "nada@example.org"


@dataclass(kw_only=True)
class Letters:
    """A topic of dead letters, and a table that remembers replays."""

    settings: Settings
    store: Store = field(default_factory=lambda: MemoryStore(slots=1))
    offsets: Iterator[int] = field(default_factory=count)

    @property
    def admin(self) -> Admin:
        return Admin(self.settings.bootstrap_servers, {})

    def message(self, key: Any, value: Any) -> Message:
        return reject_message(Rejected(record=self.record(key, value), reason="a reason", entity="person"), self.topic)

    def record(self, key: Any, value: Any) -> Record:
        key_bytes, value_bytes = (one if one is None else json.dumps(one).encode() for one in (key, value))
        return Record(topic="people", partition=0, offset=next(self.offsets), epoch=1, key=key_bytes, value=value_bytes)

    @property
    def topic(self) -> str:
        return self.settings.dead_letter_topic

    def keep(self, *rows: Any) -> None:
        outbox = KafkaOutbox(self.settings.bootstrap_servers, {})
        for row in rows:
            outbox.send(self.message(None, row))
        outbox.flush()

    @contextmanager
    def open_transaction(self, row: Any) -> Iterator[None]:
        """Another job has a transaction with a letter open."""
        id_ = f"another {self.topic}"
        producer = Producer({"bootstrap.servers": self.settings.bootstrap_servers, "transactional.id": id_})
        producer.init_transactions(300)
        producer.begin_transaction()
        message = self.message(None, row)
        producer.produce(self.topic, key=message.key, value=message.value, headers=list(message.headers))
        producer.flush(300)
        yield
        producer.commit_transaction(300)
        while self.admin.stable_ends(self.topic) != self.admin.ends(self.topic):
            sleep(0.1)  # the broker marks the end of a transaction after its answer

    def erase(self, patience: float = 0.0, email: str = ADA) -> RemovedLetters:
        row = RowLetters(
            entity=PERSON,
            key=(email,),
            entities={"person"},
            documents=(),
            schemas=NO_SCHEMAS,
            choice=LetterChoice(),
        )
        return erase_letters(self.settings, self.admin, self.store, row, patience)

    def people(self) -> list[str]:
        """The people of the letters that a reader of committed records sees."""
        read = read_topic(self.settings.bootstrap_servers, {}, self.topic)
        kept = (Message(topic=r.topic, key=r.key, value=r.value, headers=r.headers) for r in read)
        return sorted(json.loads(rejected_record(one).record.value or b"")["email"] for one in kept)


@pytest.fixture
def letters(addresses: Addresses) -> Letters:
    topic = f"letters{next(NAMES)}.rejects"
    made = Letters(settings=Settings(bootstrap_servers=addresses.bootstrap_servers, dead_letter_topic=topic))
    made.admin.ensure([topic], partitions=1, compacted=False)
    return made


def person(email: str, **more: Any) -> dict[str, Any]:
    return {"email": email, "age": "old", **more}


def test_only_the_letters_of_the_row_go(letters: Letters) -> None:
    letters.keep(person(BOB, friend=ADA), person(ADA), person(NADA))
    removed = letters.erase()
    assert [json.loads(one.value or b"")["email"] for one in removed.records] == [ADA]
    assert (removed.refusal, removed.unread) == ("", ())
    assert letters.people() == [BOB, NADA]
    assert len(ended_replays(letters.store.partition(PARTITION))) == 1


def test_a_letter_behind_an_open_transaction_is_neither_lost_nor_taken_for_erased(letters: Letters) -> None:
    letters.keep(person(ADA))
    with letters.open_transaction(person(NADA)):
        letters.keep(person(BOB), person(ADA))  # committed, and behind the open transaction
        refused = letters.erase()
        assert "a transaction of another job is open" in refused.refusal
        assert f"({letters.topic}/0 from offset 1)" in refused.refusal
        assert "after 15 minutes" in refused.refusal
    assert letters.people() == [ADA, ADA, BOB, NADA]
    assert letters.erase().refusal == ""
    assert letters.people() == [BOB, NADA]


def test_the_erasure_waits_for_a_transaction_that_ends(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    letters.keep(person(ADA), person(NADA))
    stable_ends: Callable[[Admin, str], dict[int, int]] = Admin.stable_ends
    asked: list[int] = []

    def late(admin: Admin, topic: str) -> dict[int, int]:
        asked.append(1)
        return {0: 1} if len(asked) < 3 else stable_ends(admin, topic)

    monkeypatch.setattr(Admin, "stable_ends", late)
    assert letters.erase(patience=300).refusal == ""
    assert len(asked) >= 3
    assert letters.people() == [NADA]


def test_no_word_of_a_person_who_dropped_a_letter_of_the_row_stays(letters: Letters) -> None:
    letters.keep(person(ADA))
    record = letters.record(None, person(ADA))
    dropped = Record(topic="people", partition=0, offset=0, epoch=1, key=None, value=record.value)
    letters.store.write(drop(dropped, who="me", why=f"{ADA} asked for it", at=datetime(2026, 11, 24, tzinfo=UTC)))
    letters.erase()
    (note,) = letters.store.partition(PARTITION)
    assert ADA not in str(note)
    assert note["outcome"] == "superseded"
