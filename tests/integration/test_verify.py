"""Published documents against the SQL that Postgres runs over the rows of the state, whatever their types, shards and joins."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg
import pytest

from processor.definitions.load import load
from processor.errors import OracleError
from processor.lockstep import Lockstep
from processor.mirror import Mirror
from processor.model import canonical_json
from processor.model.change import Record
from processor.oracle import oracle
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import MemoryOutbox, Trial
from processor.verify import Verified, Verifier, overlaid

ENTITIES = """
team:
  key: [day, number, at]
  columns: {day: date, number: "decimal(6,2)", at: timestamp, name: string, member_ids: "int[]", shares: "decimal[]"}
person:
  key: [id]
  columns:
    id: int
    weight: float
    cash: "decimal(12,2)"
    born: date
    seen: timestamp(ns)
    active: bool
    tags: "string[]"
    scores: "float[]"
    visits: "timestamp[]"
    notes: json
    more: "json[]"
  shards: 3
post:
  key: [id]
  columns: {id: int, person: int, at: timestamp, text: string}
  shards: 12
"""
TEAMS = """
product: teams
root: team
embed:
  members:
    many: person
    on: {id: "member_ids[]"}
    embed: {posts: {many: post, on: {person: id}, order_by: [-at], limit: 2, total: true}}
  average: {many: person, on: {id: "member_ids[]"}, fields: {weight: avg(weight), id: avg(id), sum: sum(id / 3.0)}}
  namesakes: {many: team, on: {name: name}, value: number}
"""
PEOPLE = """
product: people
root: person
where: active
fields: {id: id, heavy: weight * 1.5, cash: cash, seen: seen, last: last_post.at, words: count(posts.text)}
join:
  posts: {many: post, on: {person: id}}
  last_post: {one: post, on: {person: id}, order_by: [-at]}
