"""An update that moves a row to another key of its entity deletes the row of the old key, and one record counts once."""

import json
from random import Random
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter, rejected_record
from processor.values.record import Record

DEFINITIONS = {
    "entities.yaml": """
        stock: {key: [sku], columns: {sku: string, qty: int, shelf: string}}
        person: {key: [email], columns: {email: string, id: int, name: string}}
        place: {key: [list, position], columns: {list: string, position: int, title: string}}
        shelf: {key: [name], columns: {name: string}}
    """,
    "stock_doc.yaml": "product: stock_doc\nroot: stock\nfields: [qty]",
    "person_doc.yaml": "product: person_doc\nroot: person\nfields: [id, name]",
    "place_doc.yaml": "product: place_doc\nroot: place\nfields: [title]",
    "shelf_doc.yaml": """
        product: shelf_doc
        root: shelf
        embed: {stock: {many: stock, on: {shelf: name}, fields: [sku, qty]}}
    """,
}


class World:
    """A job without Spark, over indexes that are `lag` seconds late."""

    def __init__(self, lag: float = 0.0) -> None:
        self.trial = Trial(plan=plan_alone(load(DEFINITIONS), 3), settings=Settings(), lag=lag)
        self._offsets: dict[tuple[str, int], int] = {}

    def record(self, topic: str, op: str, before: Any, after: Any, key: Any = None, partition: int = 0) -> Record:
        at = self._offsets[topic, partition] = self._offsets.get((topic, partition), -1) + 1
        value = {"before": before, "after": after, "op": op, "source": {"table": topic}}
        encoded = None if key is None else json.dumps(key).encode()
        return Record(topic=topic, partition=partition, offset=at, key=encoded, value=json.dumps(value).encode())

    def batch(self, *records: Record) -> None:
        """One batch. Its account holds, or the batch fails."""
        tally = self.trial.batch(records)
        assert tally["read"] == len(records)

    def documents(self, product: str) -> dict[str, Any]:
        """The last document of each key, without those that are gone."""
        self.trial.finish()
        sent = [message for message in self.trial.published.messages if message.topic == product]
        last = {(message.key or b"").decode(): message.value for message in sent}
        return {key: json.loads(value) for key, value in last.items() if value is not None}

    def reasons(self) -> list[tuple[str, str]]:
        """The codes and the reasons of the dead letters."""
        found = map(rejected_record, self.trial.rejects.messages)
        return [(one.code, one.reason) for one in found]


MOVES: dict[str, tuple[str, Any, Any, Any, dict[str, Any]]] = {
    "a table without a key": (
        "stock",
        None,
        {"sku": "a", "qty": 1, "shelf": "x"},
        {"sku": "b", "qty": 1, "shelf": "x"},
        {'{"sku":"b"}': {"qty": 1}},
    ),
    "a unique column that the Kafka key lacks": (
        "person",
        {"id": 1},
        {"email": "ann@x", "id": 1, "name": "Ann"},
        {"email": "eve@x", "id": 1, "name": "Ann"},
        {'{"email":"eve@x"}': {"id": 1, "name": "Ann"}},
    ),
    "a part of a key of two columns": (
        "place",
        None,
        {"list": "l", "position": 1, "title": "t"},
        {"list": "l", "position": 2, "title": "t"},
        {'{"list":"l","position":2}': {"title": "t"}},
    ),
    "a part that the Kafka key has, and one that it lacks": (
        "place",
        {"list": "l"},
        {"list": "l", "position": 1, "title": "t"},
        {"list": "l", "position": 2, "title": "u"},
        {'{"list":"l","position":2}': {"title": "u"}},
    ),
}


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "in two batches"])
@pytest.mark.parametrize("lag", [0.0, 30.0])
@pytest.mark.parametrize("name", MOVES)
def test_an_update_that_moves_the_key_deletes_the_old_document(name: str, lag: float, together: bool) -> None:
    topic, key, before, after, expected = MOVES[name]
    world = World(lag)
    records = [world.record(topic, "c", None, before, key), world.record(topic, "u", before, after, key)]
    for batch in [records] if together else [[one] for one in records]:
        world.batch(*batch)
    assert world.documents(f"{topic}_doc") == expected
    assert world.reasons() == []


@pytest.mark.parametrize("name", MOVES)
def test_the_same_batch_twice_moves_the_key_once(name: str) -> None:
    topic, key, before, after, expected = MOVES[name]
    world = World(30)
    created = world.record(topic, "c", None, before, key)
    moved = world.record(topic, "u", before, after, key)
    world.batch(created)
    world.batch(moved)
    world.batch(moved)
    world.batch(created, moved)
    assert world.documents(f"{topic}_doc") == expected


def test_the_parents_of_both_keys_show_the_move() -> None:
    world = World(30)
    world.batch(world.record("shelf", "c", None, {"name": "x"}), world.record("shelf", "c", None, {"name": "y"}))
    one, other = {"sku": "a", "qty": 1, "shelf": "x"}, {"sku": "b", "qty": 2, "shelf": "y"}
    world.batch(world.record("stock", "c", None, one))
    world.batch(world.record("stock", "u", one, other))
    assert world.documents("shelf_doc") == {
        '{"name":"x"}': {"name": "x", "stock": []},
        '{"name":"y"}': {"name": "y", "stock": [{"sku": "b", "qty": 2}]},
    }


