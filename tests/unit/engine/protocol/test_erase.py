"""Erasures in a job without Spark: of rows in all states, with their documents, their ledger's entries, and later records."""

import json
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.erasures import Erasure
from processor.engine.protocol.ledger import (
    NO_DOCUMENT,
    LedgerEntry,
    Mark,
    RetiredEntries,
    group_key,
    read_entries,
    reserve,
)
from processor.engine.protocol.segments import PARTITIONS
from processor.engine.rounds.operators import Eraser
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record, Rejected
from statestore.items import encode_version
from statestore.keys import Key
from statestore.store import Delete, Write

PLAN = plan_alone(
    load(
        {
            "entities.yaml": """
                user: {key: [email], columns: {email: string, name: string, groups: "int[]"}}
                star: {key: [id], columns: {id: int, who: string}}
                group: {key: [id], columns: {id: int}}
            """,
            "profile.yaml": """
                {product: profile, root: user, fields: [name], embed: {stars: {many: star, on: {who: name}, value: id}}}
            """,
            "members.yaml": """
                {product: members, root: group, fields: [id], embed: {users: {many: user, on: {"groups[]": id}, value: name}}}
            """,
        }
    ),
    3,
)
ADA = "ada@example.org"
MARK = "canary"
LEDGER = "LEDGER#user#0"


class World:
    """A job, and a source that numbers its records."""

    def __init__(self) -> None:
        self.trial = Trial(plan=PLAN, settings=Settings())
        self.ends = 0

    def record(self, topic: str, row: dict[str, Any], value: bytes | None = None) -> Record:
        key = {name: row[name] for name in PLAN.entities[topic].entity.key}
        self.ends += 1
        encoded = json.dumps(row).encode() if value is None else value
        return Record(topic=topic, partition=0, offset=self.ends - 1, key=json.dumps(key).encode(), value=encoded)

    def ada(self, name: str) -> Record:
        return self.record("user", {"email": ADA, "name": name, "groups": [1], "phone": f"{MARK} 1"})

    def batch(self, *records: Record) -> None:
        self.trial.batch(records)

    def erase(self, email: str = ADA) -> RetiredEntries:
        driver = self.trial.driver
        Eraser(driver).erase("user", email, Erasure({0: encode_version(0, 0, self.ends)}))
        self.trial.finish()
        return Eraser(driver).retire_entries("user", email)

    def items(self) -> str:
        pks = [
            "TABLE#user",
            *PARTITIONS,
            "REPLAYS",
            "ERASED",
            "WALKS",
            LEDGER,
            "LEDGER#group#0",
            "EDGE#user#groups[]=1",
        ]
        return json.dumps([item for pk in pks for item in self.trial.store.partition(pk)], default=str)

    def documents(self) -> dict[str, Any]:
        self.trial.finish()
        last = {f"{m.topic} {(m.key or b'').decode()}": m.value for m in self.trial.published.messages}
        return {at: json.loads(value) for at, value in last.items() if value is not None}


def test_an_erased_row_leaves_a_bare_marker_and_no_document_shows_it() -> None:
    world = World()
    world.batch(world.ada(f"{MARK} old"), world.record("group", {"id": 1}))
    world.batch(world.ada(f"{MARK} new"))
    assert world.documents()['members {"id":1}'] == {"id": 1, "users": [f"{MARK} new"]}
    assert world.erase() == ({"profile": 3}, frozenset())
    assert world.documents() == {'members {"id":1}': {"id": 1, "users": []}}
    assert MARK not in world.items()
    assert world.trial.store.partition("EDGE#user#groups[]=1") == []
    (marker,) = world.trial.store.partition("TABLE#user")
    assert marker["ttl"] > 30 * 86_400
    assert {name for name in marker if not name.startswith("GSI_")} == {
        "PK",
        "SK",
        "_f",
        "_v",
        "_indexed_v",
        "_l",
        "_edges",
        "_deleted",
        "ttl",
    }


