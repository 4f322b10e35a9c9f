"""Filters, aggregates and order of list joins: documents by hand, by the steps, and by Postgres."""

import pytest

from tests.integration.product.teams import TEAMS, Ask, asking, definitions, person, team


@pytest.fixture
def ask(postgres_url: str) -> Ask:
    return asking(postgres_url)


def test_an_element_whose_row_does_not_count_has_no_row_and_required_leaves_it_out(ask: Ask) -> None:
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


def test_aggregates_over_a_list_join_take_a_row_once_for_each_element_that_finds_it(ask: Ask) -> None:
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
