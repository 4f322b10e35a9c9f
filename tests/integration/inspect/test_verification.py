"""Verify against SQL that Postgres runs over the rows of the state, with all column types, shards and kinds of joins."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import psycopg
import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import OracleError
from processor.language.definitions.load import load
from processor.tools.inspect.oracle import oracle
from processor.tools.inspect.verification import Mirror, VerificationResult, Verifier, why_not_held, with_open_changes
from processor.values import canonical_json
from processor.values.record import Record

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
    """A job that has published all documents, after one row was deleted and one was changed."""
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
    entities = PLAN.declared_entities
    with oracle(url, f"verify_{uuid.uuid4().hex[:8]}", entities) as tables:
        mirror = Mirror(plan=PLAN, store=trial.store, tables=tables, report=lambda _: None)
        runner = with_open_changes(StepRunner(store=trial.store))
        yield Verifier(plan=PLAN, runner=runner, wait=wait, mirror=mirror)


def verified(url: str, trial: Trial, product: str, topic: list[Record]) -> VerificationResult:
    with verifying(url, trial) as verifier:
        return verifier.verify(PLAN.products[product], lambda: topic, None, Random(1))


@pytest.mark.parametrize(("product", "documents"), [("teams", 3), ("people", 3)])
def test_published_documents_are_the_answer_of_sql_over_the_rows_of_the_state(
    postgres_url: str, trial: Trial, product: str, documents: int
) -> None:
    """No document needs the second look: `wait` would fail."""
    with verifying(postgres_url, trial, wait=pytest.fail) as verifier:
        found = verifier.verify(PLAN.products[product], lambda: messages(trial, product), None, Random(1))
    assert found == VerificationResult(compared=documents, differences=())


def test_verify_reports_a_difference_with_the_answer_of_sql(postgres_url: str, trial: Trial) -> None:
    """One document was altered in the topic, one was never published, and one has no root."""
    topic = messages(trial, "people")
    good = {r.key: canonical_json.loads(r.value or b"") for r in topic}
    altered = canonical_json.encode(good[b'{"id":1}'] | {"cash": 12.31})
    lines = [Record(topic="people", partition=0, offset=99, key=b'{"id":1}', value=altered)]
    lines += [Record(topic="people", partition=0, offset=99, key=b'{"id":77}', value=b"{}")]
    topic = [r for r in topic if r.key != b'{"id":5}']
    found = verified(postgres_url, trial, "people", [*topic, *lines])
    assert found.compared == 4
    assert [(d.key, d.root, d.published, d.stale, d.refuted) for d in found.differences] == [
        ('{"id":1}', "1", altered, True, False),
        ('{"id":5}', "5", None, True, False),
        ('{"id":77}', "77", b"{}", True, False),
    ]
    one, five, none = (canonical_json.loads(d.sql or b"null") for d in found.differences)
    assert (one["cash"], one["seen"]) == (good[b'{"id":1}']["cash"], "2025-11-20T09:13:20.123457Z")
    assert five == good[b'{"id":5}']
    assert none is None


def test_verify_reads_rows_again_for_the_second_look(postgres_url: str, trial: Trial) -> None:
    topic = messages(trial, "people")
    with verifying(postgres_url, trial) as verifier:
        assert verifier.mirror
        assert len(list(verifier.mirror.documents(PLAN.products["people"].product))) == 3
        trial.batch([record("person", 100, None, {"id": 1, "cash": 1, "active": True})])
        found = verifier.verify(PLAN.products["people"], lambda: topic, None, Random(1))
        assert [d.key for d in found.differences] == ['{"id":1}']
        assert verifier.verify(
            PLAN.products["people"], lambda: messages(trial, "people"), None, Random(1)
        ) == VerificationResult(compared=3, differences=())


def test_no_schema_is_left_after_an_error(postgres_url: str, trial: Trial) -> None:
    with pytest.raises(OracleError, match="Postgres cannot answer"), verifying(postgres_url, trial):
        raise psycopg.DataError("a value")
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        schemas = connection.execute("select 1 from pg_namespace where nspname like 'verify_%'").fetchall()
    assert schemas == []


NUL = "a NUL character, which Postgres cannot hold"
AWKWARD = """
user: {key: [id], columns: {id: int, xmin: int, ctid: string, tableoid: bool, a: string, f: float, at: timestamp, unused: string}}
note: {key: [at], columns: {at: timestamp, user: int, text: string, data: json, marks: "json[]"}}
""" + "".join(
    f"{'long_' * 14}{n}: {{key: [id], columns: {{id: int, {'c' * 70}: int, {'c' * 70}{n}: int}}}}\n" for n in (1, 2)
)
NOTES = """
product: notes
root: user
fields: [id, xmin, ctid, tableoid, a, f, at]
embed:
  notes: {many: note, on: {user: id}, where: text <> 'x', fields: [at, text, data, marks]}
"""
ALIKE = "".join(
    f"  l{n}: {{many: {'long_' * 14}{n}, on: {{{'c' * 70}: id}}, fields: [{'c' * 70}, {'c' * 70}{n}]}}\n"
    for n in (1, 2)
)


def awkward(url: str, rows: list[tuple[str, dict[str, Any]]], change: bytes = b"") -> VerificationResult:
    """Verifies the documents of a job over these rows. `change`: replaces the last message's value."""
    plan = plan_alone(load({"entities.yaml": AWKWARD, "notes.yaml": NOTES}), slots=20)
    trial = Trial(plan=plan, settings=Settings())
    trial.batch([record(entity, n, None, row) for n, (entity, row) in enumerate(rows)])
    trial.finish()
    assert not trial.rejects.messages
    topic = messages(trial, "notes")
    if change:
        topic[-1] = Record(topic="notes", partition=0, offset=99, key=topic[-1].key, value=change)
    entities = plan.declared_entities
    with oracle(url, f"verify_{uuid.uuid4().hex[:8]}", entities) as tables:
        mirror = Mirror(plan=plan, store=trial.store, tables=tables, report=lambda _: None)
        runner = with_open_changes(StepRunner(store=trial.store, page=1))
        verifier = Verifier(plan=plan, runner=runner, wait=lambda: None, mirror=mirror)
        return verifier.verify(plan.products["notes"], lambda: topic, None, Random(1))