def test_a_row_that_takes_the_key_later_stays() -> None:
    world = World()
    row = {"sku": "a", "qty": 1, "shelf": "x"}
    world.batch(
        world.record("stock", "c", None, row),
        world.record("stock", "u", row, {**row, "sku": "b"}),
        world.record("stock", "c", None, {**row, "qty": 9}),
    )
    assert world.documents("stock_doc") == {'{"sku":"a"}': {"qty": 9}, '{"sku":"b"}': {"qty": 1}}


@pytest.mark.parametrize("before", [None, {"sku": None, "qty": 1}, {"qty": 1}, {"sku": ["no", "text"], "qty": 1}])
def test_an_old_image_without_the_key_moves_nothing(before: Any) -> None:
    world = World()
    row = {"sku": "a", "qty": 1, "shelf": "x"}
    world.batch(world.record("stock", "c", None, row), world.record("stock", "u", before, {**row, "qty": 2}))
    assert world.documents("stock_doc") == {'{"sku":"a"}': {"qty": 2}}


def test_a_key_of_the_same_value_in_another_form_stays() -> None:
    world = World()
    row = {"list": "l", "position": 1, "title": "t"}
    world.batch(world.record("place", "c", None, row))
    world.batch(world.record("place", "u", {**row, "position": 1.0}, {**row, "title": "u"}))
    assert world.documents("place_doc") == {'{"list":"l","position":1}': {"title": "u"}}


def test_a_move_without_a_kafka_key_in_a_topic_of_two_partitions_is_a_dead_letter() -> None:
    world = World()
    row = {"sku": "a", "qty": 1, "shelf": "x"}
    world.batch(
        world.record("stock", "c", None, row), world.record("stock", "c", None, {**row, "sku": "z"}, partition=1)
    )
    world.batch(world.record("stock", "u", row, {**row, "sku": "b"}))
    assert world.documents("stock_doc") == {'{"sku":"a"}': {"qty": 1}, '{"sku":"z"}': {"qty": 1}}
    ((code, reason),) = world.reasons()
    assert (code, reason.partition(", and")[0]) == ("key-moved", 'the update moves the row from key ["a"] to ["b"]')
    assert "message.key.columns" in reason
    assert "one partition" in reason


def test_a_move_from_a_key_that_another_partition_wrote_keeps_that_row_and_one_letter() -> None:
    world = World()
    one, other = {"email": "a", "id": 1, "name": "x"}, {"email": "b", "id": 2, "name": "y"}
    world.batch(
        world.record("person", "c", None, one, {"id": 1}),
        world.record("person", "c", None, other, {"id": 2}, partition=1),
    )
    tally = world.trial.batch(
        [world.record("person", "u", one, {**one, "id": 2, "email": "c"}, {"id": 2}, partition=1)]
    )
    assert (tally["read"], tally["applied"], tally["dead letters"]) == (1, 1, 0)
    assert [code for code, _ in world.reasons()] == ["other-partition"]
    assert world.documents("person_doc").keys() == {'{"email":"a"}', '{"email":"b"}', '{"email":"c"}'}


def test_a_replay_refuses_a_move_and_names_the_cure() -> None:
    world = World()
    row = {"sku": "a", "qty": 1, "shelf": "x"}
    world.batch(world.record("stock", "c", None, row))
    world.batch(world.record("stock", "u", row, {**row, "sku": "b", "qty": "many"}))
    (letter,) = map(rejected_record, world.trial.rejects.messages)
    fixed = {**DEFINITIONS, "entities.yaml": DEFINITIONS["entities.yaml"].replace("qty: int", "qty: json")}
    world.trial.driver.adopt(plan_alone(load(fixed), 3))
    (report,) = world.trial.driver.replay([DeadLetter(rejected=letter, kept_since=0.0)])
    assert report.outcome == "refused"
    assert "`verify --source --repair`" in report.reason
    assert world.documents("stock_doc") == {'{"sku":"a"}': {"qty": 1}}


@pytest.mark.parametrize("seed", range(40))
def test_any_moves_in_any_batches_give_the_rows_of_the_source(seed: int) -> None:
    chance, rows = Random(seed), dict[str, Any]()
    world = World(chance.choice([0.0, 0.5, 30.0]))
    records = []
    for n in range(60):
        free = sorted(set("abcdefg") - rows.keys())
        if rows and chance.random() < 0.7:
            key = chance.choice(sorted(rows))
            before = rows.pop(key)
            target = chance.choice([*free, key])
            if chance.random() < 0.2:
                records.append(world.record("stock", "d", before, None))
                continue
            rows[target] = {**before, "sku": target, "qty": n}
            records.append(world.record("stock", "u", before, rows[target]))
        elif free:
            key = chance.choice(free)
            rows[key] = {"sku": key, "qty": n, "shelf": "x"}
            records.append(world.record("stock", "c", None, rows[key]))
    while records:
        size = chance.randint(1, 9)
        world.batch(*records[:size])
        if chance.random() < 0.3:
            world.batch(*records[:size])
        records = records[size:]
        world.trial.background_work()
    assert world.documents("stock_doc") == {f'{{"sku":"{key}"}}': {"qty": row["qty"]} for key, row in rows.items()}
