"""Waiting products in the database: psql cannot break them, and the layout follows psql's edits too."""

import pytest
from sqlalchemy import Engine

from registry.edits import operations
from registry.edits.edit import Signature
from registry.errors import RegistryRefused
from registry.model import Requirements
from registry.repository import Registry
from tests.integration.registry.by_hand import run, wrong_answers


@pytest.fixture
def waiting(registry: Registry, required: Requirements, more: Requirements) -> Registry:
    """A registry whose product waits as version 2, for a planned slot of `repo`. No job is alive."""
    registry.apply(required, who="me", why="first")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    registry.applied(lease, 1)
    registry.give_back(lease)
    registry.apply(more, who="me", why="one more join")
    return registry


JOB = (
    "UPDATE leases SET owner = 'here', renewed_at = '2026-01-01';"
    "SELECT set_config('statestore.run', job || '#' || generation, true) FROM leases"
)
"""Makes the transaction one of a run that holds the lease, and that needs no step to wait for it."""
REFUSED = {
    "a join of a waiting product without one of its paths": (
        "DELETE FROM access_paths WHERE direction = 'down' AND entity = 'repo' AND slot IS NOT NULL",
        "product profile: join .* is not served",
    ),
    "a slot that a waiting product needs retires": (
        "UPDATE assignments SET state = 'writing' WHERE entity = 'repo';"
        "UPDATE assignments SET state = 'retiring' WHERE entity = 'repo'",
        "product profile: join .* is not served",
    ),
    "a slot that a waiting product needs, removed": (
        "DELETE FROM assignments WHERE entity = 'repo'",
        "access_paths_entity_slot_fk",
    ),
    "a join of a waiting product, removed": (
        "DELETE FROM joins WHERE child = 'repo' AND child_columns = '{owner}'",
        "waiting_joins_join_id_fk",
    ),
    "a live product over a slot that does not serve": (
        "INSERT INTO product_joins SELECT 'profile', join_id, 9 FROM waiting_joins ON CONFLICT DO NOTHING;"
        "UPDATE products SET version = 2",
        "is not served",
    ),
    "a waiting product with an entity's topic": (
        "UPDATE waiting_products SET version = 3, topic = 't.repo'",
        "topic t.repo: two entries have it",
    ),
    "another product with a waiting product's topic": (
        "UPDATE waiting_products SET version = 3, topic = 'next';"
        "INSERT INTO products (name, topic, root, definition, version) VALUES ('x', 'next', 'user', '{}', 1)",
        "topic next: two entries have it",
    ),
    "a waiting product of an unknown root": ("UPDATE waiting_products SET root = 'nobody'", "waiting_products_root_fk"),
    "another root of a live product": (
        "UPDATE products SET root = 'star'",
        "its root never changes once a job has run with user",
    ),
    "the switch of all work, removed": ("DELETE FROM work", "the registry needs it"),
    "a second switch of all work": ("INSERT INTO work VALUES (false, true)", "work_one_row_ck"),
    "two slots that serve with the same columns": (
        "INSERT INTO assignments VALUES ('star', 5, '{username}', 'planned');"
        f"{JOB};"
        "UPDATE assignments SET state = 'writing' WHERE slot = 5;"
        "UPDATE assignments SET state = 'backfilling' WHERE slot = 5;"
        "UPDATE assignments SET state = 'serving' WHERE slot = 5",
        "assignments_columns_ix",
    ),
    "a slot that serves before the job has filled it": (
        "UPDATE assignments SET state = 'writing' WHERE entity = 'repo';"
        "UPDATE assignments SET state = 'backfilling' WHERE entity = 'repo';"
        "UPDATE assignments SET state = 'serving' WHERE entity = 'repo'",
        "only the job knows when every stored row has the slot",
    ),
    "waiting products removed past the history": ("TRUNCATE waiting_joins", "the history would not show it"),
}