"""
LONG = "".join(map(chr, Random(1).choices(range(0x4E00, 0x9FFF), k=3_000)))
ROWS: dict[str, list[dict[str, Any]]] = {
    "team": [
        {"day": "2026-11-20", "number": 1.50, "at": "2026-11-20T10:00:00.5+01:00", "name": "a", "member_ids": [1, 2, 1, 9, 3, 4]},
        {"day": "1999-01-01", "number": 2, "at": "2026-11-20T10:00:00Z", "name": LONG, "member_ids": None},
        {"day": "0001-01-01", "number": 0.01, "at": "0001-01-01T00:00:00Z", "shares": [1, 2.5, None, 3.0], "member_ids": []},
    ],
    "person": [
        {"id": 1, "weight": 0.1, "cash": 12.30, "born": "2000-02-29", "seen": 1763630000123456789, "active": True},
        {"id": 2, "weight": 1e22, "tags": ['a,"b"', None, "{}", "\\"], "scores": [1, 0.1, 1e-100], "active": True},
        {"id": 3, "weight": 1.7e-120, "visits": ["2026-11-20T10:00:00.1234567Z", None], "notes": {"b": 1.50, "a": None}},
        {"id": 4, "notes": [1, "x", {"y": []}], "more": [{"n": 1.0}, 2, None, "t"], "nickname": "not declared"},
        {"id": 5, "active": True, "cash": 10**37, "seen": "2026-11-20T10:00:00Z", "undeclared": [1]},
    ],
    "post": [
        {"id": n, "person": n % 4 or None, "at": f"2026-11-{n:02d}T00:00:00.1234567Z", "text": f"t{n}\t\\N\n'ü"}
        for n in range(1, 25)
    ],
}  # fmt: skip
PLAN = plan_alone(load({"entities.yaml": ENTITIES, "teams.yaml": TEAMS, "people.yaml": PEOPLE}), slots=20)


@pytest.fixture
def trial() -> Trial:
    """A job that has published everything; one row went again, one was changed."""
    trial = Trial(plan=PLAN, settings=Settings())
    lines = [(entity, row) for entity, rows in ROWS.items() for row in rows]
    lines += [("post", {"id": 3, "person": 2, "at": "2026-11-30T00:00:00Z"})]
    records = [record(entity, n, None, row) for n, (entity, row) in enumerate(lines)]
    trial.batch([*records, record("post", len(records), {"id": 7}, None)])
    trial.finish()
    assert not trial.rejects.messages
    return trial


def record(entity: str, offset: int, key: Any, row: Any) -> Record:
    key, value = (None if part is None else json.dumps(part).encode() for part in (key, row))
    return Record(topic=entity, partition=0, offset=offset, key=key, value=value)


def messages(trial: Trial, product: str) -> list[Record]:
    sent = [m for m in trial.published.messages if m.topic == product]
    return [Record(topic=product, partition=0, offset=n, key=m.key, value=m.value) for n, m in enumerate(sent)]


@contextmanager
def verifying(url: str, trial: Trial, wait: Callable[[], None] = lambda: None) -> Iterator[Verifier]:
    entities = {name: entity.entity for name, entity in PLAN.entities.items()}
    with oracle(url, f"verify_{uuid.uuid4().hex[:8]}", entities) as tables:
        mirror = Mirror(plan=PLAN, store=trial.store, tables=tables, report=lambda _: None)
        lockstep = overlaid(Lockstep(store=trial.store, outbox=MemoryOutbox()))
        yield Verifier(plan=PLAN, lockstep=lockstep, wait=wait, mirror=mirror)


def verified(url: str, trial: Trial, product: str, topic: list[Record]) -> Verified:
    with verifying(url, trial) as verifier:
        return verifier.verify(PLAN.products[product], lambda: topic, None, Random(1))


@pytest.mark.parametrize(("product", "documents"), [("teams", 3), ("people", 3)])
def test_what_was_published_is_what_sql_answers_over_the_rows_of_the_state(
    postgres_url: str, trial: Trial, product: str, documents: int
) -> None:
    """No document needs the second look, which holds what it looks at."""
    with verifying(postgres_url, trial, wait=pytest.fail) as verifier:
        found = verifier.verify(PLAN.products[product], lambda: messages(trial, product), None, Random(1))
    assert found == Verified(compared=documents, differences=())


def test_what_differs_is_told_with_the_answer_of_sql(postgres_url: str, trial: Trial) -> None:
    """Spoilt, never published, deleted by somebody, and of no root."""
    topic = messages(trial, "people")
    good = {r.key: canonical_json.loads(r.value or b"") for r in topic}
    spoilt = canonical_json.encode(good[b'{"id":1}'] | {"cash": 12.31})
    lines = [Record(topic="people", partition=0, offset=99, key=b'{"id":1}', value=spoilt)]
    lines += [Record(topic="people", partition=0, offset=99, key=b'{"id":77}', value=b"{}")]
    topic = [r for r in topic if r.key != b'{"id":5}']
    found = verified(postgres_url, trial, "people", [*topic, *lines])
    assert found.compared == 4
    assert [(d.key, d.root, d.published, d.stale, d.refuted) for d in found.differences] == [
        ('{"id":1}', "1", spoilt, True, False),
        ('{"id":5}', "5", None, True, False),
        ('{"id":77}', "77", b"{}", True, False),
    ]
    one, five, none = (d.sql and canonical_json.loads(d.sql) for d in found.differences)
    assert (one["cash"], one["seen"]) == (good[b'{"id":1}']["cash"], "2025-11-20T09:13:20.123457Z")
    assert five == good[b'{"id":5}']
    assert none is None


def test_rows_are_read_anew_for_the_second_look(postgres_url: str, trial: Trial) -> None:
    topic = messages(trial, "people")
    with verifying(postgres_url, trial) as verifier:
        assert verifier.mirror
        assert len(list(verifier.mirror.documents(PLAN.products["people"].product))) == 3
        trial.batch([record("person", 100, None, {"id": 1, "cash": 1, "active": True})])
        found = verifier.verify(PLAN.products["people"], lambda: topic, None, Random(1))
        assert [d.key for d in found.differences] == ['{"id":1}']
        assert verifier.verify(PLAN.products["people"], lambda: messages(trial, "people"), None, Random(1)) == Verified(
            compared=3, differences=()
        )


def test_what_postgres_cannot_hold_is_an_error_and_leaves_nothing(postgres_url: str, trial: Trial) -> None:
    trial.batch([record("person", 100, None, {"id": 6, "tags": ["a\0b"], "active": True})])
    with pytest.raises(OracleError, match=r"person 6: Postgres cannot hold this row: .*NUL.*correct it at its source"):
        verified(postgres_url, trial, "people", messages(trial, "people"))
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        left = connection.execute("select 1 from pg_namespace where nspname like 'verify_%'").fetchall()
    assert left == []
