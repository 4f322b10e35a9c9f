"""A start asks the topics of the products what the table must know. A message that the job cannot have written is no evidence."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.identity import write_sequence
from processor.engine.protocol.ledger import group_partition
from processor.environment.settings.settings import Settings
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


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[[Record], str]:
    """What a start finds where this message is the last of the topic; the table knows no message."""
    store = MemoryStore(3)
    product = PLAN.products["profile"]
    store.write(write_sequence("profile", 0, "profile", group_partition(product.ledger), product.number))

    def find(last: Record) -> str:
        def read_last(_servers: str, _kafka: Any, _topics: Any, counts: Callable[[Record], bool]) -> list[Record]:
            return [last] if counts(last) else []

        monkeypatch.setattr(binding, "read_last", read_last)
        return binding._lost_message(Settings(), PLAN, store)

    return find


def test_a_message_of_the_job_that_the_table_does_not_know_is_evidence(start: Callable[[Record], str]) -> None:
    assert "offset 4 has message 5 of a root, and the table knows none of that root" in start(message())


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
def test_a_message_that_the_job_cannot_have_written_is_none(foreign: Record, start: Callable[[Record], str]) -> None:
    assert start(foreign) == ""
