"""List joins in both directions, and strong joins: documents by hand, by the steps, and by the product's SQL in Postgres."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from random import Random
from textwrap import dedent
from typing import Any

import pytest

from processor.definitions.load import load
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.product import Definitions
from processor.oracle import oracle
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import Trial, batches

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Documents = dict[str, Any]
Ask = Callable[[Definitions, Rows], Documents]


@pytest.fixture
def ask(postgres_url: str) -> Ask:
    """The documents of the first product by message key, from Postgres; those of the steps must be the same, also when the
    rows that refer to others come first, and one a batch."""

    def answer(definitions: Definitions, rows: Rows) -> Documents:
        with oracle(postgres_url, f"lists_{uuid.uuid4().hex[:8]}", definitions.entities) as postgres:
            postgres.load(rows)
            documents = postgres.documents(next(iter(definitions.products.values())))
        events = [(entity, row) for entity, found in rows.items() for row in found]
        assert published(definitions, events, None) == documents
        assert published(definitions, events, 1) == documents
        assert published(definitions, events[::-1], 1) == documents
        return documents

    return answer


def published(
    definitions: Definitions, events: Sequence[tuple[str, Any]], size: int | None, lag: float = 0
) -> Documents:
    """The last documents that the steps publish of these rows, in this order, so many a batch; a row alone deletes."""
    settings = Settings()
    trial = Trial(plan=plan_alone(definitions, settings.slots), settings=settings, lag=lag)
    for chunk in batches(records(definitions, events), size):
        trial.batch(chunk)
        trial.settle()
    trial.finish()
    assert trial.rejects.messages == []
    last = {(m.key or b"").decode(): m.value for m in trial.published.messages}
    return {key: canonical_json.loads(value) for key, value in last.items() if value is not None}


def records(definitions: Definitions, events: Sequence[tuple[str, Any]]) -> list[Record]:
    found = []
    for n, (entity, row) in enumerate(events):
        declared = definitions.entities[entity]
        key = {c: row[c] for c in declared.key}
        value = None if row.keys() == key.keys() and len(declared.columns) > len(key) else json.dumps(row).encode()
        found.append(Record(topic=declared.topic, partition=0, offset=n, key=json.dumps(key).encode(), value=value))
    return found


def definitions(entities: str, product: str) -> Definitions:
    return load({"entities.yaml": dedent(entities), "product.yaml": dedent(product)})


TEAMS = """
    team:
      key: [id]
      columns: {id: int, org: string, member_ids: "int[]", logins: "string[]", members: "json[]", at: "timestamp[]"}
    person:
      key: [id]
      columns: {id: int, org: string, login: string, name: string, born: timestamp, score: float}
    badge:
      key: [id]
      columns: {id: int, person: int, text: string}
"""


def team(id: int, **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(("org", "member_ids", "logins", "members", "at")) | {"id": id} | columns


def person(id: int, **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(("org", "login", "name", "born", "score")) | {"id": id} | columns


def test_a_list_join_keeps_the_order_and_length_of_the_array(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: [id]
        embed:
          members: {many: person, on: {id: "member_ids[]"}, fields: {id: id, called: name}}
          names: {many: person, on: {id: "member_ids[]"}, value: name}
          ids: {many: person, on: {id: "member_ids[]"}, value: id}
        """,
    )
    rows = {
        "team": [team(1, member_ids=[3, 9, 2, None, 3]), team(2, member_ids=[]), team(3)],
        "person": [person(2, name="bo"), person(3, name="cy"), person(4, name="di")],
    }

    documents = ask(found, rows)

    nobody = {"members": [], "names": [], "ids": []}
    assert documents == {
        '{"id":1}': {
            "id": 1,
            "members": [
                {"id": 3, "called": "cy"},
                {"id": 9, "called": None},
                {"id": 2, "called": "bo"},
                {"id": None, "called": None},
                {"id": 3, "called": "cy"},
            ],
            "names": ["cy", None, "bo", None, "cy"],
            "ids": [3, 9, 2, None, 3],
        },
        '{"id":2}': {"id": 2} | nobody,
        '{"id":3}': {"id": 3} | nobody,
    }


