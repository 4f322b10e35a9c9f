"""Random histories of rows that join by arrays, next to strong joins, end in the documents of Postgres."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from tests.integration.product.teams import TEAMS, answered, definitions, person, published, team
from tests.support.sampled import sampled

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
@pytest.mark.parametrize("seed", sampled(range(8), 0, 1, 2))
def test_any_history_ends_in_the_documents_of_the_sql(postgres_url: str, seed: int, strong: str) -> None:
    teams = definitions(TEAMS, WORLD.replace("STRONG", strong))
    rng = Random(seed)
    tables: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in teams.entities}
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

    rows = {name: list(found.values()) for name, found in tables.items()}
    documents = answered(postgres_url, teams, rows)
    for size in (None, 1, 7):
        for lag in (0, 30):
            assert published(teams, events, size, lag) == documents


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