USERS: list[tuple[str, dict[str, Any]]] = [("user", {"id": n, "a": f"u{n}"}) for n in range(4)]
DAY = "2026-11-20T10:00:00"


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        ({"text": "a\0b"}, f"column text has {NUL}"),
        ({"text": "b", "data": {"a": ["\0"]}}, f"column data has {NUL}"),
        ({"text": "b", "data": {"\0": 1}}, f"column data has {NUL}"),
        ({"text": "b", "marks": [None, {"a": "\0"}]}, f"column marks has {NUL}"),
        ({"text": "b", "at": f"{DAY}.1234567Z"}, "key column at has more digits than the microseconds of Postgres"),
    ],
)
def test_a_document_of_a_row_that_postgres_cannot_hold_is_named_and_the_others_are_compared(
    postgres_url: str, note: dict[str, Any], reason: str
) -> None:
    notes = [
        {"at": f"{DAY}Z", "user": 1, "text": "good"},
        {"at": f"{DAY}.123457Z", "user": 2} | note,
        {"at": f"{DAY}.5Z", "user": 3},
    ]
    found = awkward(postgres_url, [*USERS, *(("note", row) for row in notes)])
    sk = str(note.get("at", f"{DAY}.123457Z"))
    assert found.differences == ()
    assert found.compared == 4
    assert [(d.product, d.key, d.reason) for d in found.not_compared] == [("notes", '{"id":2}', f"note {sk}: {reason}")]


def test_a_document_that_is_not_compared_with_sql_is_compared_with_the_state(postgres_url: str) -> None:
    found = awkward(postgres_url, [("user", {"id": 9, "a": "\0"})], change=b'{"id":9}')
    assert [(d.key, d.stale, d.refuted) for d in found.differences] == [('{"id":9}', True, False)]
    assert [d.reason for d in found.not_compared] == [f"user 9: column a has {NUL}"]


@pytest.mark.parametrize(
    ("number", "held"), [("1E+131072", False), ("1E-16384", False), ("1E+131071", True), ("1E-16383", True)]
)
def test_a_json_number_beyond_the_range_of_postgres_is_named(postgres_url: str, number: str, held: bool) -> None:
    note = load({"entities.yaml": AWKWARD}).entities["note"]
    row = {"at": f"{DAY}Z", "data": [canonical_json.loads(number)]}
    reason = None if held else "column data has a number beyond the range of Postgres"
    assert why_not_held(note, row, None) == reason
    with oracle(postgres_url, f"verify_{uuid.uuid4().hex[:8]}", {"note": note}) as sql:
        if held:
            sql.load({"note": [row]})


def test_a_column_that_no_product_uses_may_hold_anything(postgres_url: str) -> None:
    found = awkward(postgres_url, [*USERS, ("user", {"id": 5, "unused": "\0"})])
    assert found == VerificationResult(compared=5, differences=())


def test_system_columns_and_names_alike_in_63_bytes_keep_their_values(postgres_url: str) -> None:
    long, alike = "long_" * 14, "c" * 70
    rows: list[tuple[str, dict[str, Any]]] = [("user", {"id": 1, "xmin": 7, "ctid": "(0,1)", "tableoid": True})]
    rows += [(f"{long}{n}", {"id": k, alike: 1, f"{alike}{n}": 10 * n + k}) for n in (1, 2) for k in (1, 2)]
    definitions = load({"entities.yaml": AWKWARD, "notes.yaml": NOTES + ALIKE})
    tables = {entity: [row for name, row in rows if name == entity] for entity in definitions.entities}
    with oracle(postgres_url, f"verify_{uuid.uuid4().hex[:8]}", definitions.entities) as sql:
        sql.load(tables)
        (document,) = sql.documents(definitions.products["notes"]).values()
    assert [document["xmin"], document["ctid"], document["tableoid"]] == [7, "(0,1)", True]
    assert [document[f"l{n}"] for n in (1, 2)] == [
        [{alike: 1, f"{alike}{n}": 10 * n + k} for k in (1, 2)] for n in (1, 2)
    ]


@pytest.mark.parametrize("number", ["1e23", "5e22", "1e3", "1000.0", "9007199254740993", "0.1", "1e-130", "9e125"])
def test_equal_floats_are_equal_however_they_are_printed(postgres_url: str, number: str) -> None:
    found = awkward(postgres_url, [("user", {"id": 1, "f": float(number)})])
    assert found == VerificationResult(compared=1, differences=())


def test_a_key_longer_than_an_index_of_postgres_takes_is_compared(postgres_url: str) -> None:
    entities = "user: {key: [name], columns: {name: string}}"
    definitions = load({"entities.yaml": entities, "p.yaml": "product: p\nroot: user\n"})
    with oracle(postgres_url, f"verify_{uuid.uuid4().hex[:8]}", definitions.entities) as sql:
        sql.load({"user": [{"name": LONG}]})
        assert list(sql.documents(definitions.products["p"]).values()) == [{"name": LONG}]