def test_several_rows_of_an_element_stand_in_its_place_by_key(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: []
        embed:
          members: {many: person, on: {login: "logins[]"}, fields: [login, id]}
        """,
    )
    people = [person(10, login="a"), person(9, login="a"), person(1, login="b"), person(2)]

    documents = ask(found, {"team": [team(1, logins=["b", "a", "x", "b"])], "person": people})

    assert documents['{"id":1}']["members"] == [
        {"login": "b", "id": 1},
        {"login": "a", "id": 9},
        {"login": "a", "id": 10},
        {"login": "x", "id": None},
        {"login": "b", "id": 1},
    ]


def test_below_an_element_without_a_row_there_is_nothing(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: []
        embed:
          members:
            many: person
            on: {id: "member_ids[]"}
            embed:
              badges: {many: badge, on: {person: id}, value: text}
              first: {one: badge, on: {person: id}, value: text}
        """,
    )
    rows = {
        "team": [team(1, member_ids=[1, 2])],
        "person": [person(1, name="al", score=0.5, born="2000-01-01T00:00:00Z")],
        "badge": [{"id": 7, "person": 1, "text": "new"}, {"id": 8, "person": 2, "text": "lost"}],
    }

    documents = ask(found, rows)

    shown = {"org": None, "login": None}
    there = {"name": "al", "born": "2000-01-01T00:00:00Z", "score": canonical_json.loads("0.5")}
    assert documents['{"id":1}']["members"] == [
        {"id": 1, **shown, **there, "badges": ["new"], "first": "new"},
        {"id": 2, **shown, "name": None, "born": None, "score": None, "badges": [], "first": None},
    ]


def test_members_of_objects_join_by_value_and_type(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: []
        embed:
          by_id: {many: person, on: {id: "members[].id"}, fields: [id, name]}
          by_login: {many: person, on: {login: "members[].id"}, value: name}
          by_both: {many: person, on: {id: "members[].id", login: "members[].login"}, fields: [login, name]}
          scored: {many: person, on: {score: "members[].id"}, value: id}
        """,
    )
    members = [
        {"id": 2, "login": "b"},
        {"id": "2"},
        2,
        None,
        {"login": "b"},
        {"id": 2.0, "login": None},
        {"id": {"a": 1}},
    ]
    people = [person(2, login="b", name="bo", score=2), person(3, login="2", name="cy")]

    documents = ask(found, {"team": [team(1, members=members)], "person": people})

    nobody = {"id": None, "name": None}
    assert documents['{"id":1}'] == {
        "by_id": [
            {"id": 2, "name": "bo"},
            {"id": "2", "name": None},
            nobody,
            nobody,
            nobody,
            {"id": 2, "name": "bo"},
            {"id": {"a": 1}, "name": None},
        ],
        "by_login": [None, "cy", None, None, None, None, None],
        "by_both": [
            {"login": "b", "name": "bo"},
            *[{"login": None, "name": None}] * 3,
            {"login": "b", "name": None},
            *[{"login": None, "name": None}] * 2,
        ],
        "scored": [2, None, None, None, None, 2, None],
    }


def test_a_composite_list_join_takes_the_other_parts_from_the_row(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: []
        embed:
          members: {many: person, on: {org: org, login: "logins[]"}, fields: [org, login, id]}
        """,
    )
    people = [person(1, org="x", login="a"), person(2, org="y", login="a"), person(3, org=None, login="a")]
    teams = [team(1, org="x", logins=["a", "b"]), team(2, logins=["a"])]

    documents = ask(found, {"team": teams, "person": people})

    assert documents['{"id":1}']["members"] == [
        {"org": "x", "login": "a", "id": 1},
        {"org": "x", "login": "b", "id": None},
    ]
    assert documents['{"id":2}']["members"] == [{"org": None, "login": "a", "id": None}]