def test_the_database_refuses(waiting: Registry, psql: Engine) -> None:
    before = waiting.snapshot()
    assert wrong_answers(psql, REFUSED) == {}
    assert waiting.snapshot() == before


UNANNOUNCED = {
    "DELETE FROM waiting_products": "edits the registry",
    "DELETE FROM waiting_joins": "edits the registry",
    "UPDATE work SET paused = true": "edits the registry",
    "UPDATE products SET paused = true": "edits the registry",
    "UPDATE waiting_products SET paused = true": "edits the registry",
    "UPDATE layouts SET version = 9": "keep it",
}


def test_an_edit_that_nobody_announced_is_refused(waiting: Registry, psql: Engine) -> None:
    before = waiting.snapshot()
    refused = {statement: (statement, message) for statement, message in UNANNOUNCED.items()}
    assert wrong_answers(psql, refused, announced=False) == {}
    assert waiting.snapshot() == before


def test_a_product_goes_live_with_the_version_that_it_waits_with(waiting: Registry, psql: Engine) -> None:
    run(
        psql,
        *JOB.split(";"),
        "UPDATE assignments SET state = 'writing' WHERE entity = 'repo'",
        "UPDATE assignments SET state = 'backfilling' WHERE entity = 'repo'",
        "UPDATE assignments SET state = 'serving' WHERE entity = 'repo'",
        "INSERT INTO product_joins SELECT product, join_id, position FROM waiting_joins ON CONFLICT DO NOTHING",
        "UPDATE products SET version = 2",
        "DELETE FROM waiting_products",
    )
    found = waiting.snapshot()
    assert [(one.version, len(one.joins)) for one in found.products] == [(2, 3)]
    assert found.waiting == ()


@pytest.mark.parametrize(
    ("statement", "rises"),
    [
        ("UPDATE assignments SET state = 'writing' WHERE entity = 'repo'", {"repo"}),
        ("INSERT INTO assignments VALUES ('repo', 3, '{name}', 'planned')", set()),
        ("DELETE FROM waiting_products", set()),
        ("UPDATE entities SET topic = topic || 'x'", set()),
        (
            "INSERT INTO joins (child, child_columns, parent, parent_columns, strong)"
            " VALUES ('repo', '{owner}', 'star', '{owner}', true);"
            "INSERT INTO access_paths SELECT max(id), 'up', 'star', NULL, '{owner}' FROM joins;"
            "INSERT INTO access_paths SELECT max(id), 'down', 'repo', NULL, '{owner}' FROM joins",
            {"repo", "star"},
        ),
    ],
)
def test_the_layout_rises_with_the_edits_of_psql_that_change_what_rows_have(
    waiting: Registry, psql: Engine, statement: str, rises: set[str]
) -> None:
    run(psql, statement)
    found = waiting.snapshot()
    assert found.version == 3
    assert {one.name for one in found.entities if one.layout == 3} == rises


def test_an_entity_goes_with_its_layout(registry: Registry, psql: Engine, wider: Requirements) -> None:
    registry.apply(wider, who="me", why="first")
    run(
        psql,
        "DELETE FROM products",
        "DELETE FROM joins",
        "DELETE FROM assignments",
        "DELETE FROM entities",
    )
    registry.apply(wider, who="me", why="again")
    assert {one.layout for one in registry.snapshot().entities} == {3}


def test_a_refused_step_of_an_operator_names_the_job(waiting: Registry, psql: Engine) -> None:
    lease = waiting.take_lease("job", "there", 4, take_over=False, expires_after=60)
    run(psql, "INSERT INTO assignments VALUES ('user', 5, '{email}', 'planned')")
    waiting.applied(lease, 3)
    run(psql, "UPDATE assignments SET state = 'writing' WHERE slot = 5")
    with pytest.raises(RegistryRefused, match="job job has not applied registry version 4"):
        waiting.operate(Signature("op", "x"), operations.retire, "user", 5)
