"""Several rows in one record: one version, one change of each key, one place in the account, one dead letter."""

import json
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.decoding import shown_keys
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter, rejected_record
from processor.values.record import Record
from statestore.items import encode_version, read_row

Rows = list[dict[str, Any]]


def plan_of(size: str, format: str = "canal") -> Plan:
    entity = {"key": ["id"], "columns": {"id": "int", "name": "string", "size": size}, "format": format}
    product = "product: things\nroot: thing\nfields: [name, size]"
    return plan_alone(load({"entities.yaml": json.dumps({"thing": entity}), "things.yaml": product}), 3)


class World:
    def __init__(self) -> None:
        self.trial = Trial(plan=plan_of("int"), settings=Settings())
        self.offset = -1

    def record(self, kind: str, *rows: dict[str, Any], old: Rows | None = None) -> Record:
        self.offset += 1
        message = {"data": rows, "database": "d", "table": "thing", "type": kind, "isDdl": False, "old": old}
        return Record(topic="thing", partition=0, offset=self.offset, key=None, value=json.dumps(message).encode())

    def batch(self, *records: Record) -> dict[str, int]:
        """The account of one batch."""
        tally = self.trial.batch(records)
        assert tally["read"] == len(records)
        return {name: tally[name] for name in ("applied", "superseded", "ignored", "dead letters") if tally[name]}

    def documents(self) -> dict[int, Any]:
        self.trial.finish()
        last = {m.key or b"": m.value for m in self.trial.published.messages}
        found = {json.loads(key)["id"]: value and json.loads(value)["name"] for key, value in last.items()}
        return {key: name for key, name in found.items() if name is not None}

    def version(self, key: int) -> str:
        at = plan_of("int").entities["thing"].key(str(key))
        return read_row(self.trial.store.get([at])[at]).version

    def replay(self) -> list[str]:
        """The outcomes of the replay of all dead letters, whose size may now be anything."""
        self.trial.driver.adopt(plan_of("json"))
        letters = {(one := rejected_record(m)).record.offset: one for m in self.trial.rejects.messages}
        reports = self.trial.driver.replay([DeadLetter(rejected=one, kept_since=1e12) for one in letters.values()])
        self.trial.driver.end_replays(reports)
        return [report.outcome for report in reports]


def thing(key: int, name: str, size: Any = 1) -> dict[str, Any]:
    return {"id": key, "name": name, "size": size}


def test_each_row_of_a_record_has_its_version_and_the_record_counts_once() -> None:
    world = World()
    assert world.batch(world.record("INSERT", thing(1, "a"), thing(2, "b"), thing(3, "c"))) == {"applied": 1}
    assert world.documents() == {1: "a", 2: "b", 3: "c"}
    assert {world.version(key) for key in (1, 2, 3)} == {encode_version(0, 0, 0)}
    assert world.batch(world.record("DELETE", thing(3, "c"), thing(1, "a"))) == {"applied": 1}
    assert world.documents() == {2: "b"}


@pytest.mark.parametrize("split", [False, True])
def test_rows_that_move_through_each_others_keys_end_as_in_the_source(split: bool) -> None:
    world = World()
    rows = [thing(1, "a"), thing(2, "b"), thing(3, "c")]
    moved = [thing(4, "c"), thing(3, "b"), thing(2, "a")]
    records = [world.record("INSERT", *rows), world.record("UPDATE", *moved, old=[{"id": n} for n in (3, 2, 1)])]
    for batch in [records[:1], records[1:]] if split else [records]:
        world.batch(*batch)
    assert world.documents() == {2: "a", 3: "b", 4: "c"}


def test_a_row_that_moves_on_within_a_record_leaves_no_row_on_its_way() -> None:
    world = World()
    world.batch(world.record("INSERT", thing(1, "a")))
    world.batch(world.record("UPDATE", thing(2, "a"), thing(3, "b"), old=[{"id": 1}, {"id": 2, "name": "a"}]))
    assert world.documents() == {3: "b"}


def test_a_bad_row_makes_the_whole_record_a_dead_letter_whose_replay_writes_each_row_that_is_not_newer() -> None:
    world = World()
    bad = world.record("INSERT", thing(1, "a"), thing(2, "b", "big"), thing(3, "c"))
    assert world.batch(bad, world.record("INSERT", thing(3, "newer"))) == {"applied": 1, "dead letters": 1}
    (letter,) = map(rejected_record, world.trial.rejects.messages)
    assert letter.reason == "row 2 of 3: column 'size': expected int, found text 'big'"
    assert world.documents() == {3: "newer"}
    assert world.replay() == ["applied"]
    assert world.documents() == {1: "a", 2: "b", 3: "newer"}
    assert world.version(2) == encode_version(0, 0, bad.offset)
    assert world.replay() == ["superseded"]


def test_a_replay_writes_the_last_change_of_a_row_that_its_record_changes_twice() -> None:
    world = World()
    world.batch(world.record("UPDATE", thing(1, "a", "big"), thing(1, "b", "big"), old=[{}, {"name": "a"}]))
    assert world.replay() == ["applied"]
    assert world.documents() == {1: "b"}


@pytest.mark.parametrize("first", [True, False])
def test_the_replay_of_a_record_of_which_one_row_moves_to_another_key_is_refused(first: bool) -> None:
    world = World()
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (thing(1, "a", "big"), {"name": "x"}),
        (thing(3, "b"), {"id": 2}),
    ]
    ordered = rows if first else rows[::-1]
    world.batch(world.record("UPDATE", *(row for row, _ in ordered), old=[old for _, old in ordered]))
    assert world.replay() == ["refused"]
    assert world.documents() == {}


def test_a_row_too_large_for_the_table_is_a_dead_letter_and_the_other_rows_of_its_record_are_stored() -> None:
    world = World()
    long = {"name": "x" * 200_000}
    first = world.record("INSERT", thing(1, "a"), thing(2, "b"))
    world.batch(first)
    account = world.batch(world.record("UPDATE", {**thing(1, ""), **long, "more": "y" * 180_000}, thing(2, "c")))
    assert sum(account.values()) == 1
    assert world.documents()[2] == "c"


def test_a_dead_letter_shows_the_key_of_each_row_to_an_erasure() -> None:
    world = World()
    record = world.record("INSERT", thing(1, "a"), thing(2, "b", "big"))
    entity = plan_of("int").entities["thing"].entity
    assert shown_keys(record, entity) == {(1,), (2,)}
    cut = Record(topic="thing", partition=0, offset=0, key=None, value=(record.value or b"")[:-40])
    assert shown_keys(cut, entity) >= {(1,), (2,)}


def test_a_dead_letter_of_maxwell_shows_the_key_of_its_row() -> None:
    message = {"database": "d", "table": "thing", "type": "insert", "data": thing(7, "a", "big")}
    record = Record(topic="thing", partition=0, offset=0, key=b'{"pk.id":7}', value=json.dumps(message).encode())
    assert shown_keys(record, plan_of("int", "maxwell").entities["thing"].entity) == {(7,)}


def test_a_dead_letter_between_a_delete_and_a_change_brings_the_value_that_the_change_did_not_send() -> None:
    world = World()
    kept = thing(1, "__debezium_unavailable_value")
    changes = [("INSERT", thing(1, "a")), ("DELETE", thing(1, "a")), ("INSERT", thing(1, "b", "big")), ("INSERT", kept)]
    world.batch(*(world.record(kind, row) for kind, row in changes))
    assert world.replay() == ["superseded"]
    assert world.documents() == {1: "b"}
