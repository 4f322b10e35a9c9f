"""What the database refuses, whoever edits: operators also use psql."""

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from registry.model import Plan
from registry.repository import Registry


@pytest.fixture
def filled(registry: Registry, plan: Plan) -> Registry:
    registry.apply(plan, who="me", why="first")
    return registry


def run(psql: Engine, *statements: str) -> None:
    with psql.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


UNSERVED = "is not served"
REFUSED = {
    "two assignments on one slot": (
        "INSERT INTO assignments VALUES ('user', 1, '{email}', 'serving')",
        "assignments_pk",
    ),
    "the same columns twice": (
        "INSERT INTO assignments VALUES ('star', 3, '{repo,owner}', 'serving')",
        "assignments_columns_ix",
    ),
    "slot 0": ("INSERT INTO assignments VALUES ('user', 0, '{email}', 'serving')", "assignments_slot_fk"),
    "slot n + 1": ("INSERT INTO assignments VALUES ('user', 6, '{email}', 'serving')", "assignments_slot_fk"),
    "a slot more than the table has": ("INSERT INTO slots VALUES (6)", "their number never changes"),
    "another n": ("UPDATE meta SET slots = 6", "the number of slots never changes"),
    "a version that falls": ("UPDATE meta SET version = 0", "the version only rises"),
    "a second registry": ("INSERT INTO meta (one, slots) VALUES (false, 5)", "meta_one_row_ck"),
    "a registry without settings": ("DELETE FROM meta", "the registry needs it"),
    "a state that is none": ("UPDATE assignments SET state = 'free'", "assignments_state_ck"),
    "an assignment that is used, removed": (
        "DELETE FROM assignments WHERE entity = 'user'",
        "access_paths_entity_slot_fk",
    ),
    "an assignment of other columns": ("UPDATE assignments SET columns = '{email}'", "changes only its state"),
    "an assignment moved": ("UPDATE assignments SET slot = 4 WHERE entity = 'user'", "changes only its state"),
    "a used assignment that does not serve": (
        "UPDATE assignments SET state = 'backfilling' WHERE entity = 'user'",
        UNSERVED,
    ),
    "a join without one of its paths": ("DELETE FROM access_paths WHERE direction = 'up'", UNSERVED),
    "a key read that is none": ("UPDATE access_paths SET slot = NULL WHERE entity = 'user'", UNSERVED),
    "a path through a slot of other columns": (
        "UPDATE access_paths SET slot = 2 WHERE direction = 'down' AND entity = 'star'",
        UNSERVED,
    ),
    "a path that asks the wrong side": (
        "UPDATE access_paths SET entity = 'user', slot = 1 WHERE direction = 'down' AND entity = 'star'",
        UNSERVED,
    ),
    "a join of other columns below its product": (
        "UPDATE joins SET child_columns = '{owner}' WHERE child = 'star'",
        UNSERVED,
    ),
    "a join that is used, removed": ("DELETE FROM joins", "product_joins_join_id_fk"),
    "a product over a join without paths": (
        "WITH bare AS (INSERT INTO joins (child, child_columns, parent, parent_columns)"
        " VALUES ('star', '{owner}', 'user', '{username}') RETURNING id)"
        " INSERT INTO product_joins SELECT 'profile', id, 9 FROM bare",
        UNSERVED,
    ),
    "another key": ("UPDATE entities SET key = '{username}' WHERE name = 'user'", "never change"),
    "another number of shards": ("UPDATE entities SET shards = 2", "never change"),
    "another type of a key column": (
        """UPDATE entities SET columns = '{"email": "int"}' WHERE name = 'user'""",
        "never change",
    ),
    "an entity that is used, removed": ("DELETE FROM entities WHERE name = 'user'", "_fk"),
    "a history rewritten": ("UPDATE history SET who = 'nobody'", "only added to"),
    "a history cut": ("TRUNCATE history", "only added to"),
    "entries removed past the history": ("TRUNCATE product_joins", "the history would not show it"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_database_refuses(filled: Registry, psql: Engine, what: str) -> None:
    statement, says = REFUSED[what]
    before = filled.snapshot()
    with pytest.raises(IntegrityError, match=says):
        run(psql, statement.replace(":", r"\:"))
    assert filled.snapshot() == before


def test_within_a_transaction_a_path_may_be_missing_for_a_moment(filled: Registry, psql: Engine) -> None:
    run(
        psql,
        "CREATE TEMP TABLE kept AS SELECT * FROM access_paths",
        "DELETE FROM access_paths",
        "INSERT INTO access_paths SELECT * FROM kept",
        "DROP TABLE kept",
    )
    assert filled.snapshot().version == 2


def test_an_assignment_that_no_join_uses_may_change_its_state_and_go(filled: Registry, psql: Engine) -> None:
    run(psql, "INSERT INTO assignments VALUES ('repo', 5, '{owner}', 'planned')")
    run(psql, "UPDATE assignments SET state = 'writing' WHERE entity = 'repo'")
    run(psql, "DELETE FROM assignments WHERE entity = 'repo'")
    assert filled.snapshot().version == 4


def test_an_edit_by_psql_is_in_the_history_with_old_and_new(filled: Registry, psql: Engine) -> None:
    run(psql, "UPDATE entities SET topic = 'elsewhere' WHERE name = 'user'")
    run(psql, "SET LOCAL statestore.who = 'op'", "SET LOCAL statestore.why = 'typo'", "UPDATE products SET topic = 'x'")
    with psql.begin() as connection:
        lines = connection.execute(
            text(
                "SELECT version, who = current_user, who, why, entry, operation, old ->> 'topic', new ->> 'topic'"
                " FROM history WHERE version > 1 ORDER BY id"
            )
        ).all()
    user = lines[0].who
    assert [tuple(line) for line in lines] == [
        (2, True, user, None, "entities", "update", "t.user", "elsewhere"),
        (3, False, "op", "typo", "products", "update", "profile", "x"),
    ]


def test_edits_of_one_transaction_are_one_version_and_an_edit_of_nothing_is_none(
    filled: Registry, psql: Engine
) -> None:
    run(psql, "UPDATE entities SET topic = topic", "DELETE FROM products WHERE name = 'nobody'")
    assert filled.snapshot().version == 1
    run(psql, "UPDATE entities SET topic = topic || 'x'", "UPDATE products SET topic = topic || 'x'")
    assert filled.snapshot().version == 2


def test_a_transaction_that_is_rolled_back_raises_no_version(filled: Registry, psql: Engine) -> None:
    with psql.connect() as connection:
        connection.execute(text("UPDATE products SET topic = 'x'"))
        connection.rollback()
    run(psql, "UPDATE products SET topic = 'y'")
    assert filled.snapshot().version == 2


def test_rules_hold_without_the_schema_on_the_search_path(filled: Registry, psql: Engine, schema: str) -> None:
    added = f"INSERT INTO {schema}.entities (name, topic, key, shards, columns, definition)"
    run(psql, "SET LOCAL search_path TO public", f"{added} VALUES ('x', 'x', '{{id}}', 1, '{{}}', '{{}}')")
    with pytest.raises(IntegrityError, match=UNSERVED):
        run(psql, "SET LOCAL search_path TO public", f"DELETE FROM {schema}.access_paths")
    assert filled.snapshot().version == 2
