"""List joins find rows in both directions: documents by hand, by the steps, and by the product's SQL in Postgres."""

from typing import Any

import pytest

from processor.values import canonical_json
from tests.integration.product.teams import TEAMS, Ask, asking, definitions, person, team


@pytest.fixture
def ask(postgres_url: str) -> Ask:
    return asking(postgres_url)


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

    nobody: dict[str, Any] = {"members": [], "names": [], "ids": []}
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


def test_a_json_column_joins_by_the_elements_that_its_array_has(ask: Ask) -> None:
    """Json of another kind than an array has no elements: an object, a text, a number, null."""
    found = definitions(
        """
        team: {key: [id], columns: {id: int, data: json, refs: "json(text)"}}
        person: {key: [id], columns: {id: int, login: string, name: string}}
        """,
        """
        product: teams
        root: team
        fields: [id]
        embed:
          by_id: {many: person, on: {id: "data[]"}, value: name}
          by_login: {many: person, on: {login: "refs[].login"}, fields: [login, name]}
        """,
    )
    values = [[3, "3", {"login": "b"}, None, 2], {"a": 3}, 3, "[3]", None, []]
    logins = [[{"login": "b"}, {"x": 1}, "b"], {"login": "b"}, 1, False, None, [{"login": 3}]]
    rows = {
        "team": [{"id": n, "data": v, "refs": r} for n, (v, r) in enumerate(zip(values, logins, strict=True))],
        "person": [person(2, name="bo", login="a"), person(3, name="cy", login="b")],
    }

    documents = ask(found, rows)

    cy, nobody = {"login": "b", "name": "cy"}, {"login": None, "name": None}
    assert documents['{"id":0}'] == {
        "id": 0,
        "by_id": ["cy", None, None, None, "bo"],
        "by_login": [cy, nobody, nobody],
    }
    assert documents['{"id":1}'] == {"id": 1, "by_id": [], "by_login": []}
    assert documents['{"id":5}'] == {"id": 5, "by_id": [], "by_login": [{"login": 3, "name": None}]}
    assert len(documents) == len(values)


def test_rows_whose_json_array_has_the_value_join_below_it(ask: Ask) -> None:
    found = definitions(
        """
        team: {key: [id], columns: {id: int, data: json}}
        person: {key: [id], columns: {id: int, login: string}}
        """,
        """
        product: people
        root: person
        fields: [id]
        embed:
          teams: {many: team, on: {"data[]": login}, value: id}
          owned: {many: team, on: {"data[].owner": id}, value: id}
        """,
    )
    teams = [{"id": 1, "data": ["a", {"owner": 7}]}, {"id": 2, "data": {"owner": 7}}, {"id": 3, "data": "a"}]
    documents = ask(found, {"team": teams, "person": [{"id": 7, "login": "a"}, {"id": 8, "login": "owner"}]})
    assert documents == {
        '{"id":7}': {"id": 7, "teams": [1], "owned": [1]},
        '{"id":8}': {"id": 8, "teams": [], "owned": []},
    }


def test_several_rows_of_an_element_come_at_its_position_in_key_order(ask: Ask) -> None:
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


def test_joins_below_an_element_without_a_row_are_empty(ask: Ask) -> None:
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
