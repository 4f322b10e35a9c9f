"""Joins by edges in the database: a job reads them as applied, and psql cannot break them."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from processor.engine.plan.planning import plan_of, requirements_of
from processor.language.definitions.load import load
from registry.model import EdgePath, KeyPath, Requirements
from registry.repository import Registry

ENTITIES = """
team: {key: [id], columns: {id: int, org: string, people: "json[]"}}
person: {key: [id], columns: {id: int, org: string}}
"""
PRODUCT = """
product: teams
root: team
embed:
  members: {many: person, on: {id: "people[].id"}}
  allies: {many: person, on: {org: org}, strong: true}
"""
MORE = """
product: people
root: person
embed: {teams: {many: team, on: {"people[].name": org}, strong: true}}
"""


def required(*products: str) -> Requirements:
    texts = {f"{n}.yaml": product for n, product in enumerate(products)}
    return requirements_of(load({"entities.yaml": ENTITIES, **texts}))


def test_a_job_reads_the_edges_that_were_applied(registry: Registry) -> None:
    registry.apply(required(PRODUCT), who="me", why="first")
    assert registry.apply(required(PRODUCT), who="me", why="again").changes == ()
    snapshot = registry.snapshot()
    compiled = plan_of(snapshot)

    assert snapshot.assignments == ()
    assert compiled.entities["team"].edges == {
        "people[].id::number": ("people[].id::number",),
        "org": ("org",),
    }
    assert compiled.entities["person"].edges == {"org": ("org",)}
    assert compiled.entities["team"].slots == {}
    members, allies = compiled.products["teams"].nodes
    people = EdgePath(entity="team", fields=("people[].id::number",))
    assert (members.down, members.up) == (KeyPath(), people)
    assert allies.down == EdgePath(entity=allies.join.entity, fields=("org",))
    assert allies.up == EdgePath(entity="team", fields=("org",))


def test_a_product_waits_for_new_edges_of_stored_rows(registry: Registry) -> None:
    registry.apply(required(PRODUCT), who="me", why="first")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, registry.snapshot().version)
    registry.apply(required(PRODUCT, MORE), who="me", why="second")
    found = registry.snapshot()
    assert [one.name for one in found.waiting] == ["people"]
    assert ("people[].name::string",) in {path.fields for path in found.edge_paths()}
    assert {one.name: one.layout for one in found.entities} == {"person": 1, "team": 2}


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE access_paths SET edges = '{id}' WHERE edges = '{org}'",
        "UPDATE access_paths SET edges = NULL WHERE edges = '{org}'",
        "UPDATE access_paths SET slot = 1 WHERE edges IS NOT NULL",
    ],
)
def test_psql_takes_no_edges_from_a_join_that_needs_them(registry: Registry, psql: Engine, edit: str) -> None:
    registry.apply(required(PRODUCT), who="me", why="first")
    with pytest.raises(IntegrityError, match="changes only its slot"), psql.begin() as connection:
        connection.execute(text(f"SELECT edit_by_hand('a test'); {edit}"))