def test_the_reverse_finds_the_rows_whose_array_contains_the_value_once_each(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: people
        root: person
        fields: [id]
        embed:
          teams: {many: team, on: {"member_ids[]": id}, order_by: [-org], limit: 2, value: id}
          named: {many: team, on: {"members[].login": login, org: org}, value: id}
          lead: {one: team, on: {"logins[]": login}, value: id}
          scored: {many: team, on: {"member_ids[]": score}, value: id}
        """,
    )
    teams = [
        team(1, org="x", member_ids=[1, 1, None], logins=["a", "b"], members=[{"login": "a"}, {"login": "a"}]),
        team(2, org="y", member_ids=[2, 1], logins=["a"], members=[{"login": "a"}, {}]),
        team(3, org="z", member_ids=[1], logins=[], members=[]),
        team(4, org=None, member_ids=[3]),
    ]
    people = [person(1, org="x", login="a", score=2), person(2, login="b"), person(3, org="y", score=1.5)]

    documents = ask(found, {"person": people, "team": teams})

    assert documents == {
        '{"id":1}': {"id": 1, "teams": [3, 2], "named": [1], "lead": 1, "scored": [2]},
        '{"id":2}': {"id": 2, "teams": [2], "named": [], "lead": 1, "scored": []},
        '{"id":3}': {"id": 3, "teams": [4], "named": [], "lead": None, "scored": []},
    }


def test_timestamps_in_arrays_join_as_instants(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: []
        embed: {born: {many: person, on: {born: "at[]"}, fields: [born, id]}}
        """,
    )
    times = ["2000-01-01T02:00:00+02:00", "2000-01-01T00:00:00.100Z"]

    documents = ask(found, {"team": [team(1, at=times)], "person": [person(1, born="2000-01-01T00:00:00.000Z")]})

    assert documents['{"id":1}']["born"] == [
        {"born": "2000-01-01T00:00:00Z", "id": 1},
        {"born": "2000-01-01T00:00:00.1Z", "id": None},
    ]


def test_an_element_whose_row_does_not_count_is_one_without_a_row_and_required_leaves_it_out(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        fields: [id]
        embed:
          scored: {many: person, on: {id: "member_ids[]"}, where: score > 1, fields: {id: id, as: "name || '!'"}}
          badged:
            many: person
            on: {id: "member_ids[]"}
            join: {badge: {one: badge, on: {person: id}, required: true}}
            fields: {id: id, text: badge.text, by: parent.id}
          only: {many: person, on: {id: "member_ids[]"}, where: score > 1, required: true, value: id}
          worn:
            many: person
            on: {login: "logins[]"}
            value: id
            required: true
            join: {badge: {one: badge, on: {person: id}, required: true}}
        """,
    )
    rows = {
        "team": [team(1, member_ids=[1, 2, 3, 2, 1], logins=["b", "a", "b"]), team(2)],
        "person": [
            person(1, name="al", login="a", score=1),
            person(2, name="bo", login="b", score=2),
            person(4, login="b"),
        ],
        "badge": [{"id": 1, "person": 2, "text": "x"}],
    }

    documents = ask(found, rows)

    other, bo = {"id": 1, "as": None}, {"id": 2, "as": "bo!"}
    assert documents == {
        '{"id":1}': {
            "id": 1,
            "scored": [other, bo, {"id": 3, "as": None}, bo, other],
            "badged": [
                {"id": 1, "text": None, "by": None},
                {"id": 2, "text": "x", "by": 1},
                {"id": 3, "text": None, "by": None},
                {"id": 2, "text": "x", "by": 1},
                {"id": 1, "text": None, "by": None},
            ],
            "only": [2, 2],
            "worn": [2, 2],
        },
        '{"id":2}': {"id": 2, "scored": [], "badged": [], "only": [], "worn": []},
    }


def test_aggregates_over_a_list_join_take_each_row_as_often_as_an_element_finds_it(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: teams
        root: team
        join:
          people: {many: person, on: {id: "member_ids[]"}}
        fields: {id: id, rows: count(people), named: count(people.name), total: sum(people.score)}
        embed:
          stats: {many: person, on: {login: "logins[]"}, fields: {rows: count(*), top: max(score)}}
          members:
            many: person
            on: {id: "member_ids[]"}
            fields: [id]
            embed:
              badges: {many: badge, on: {person: id}, value: count(*)}
              texts: {many: badge, on: {person: id}, fields: {n: count(*), least: min(text)}}
        """,
    )
    rows = {
        "team": [team(1, member_ids=[2, 9, 2], logins=["b", "x", "a"]), team(2)],
        "person": [person(1, login="a", score=1), person(2, name="bo", login="b", score=2)],
        "badge": [{"id": 1, "person": 2, "text": "x"}, {"id": 2, "person": 2, "text": "a"}],
    }

    documents = ask(found, rows)

    bo = {"id": 2, "badges": 2, "texts": {"n": 2, "least": "a"}}
    assert documents == {
        '{"id":1}': {
            "id": 1,
            "rows": 2,
            "named": 2,
            "total": 4,
            "stats": {"rows": 2, "top": 2},
            "members": [bo, {"id": 9, "badges": 0, "texts": {"n": 0, "least": None}}, bo],
        },
        '{"id":2}': {"id": 2, "rows": 0, "named": 0, "total": None, "stats": {"rows": 0, "top": None}, "members": []},
    }


