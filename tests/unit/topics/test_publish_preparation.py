"""What a plan needs to publish, by the table and by the topics: the sequences go on, and each product keeps its ledger number."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import processor.topics.publish_preparation as preparation
from processor.definitions.load import load
from processor.errors import ForeignPart
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone
from processor.progress.identity import SEQUENCES
from processor.settings.settings import Settings
from processor.topics.publish_preparation import earlier_sequences
from statestore.memory import MemoryStore

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
        return [SimpleNamespace(headers=(("statestore.sequence", b"7"),))]

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
        ForeignPart, match=r"knows ledger number 1 of b, and the registry gives number 1 to c\. Restore a newer"
    ):
        earlier_sequences(Settings(), plan_with(a="user 0", c="user 1"), store)
    with pytest.raises(ForeignPart, match="the table knows ledger number 0 of a, and the registry gives number 0 to b"):
        earlier_sequences(Settings(), plan_with(b="user 0", a="user 1"), store)
    assert topics == []