def test_an_erasure_removes_values_that_no_plan_knows_any_more() -> None:
    world = World()
    world.batch(world.ada("ada"))
    key = PLAN.entities["user"].key(ADA)
    old = {"dropped": f"{MARK} 2", "GSI_3": f"{MARK} 3", "prev_3": f"{MARK} 4"}
    world.trial.store.write(Write(key, old))
    world.erase()
    assert MARK not in world.items()


def test_records_from_before_the_erasure_change_nothing_and_a_new_one_brings_the_row_back() -> None:
    world = World()
    world.batch(world.ada("ada"))
    unread = world.ada(f"{MARK} unread")
    letter = DeadLetter(rejected=Rejected(record=world.ada(f"{MARK} letter"), reason=""), kept_since=0.0)
    broken = world.record("user", {"email": ADA}, f"{MARK} no JSON".encode())
    world.erase()
    world.batch(unread, broken)
    assert world.trial.tally["ignored: erased"] == 2
    assert world.trial.rejects.messages == []
    assert [report.outcome for report in world.trial.driver.replay([letter])] == ["superseded"]
    assert world.documents() == {}
    assert MARK not in world.items()
    world.batch(world.ada("again"))
    assert [entry.get("ttl") for entry in world.trial.store.partition(LEDGER)] == [None]
    assert world.documents()[f'profile {{"email":"{ADA}"}}']["name"] == "again"


def test_an_erasure_before_the_first_record_of_the_row_keeps_it_away() -> None:
    world = World()
    unread = world.ada("ada")
    assert world.erase() == ({}, frozenset())
    world.batch(unread)
    assert world.documents() == {}
    assert world.trial.store.partition("TABLE#user") == []


def test_the_entry_of_the_ledger_expires_and_the_sequence_still_rises() -> None:
    world = World()
    world.batch(world.ada("ada"))
    world.erase()
    (entry,) = world.trial.store.partition(LEDGER)
    assert entry["key"] == ""
    assert [one.hash for _, one in read_entries(entry)] == [NO_DOCUMENT]
    world.trial.clock.sleep(31 * 86_400)
    world.trial.store.delete(Delete(key=Key(LEDGER, ADA)))  # DynamoDB removes it
    world.batch(world.ada("again"))
    assert "ttl" not in world.trial.store.partition(LEDGER)[0]
    sequences = [dict(m.headers)["statestore.sequence"] for m in world.trial.published.messages]
    assert sequences == [b"1", b"2", b"3"]


def test_an_item_with_a_document_of_a_product_that_went_stays_and_the_erasure_names_those_that_share_it() -> None:
    world = World()
    world.batch(world.ada("ada"))
    world.trial.finish()
    key = group_key(PLAN.products["profile"].ledger, ADA)
    item = world.trial.store.get([key])[key]
    world.trial.store.write(reserve(key, item, {7: LedgerEntry(9, "ab" * 16, Mark(1, 0, 0, 0), 1)}, item["key"]))
    assert world.erase() == ({"profile": 2}, frozenset({"profile"}))
    (entry,) = world.trial.store.partition(LEDGER)
    assert ("ttl" in entry, entry["key"]) == (False, item["key"])


@pytest.mark.parametrize("requests", range(1, 6))
def test_an_erasure_that_broke_off_at_any_request_ends_right_when_it_is_repeated(
    requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.batch(world.ada(f"{MARK} old"), world.record("group", {"id": 1}))
    world.trial.finish()
    before, left = world.trial, iter(range(requests - 1))

    def breaking(send: Any) -> Any:
        def send_or_break(request: Any) -> Any:
            if next(left, None) is None:
                raise ConnectionError
            return send(request)

        return send_or_break

    with monkeypatch.context() as patch:
        patch.setattr(before.store, "write", breaking(before.store.write))
        patch.setattr(before.store, "delete", breaking(before.store.delete))
        with pytest.raises(ConnectionError):
            world.erase()
    world.trial = Trial(plan=PLAN, settings=Settings(), run=2, other_store=before.store, clock=before.clock)
    world.trial.published.messages += before.published.messages
    world.trial.driver.start()
    world.erase()
    assert world.documents() == {'members {"id":1}': {"id": 1, "users": []}}
    assert MARK not in world.items()
    assert world.trial.store.partition("EDGE#user#groups[]=1") == []