def test_the_reverse_is_an_ordinary_many(ask: Ask) -> None:
    found = definitions(
        TEAMS,
        """
        product: people
        root: person
        fields: [id]
        embed:
          teams:
            many: team
            on: {"member_ids[]": id}
            where: org <> 'x'
            required: true
            order_by: [-org]
            limit: 1
            total: true
            fields: {id: id, of: parent.name}
          count: {many: team, on: {"member_ids[]": id}, value: count(*)}
        """,
    )
    teams = [team(1, org="x", member_ids=[1, 2]), team(2, org="y", member_ids=[1, 1]), team(3, org="z", member_ids=[1])]

    documents = ask(found, {"person": [person(1, name="al"), person(2), person(3)], "team": teams})

    assert documents == {'{"id":1}': {"id": 1, "teams": [{"id": 3, "of": "al"}], "teams_total": 2, "count": 3}}


WORLD = """
    product: teams
    root: team
    fields: [id, org]
    embed:
      members:
        many: person
        on: {id: "member_ids[]"}
        fields: [id, name]
        embed:
          badges: {many: badge, on: {person: id}, strong: true, fields: [id, text]}
      named: {many: person, on: {login: "logins[]"}, strong: STRONG, fields: [login, id]}
      listed: {many: person, on: {login: "members[].login"}, strong: true, value: id}
      allies:
        many: team
        on: {"logins[]": org}
        fields: [id]
        embed:
          lead: {one: person, on: {login: org}, strong: STRONG, value: name}
"""


@pytest.mark.parametrize("strong", ["true", "false"])
@pytest.mark.parametrize("seed", range(8))
def test_any_history_ends_in_the_documents_of_the_sql(postgres_url: str, seed: int, strong: str) -> None:
    found = definitions(TEAMS, WORLD.replace("STRONG", strong))
    rng = Random(seed)
    tables: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in found.entities}
    events: list[tuple[str, Any]] = []
    for _ in range(60):
        entity = rng.choice(list(tables))
        row = drawn(rng, entity)
        if rng.random() < 0.2:
            row = {"id": row["id"]}
            tables[entity].pop(row["id"], None)
        else:
            tables[entity][row["id"]] = row
        events.append((entity, row))

    with oracle(postgres_url, f"lists_{uuid.uuid4().hex[:8]}", found.entities) as postgres:
        postgres.load({name: list(rows.values()) for name, rows in tables.items()})
        documents = postgres.documents(found.products["teams"])

    for size in (None, 1, 7):
        for lag in (0, 30):
            assert published(found, events, size, lag) == documents


def drawn(rng: Random, entity: str) -> dict[str, Any]:
    def some(values: Sequence[Any]) -> list[Any] | None:
        return None if rng.random() < 0.1 else [rng.choice(values) for _ in range(rng.randrange(4))]

    id = rng.randrange(3)
    match entity:
        case "team":
            logins = some("abc")
            members = some([{"login": "a"}, {"login": "b"}, {"login": 1}, {}, None, 5])
            return team(id, org=rng.choice("abc"), member_ids=some([0, 1, 2, None]), logins=logins, members=members)
        case "person":
            return person(id, login=rng.choice(["a", "b", "c", None]), name=rng.choice("xy"))
    return {"id": id, "person": rng.choice([0, 1, 2, None]), "text": rng.choice("uv")}
