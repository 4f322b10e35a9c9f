"""What a plan needs to publish, by the table and by the topics: the sequences go on, and each product keeps its ledger number."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import processor.job.run.topics as preparation
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.identity import SEQUENCES
from processor.engine.protocol.ledger import LedgerEntry, Mark, group_key, read_entry, reserve
from processor.engine.rounds.events import JobEvent
from processor.environment.settings.settings import Settings
from processor.errors import OwnedByAnother
from processor.job.run.topics import earlier_sequences
from processor.language.definitions.load import load
from statestore.memory import MemoryStore


def message(sequence: bytes | None, **other: bytes | None) -> Any:
    """A message of a product; `other`: headers in place of its own."""
    own = dict.fromkeys(("product", "product_version", "registry_version", "batch"), b"1")
    headers = {**own, "sequence": sequence, **other}
    return SimpleNamespace(partition=0, offset=4, headers=tuple((f"statestore.{n}", v) for n, v in headers.items()))


MESSAGES: dict[str, list[Any]] = {
    "foreign": [
        message(b"3"),
        *(message(n) for n in (None, b"", b"x", b"-1", b"9223372036854775807", b"9223372036854775808", b"9" * 5_000)),
        message(b"8", batch=None),
        SimpleNamespace(partition=0, offset=9, headers=()),
        SimpleNamespace(partition=0, offset=10, headers=(("statestore.sequence", b"1"),)),
    ]
}
ENTITIES = "{user: {key: [id], columns: {id: int}}, star: {key: [id], columns: {id: int}}}"


def plan_with(**places: str) -> Plan:
    """The plan of these products, each with its root entity and its ledger number there."""
    roots = {name: place.split() for name, place in places.items()}
    texts = {f"{name}.yaml": f"{{product: {name}, root: {root}, fields: [id]}}" for name, (root, _) in roots.items()}
    plan = plan_alone(load({"entities.yaml": ENTITIES, **texts}), 3)
    return replace(plan, products={n: replace(plan.products[n], number=int(at)) for n, (_, at) in roots.items()})


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each topic has one message, with sequence 7. Returns the topics that were read."""
    read: list[str] = []

    def read_topic(_servers: str, _kafka: Any, topic: str) -> list[Any]:
        read.append(topic)
        return MESSAGES.get(topic, [message(b"7")])

    monkeypatch.setattr(preparation, "read_topic", read_topic)
    return read


def test_the_topic_of_a_product_is_read_once_for_each_root(topics: list[str]) -> None:
    store = MemoryStore(3)
    for _ in range(2):
        assert earlier_sequences(Settings(), plan_with(a="user 0", b="user 1"), store) == {"a": 7, "b": 7}
    assert topics == ["a", "b"]
    earlier_sequences(Settings(), plan_with(a="star 0", b="user 1"), store)
    assert topics == ["a", "b", "a"]
    items = {item["SK"]: (item["ledger"], item["number"], item["former"]) for item in store.partition(SEQUENCES)}
    assert items == {"a": ("LEDGER#star#0", 0, ["LEDGER#user#0"]), "b": ("LEDGER#user#0", 1, [])}


def test_a_registry_that_gives_a_ledger_number_to_another_product_is_older_than_the_table(topics: list[str]) -> None:
    store = MemoryStore(3)
    earlier_sequences(Settings(), plan_with(a="user 0", b="user 1"), store)
    topics.clear()
    with pytest.raises(
        OwnedByAnother, match=r"knows ledger number 1 of b, and the registry gives number 1 to c\. Restore a newer"
    ):
        earlier_sequences(Settings(), plan_with(a="user 0", c="user 1"), store)
    with pytest.raises(
        OwnedByAnother, match="the table knows ledger number 0 of a, and the registry gives number 0 to b"
    ):
        earlier_sequences(Settings(), plan_with(b="user 0", a="user 1"), store)
    assert topics == []


def test_a_product_that_gets_the_topic_of_another_one_goes_on_above_its_sequences(topics: list[str]) -> None:
    """Readers keep the document of a key with the highest sequence."""
    store, plan = MemoryStore(3), plan_with(a="user 0")
    earlier_sequences(Settings(), plan, store)
    product = plan.products["a"]
    moved = replace(product, product=replace(product.product, topic="taken"))
    for _ in range(2):
        assert earlier_sequences(Settings(), replace(plan, products={"a": moved}), store) == {"a": 7}
    assert topics == ["a", "taken"]
    entry = LedgerEntry(2, "00" * 16, Mark(1, 0, 0, 0), 1)
    store.write(reserve(group_key(moved.ledger, "1"), None, {0: entry}, "{}"))
    (item,) = store.get([group_key(moved.ledger, "1")]).values()
    assert [read_entry(item, 0, earlier).seq for earlier in (0, 2, 7)] == [2, 2, 7]


def test_a_product_that_comes_back_to_a_topic_reads_it_again(topics: list[str]) -> None:
    """Another product had the topic meanwhile, and its sequences are higher."""
    store, plan = MemoryStore(3), plan_with(a="user 0")
    earlier_sequences(Settings(), plan, store)
    other = plan_with(b="user 1").products["b"]
    other = replace(other, product=replace(other.product, topic="a"))
    earlier_sequences(Settings(), replace(plan, products={"b": other}), store)
    assert earlier_sequences(Settings(), plan, store) == {"a": 7}
    assert topics == ["a", "a", "a"]


def test_messages_that_no_job_wrote_do_not_count_and_are_reported(topics: list[str]) -> None:
    plan, lines = plan_with(a="user 0"), list[JobEvent]()
    product = plan.products["a"]
    foreign = replace(product, product=replace(product.product, topic="foreign"))
    found = earlier_sequences(Settings(), replace(plan, products={"a": foreign}), MemoryStore(3), lines.append)
    assert found == {"a": 3}
    (line,) = lines
    assert "topic foreign has 10 messages that no statestore job wrote, the first at partition 0, offset 4" in line.text
