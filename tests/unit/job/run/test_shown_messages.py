"""A start asks the topics of the products what the table must know. A message that the job cannot have written is no evidence."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.identity import PublishedTopic, write_published_topic, write_sequence
from processor.engine.protocol.ledger import group_partition
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import TopicDescription
from processor.job.kafka.reader import Tail, tail_of
from processor.job.run import binding
from processor.language.definitions.load import load
from processor.values.record import HEADERS, HIGHEST_SEQUENCE, Record
from statestore.memory import MemoryStore

ENTITIES = {"user": {"key": ["id"], "columns": {"id": "int"}}}
PRODUCT = {"product": "profile", "root": "user", "topic": "profile", "fields": ["id"]}
PLAN = plan_alone(load({"entities.yaml": json.dumps(ENTITIES), "p.yaml": json.dumps(PRODUCT)}), 3)
OWN = dict(zip(HEADERS, (b"profile", b"1", b"5", b"%d" % PLAN.version, b"0"), strict=True))


def message(key: bytes | None = b'{"id":1}', **other: bytes | None) -> Record:
    headers = {**OWN, **{f"statestore.{name}": text for name, text in other.items()}}
    return Record(topic="profile", partition=0, offset=4, key=key, value=b"{}", headers=tuple(headers.items()))


IDS = {"profile": "id"}
"""The topics that the broker has, with their ids."""


@dataclass
class Start:
    """A start with a table that has no message of the product. The table has `noted` as the id of the product's topic."""

    monkeypatch: pytest.MonkeyPatch
    noted: str = "id"
    warnings: list[str] = field(default_factory=list)

    def find(self, last: Record | None, *loose: Record) -> str:
        """What a start finds where this is the tail of the topic's partition."""
        store, product = MemoryStore(3), PLAN.products["profile"]
        store.write(write_sequence("profile", 0, "profile", group_partition(product.ledger), product.number))
        store.write(write_published_topic("profile", PublishedTopic("profile", self.noted, 1, 1)))

        def read_tails(_servers: str, _kafka: Any, _topics: Any, counts: Callable[[Record], bool]) -> list[Tail]:
            return [Tail(last if last and counts(last) else None, tuple(filter(counts, loose)))]

        def admin(*_: object) -> Any:
            return SimpleNamespace(topics=lambda _: {name: TopicDescription(one, 1) for name, one in IDS.items()})

        self.monkeypatch.setattr(binding, "read_tails", read_tails)
        self.monkeypatch.setattr(binding, "Admin", admin)
        return binding._lost_message(Settings(), PLAN, store, lambda event: self.warnings.append(event.text))


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    return Start(monkeypatch)


def test_a_message_of_the_job_that_the_table_does_not_know_is_evidence(start: Start) -> None:
    assert "offset 4 has message 5 of a root, and the table knows none of that root" in start.find(message())


@pytest.mark.parametrize(
    "foreign",
    [
        message(key=None),
        message(key=b"no JSON"),
        message(key=b"\xff"),
        message(key=b"[1]"),
        message(key=b'{"name":"x"}'),
        message(key=b'{"id":' + b"9" * 5_000 + b"}"),
        message(key=b"[" * 100_000),
        message(product=b"the product before"),
        message(sequence=b"0"),
        message(sequence=b"9" * 5_000),
        message(sequence=b"%d" % (HIGHEST_SEQUENCE + 1)),
        message(batch=None),
        message(product_version=b"2"),
        message(registry_version=b"%d" % (PLAN.version + 1)),
    ],
    ids=str,
)
def test_a_message_that_the_job_cannot_have_written_is_no_evidence(foreign: Record, start: Start) -> None:
    assert start.find(foreign) == ""
    assert start.find(None, foreign) == ""
    assert start.warnings == []


def test_a_message_outside_of_transactions_is_counted_named_and_passed_over(start: Start) -> None:
    forged = [message(), message(key=b'{"id":2}')]
    assert start.find(None, *forged) == ""
    (warning,) = start.warnings
    assert "2 messages have the headers of a job, and no job wrote them" in warning
    assert "The first is at topic profile, partition 0, offset 4, of key 1." in warning


def test_a_lost_message_before_a_forged_one_is_evidence(start: Start) -> None:
    assert "the table knows none of that root" in start.find(message(key=b'{"id":2}'), message())


def test_in_a_copy_of_a_topic_the_jobs_own_messages_have_no_transaction_and_are_evidence(start: Start) -> None:
    start.noted = "the topic of another cluster"
    assert "the table knows none of that root" in start.find(None, message())
    assert start.warnings == []


def record(offset: int) -> Record:
    return replace(message(), offset=offset)


@pytest.mark.parametrize(
    ("offsets", "end", "last", "loose"),
    [
        ([], 9, None, []),
        ([4, 5], 7, 5, []),  # a marker at 6
        ([4, 5], 6, None, [4, 5]),
        ([4, 6, 7], 8, 4, [6, 7]),
        ([4, 6, 7], 9, 7, []),
        ([4, 6, 8], 9, 6, [8]),
    ],
)
def test_a_message_is_of_no_transaction_where_every_offset_behind_it_has_a_record(
    offsets: list[int], end: int, last: int | None, loose: list[int]
) -> None:
    tail = tail_of(map(record, offsets), end, lambda _: True)
    assert (tail.last and tail.last.offset, [one.offset for one in tail.loose]) == (last, loose)


def test_a_record_that_does_not_count_is_no_marker() -> None:
    tail = tail_of(map(record, [4, 5, 6]), 7, lambda one: one.offset == 4)
    assert tail == Tail(None, (record(4),))
