"""The edits that the database refuses: all from psql that nobody announced, and from announced edits those that break a rule."""

from itertools import product

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from registry.model import AssignmentState, Requirements, may_follow
from registry.repository import Registry
from tests.integration.registry.by_hand import run, wrong_answers


@pytest.fixture
def filled(registry: Registry, required: Requirements) -> Registry:
    registry.apply(required, who="me", why="first")
    return registry


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
    "a slot past the next one": ("INSERT INTO slots VALUES (7)", "the next one is 6, not 7"),
    "a slot twice": ("INSERT INTO slots VALUES (6), (6)", "the next one is 7, not 6"),
    "more slots than a table can have": ("INSERT INTO slots SELECT generate_series(6, 21)", "slots_of_dynamodb_ck"),
    "a slot removed": ("DELETE FROM slots WHERE slot = 5", "their number only rises"),
    "another number of a slot": ("UPDATE slots SET slot = 6 WHERE slot = 5", "their number only rises"),
    "a version of tomorrow": ("UPDATE meta SET version = version + 5", "by one for each edit"),
    "another edit in the name of the last one": ("UPDATE meta SET version = version + 1", "by one for each edit"),
    "a version that falls": ("UPDATE meta SET version = 0", "the version only rises"),
    "a second registry": ("INSERT INTO meta (one) VALUES (false)", "meta_one_row_ck"),
    "a registry without settings": ("DELETE FROM meta", "the registry needs it"),
    "a state that is none": ("INSERT INTO assignments VALUES ('user', 5, '{email}', 'free')", "assignments_state_ck"),
    "a state out of order": ("UPDATE assignments SET state = 'planned'", "state planned may not follow serving"),
    "an assignment of a column that is not declared": (
        "INSERT INTO assignments VALUES ('user', 5, '{nobody}', 'planned')",
        "entity user declares no column nobody, which GSI_5 uses",
    ),
    "an assignment of folded text of a column that is not declared": (
        "INSERT INTO assignments VALUES ('user', 5, '{nobody::ci}', 'planned')",
        "entity user declares no column nobody::ci, which GSI_5 uses",
    ),
    "an assignment of elements": (
        "INSERT INTO assignments VALUES ('user', 5, '{username[]}', 'planned')",
        "entity user declares no column username",
    ),
    "an assignment of one column twice": (
        "INSERT INTO assignments VALUES ('user', 5, '{email,email}', 'planned')",
        "columns email, email name one twice, and no join asks for that",
    ),
    "a join of a column that is not declared": (
        "INSERT INTO joins (child, child_columns, parent, parent_columns)"
        " VALUES ('star', '{nobody[].id}', 'user', '{username}')",
        "entity star declares no column nobody",
    ),
    "an entity without a column that a slot holds": (
        """UPDATE entities SET columns = '{"email": "string"}' WHERE name = 'user'""",
        "entity user declares no column username",
    ),
    "a key of a column that is not declared": (
        "INSERT INTO entities (name, topic, key, shards, columns, definition) VALUES ('x', 'x', '{id}', 1, '{}', '{}')",
        "entity x declares no column id, which the key uses",
    ),
    "a key of one column twice": (
        "INSERT INTO entities (name, topic, key, shards, columns, definition)"
        """ VALUES ('x', 'x', '{id,id}', 1, '{"id": "int"}', '{}')""",
        "entity x: its key names a column twice",
    ),
    "a topic of an entity and a product": (
        "UPDATE products SET version = 2, topic = 't.user'",
        "two entries have it",
    ),
    "a topic of two entities": ("UPDATE entities SET topic = 't.user' WHERE name = 'repo'", "two entries have it"),
    "an assignment that is used, removed": (
        "DELETE FROM assignments WHERE entity = 'user'",
        "access_paths_entity_slot_fk",
    ),
    "an assignment of other columns": ("UPDATE assignments SET columns = '{email}'", "changes only its state"),
    "an assignment moved": ("UPDATE assignments SET slot = 4 WHERE entity = 'user'", "changes only its state"),
    "a used assignment that does not serve": (
        "UPDATE assignments SET state = 'retiring' WHERE entity = 'user'",
        UNSERVED,
    ),
    "a join without one of its paths": ("DELETE FROM access_paths WHERE direction = 'up'", UNSERVED),
    "a key read that is none": (
        "UPDATE access_paths SET slot = NULL WHERE entity = 'user'",
        "changes only its slot",
    ),
    "a path through a slot of other columns": (
        "UPDATE access_paths SET slot = 2 WHERE direction = 'down' AND entity = 'star'",
        UNSERVED,
    ),
    "a path that asks the wrong side": (
        "UPDATE access_paths SET entity = 'user', slot = 1 WHERE direction = 'down' AND entity = 'star'",
        "changes only its slot",
    ),
    "a join of other columns below its product": (
        "UPDATE joins SET child_columns = '{owner}' WHERE child = 'star'",
        "a join never changes",
    ),
    "a join that is used, removed": ("DELETE FROM joins", "product_joins_join_id_fk"),
    "a product over a join without paths": (
        "WITH bare AS (INSERT INTO joins (child, child_columns, parent, parent_columns)"
        " VALUES ('star', '{owner}', 'user', '{username}') RETURNING id)"
        " INSERT INTO product_joins SELECT 'profile', id, 9 FROM bare; UPDATE products SET version = 2",
        UNSERVED,
    ),
    "another key": ("UPDATE entities SET key = '{username}' WHERE name = 'user'", "never change"),
    "another number of shards": ("UPDATE entities SET shards = 2", "never change"),
    "another type of a key column": (
        """UPDATE entities SET columns = '{"email": "int", "username": "string"}' WHERE name = 'user'""",
        "never change",
    ),
    "an entity that is used, removed": ("DELETE FROM entities WHERE name = 'user'", "_fk"),
    "a history rewritten": ("UPDATE history SET who = 'nobody'", "its rows never change"),
    "a history cut": ("TRUNCATE history", "its rows never change"),
    "entries removed past the history": ("TRUNCATE product_joins", "the history would not show it"),
}


def test_the_database_refuses(filled: Registry, psql: Engine) -> None:
    before = filled.snapshot()
    assert wrong_answers(psql, REFUSED) == {}
    assert filled.snapshot() == before


EDITS = {
    "the joins of a product removed": "DELETE FROM product_joins",
    "the joins removed": "DELETE FROM joins",
    "an assignment removed": "DELETE FROM assignments",
    "an assignment that nobody knows": "INSERT INTO assignments VALUES ('user', 5, '{email}', 'planned')",
    "an assignment of unknown columns": "INSERT INTO assignments VALUES ('user', 5, '{nobody}', 'serving')",
    "another state": "UPDATE assignments SET state = 'retiring'",
    "a path removed": "DELETE FROM access_paths",
    "a version": "UPDATE meta SET version = version + 1, edited_in = 'me'",
    "a version raised by its function": "SELECT edit_version()",
    "a topic of an entity": "UPDATE entities SET topic = 'elsewhere' WHERE name = 'user'",
    "a topic of a product": "UPDATE products SET topic = 'elsewhere'",
    "a definition of an entity": "UPDATE entities SET definition = '{}'",
    "a definition of a product": "UPDATE products SET definition = '{}'",
    "a product removed": "DELETE FROM products",
    "a slot added": "INSERT INTO slots VALUES (6)",
    "an entity removed": "DELETE FROM entities WHERE name = 'repo'",
}


def test_an_edit_that_nobody_announced_is_refused(filled: Registry, psql: Engine) -> None:
    before = filled.snapshot()
    unannounced = "`statestore apply` edits the registry; nothing was changed"
    assert wrong_answers(psql, {what: (edit, unannounced) for what, edit in EDITS.items()}, announced=False) == {}
    assert filled.snapshot() == before


def test_an_announcement_ends_with_its_transaction(filled: Registry, psql: Engine) -> None:
    for announcement in ("SELECT edit_by_hand('why')", "SET statestore.edit = 'on'"):
        with psql.connect() as connection:
            connection.execute(text(announcement))
            connection.commit()
            with pytest.raises(IntegrityError, match="edits the registry"):
                connection.execute(text("UPDATE products SET topic = 'x'"))
    with pytest.raises(IntegrityError, match="give the reason"):
        run(psql, "SELECT edit_by_hand(' ')", announced=False)


LIFE = (*(state for state in AssignmentState if state is not AssignmentState.FREE),)


def test_the_database_knows_the_order_of_states(filled: Registry, psql: Engine) -> None:
    for before, after in product(LIFE, LIFE):
        add = f"INSERT INTO assignments VALUES ('repo', 5, '{{owner}}', '{before}')"
        change = f"UPDATE assignments SET state = '{after}' WHERE entity = 'repo'"
        if before is after or may_follow(before, after):
            run(psql, add, change)
            run(psql, "DELETE FROM assignments WHERE entity = 'repo'")
        else:
            with pytest.raises(IntegrityError, match=f"state {after} may not follow {before}"):
                run(psql, add, change)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO assignments VALUES ('repo', 5, '{owner}', 'serving')", "so it begins as planned"),
        ("DELETE FROM product_joins; DELETE FROM joins; DELETE FROM assignments", "retire it, then free it"),
        (
            "DELETE FROM products; DELETE FROM joins; UPDATE assignments SET state = 'retiring';"
            " DELETE FROM assignments; DELETE FROM entities",
            "a job has run with it",
        ),
    ],
)
def test_slots_and_entities_of_stored_rows_do_not_come_or_go_at_once(
    filled: Registry, psql: Engine, statement: str, message: str
) -> None:
    lease = filled.take_lease("job", "here", 4, take_over=False, expires_after=30)
    filled.applied(lease, 1)
    filled.give_back(lease)
    before = filled.snapshot()
    with pytest.raises(IntegrityError, match=message):
        run(psql, statement)
    assert filled.snapshot() == before


def test_within_a_transaction_a_path_may_be_missing_for_a_moment(filled: Registry, psql: Engine) -> None:
    run(
        psql,
        "CREATE TEMP TABLE saved AS SELECT * FROM access_paths",
        "DELETE FROM access_paths",
        "INSERT INTO access_paths SELECT * FROM saved",
        "DROP TABLE saved",
    )
    assert filled.snapshot().version == 2


def test_an_assignment_that_no_join_uses_may_change_its_state_and_go(filled: Registry, psql: Engine) -> None:
    run(psql, "INSERT INTO assignments VALUES ('repo', 5, '{owner}', 'planned')")
    run(psql, "UPDATE assignments SET state = 'writing' WHERE entity = 'repo'")
    run(psql, "DELETE FROM assignments WHERE entity = 'repo'")
    assert filled.snapshot().version == 4


def test_an_edit_by_psql_is_in_the_history_with_old_and_new(filled: Registry, psql: Engine) -> None:
    run(psql, "UPDATE entities SET topic = 'elsewhere' WHERE name = 'user'")
    run(
        psql,
        "SET LOCAL statestore.who = 'op'",
        "SELECT edit_by_hand('typo')",
        "UPDATE products SET version = 2, topic = 'x'",
    )
    with psql.begin() as connection:
        lines = connection.execute(
            text(
                "SELECT version, who = current_user, who, why, entry, operation, old ->> 'topic', new ->> 'topic'"
                " FROM history WHERE version > 1 ORDER BY id"
            )
        ).all()
    user = lines[0].who
    assert [tuple(line) for line in lines] == [
        (2, True, user, "a test", "entities", "update", "t.user", "elsewhere"),
        (3, False, "op", "typo", "products", "update", "profile", "x"),
    ]


def test_a_column_that_psql_drops_is_remembered_once_rows_may_be_stored(filled: Registry, psql: Engine) -> None:
    add = """UPDATE entities SET dropped = '{"x"\\: "int"}', columns = '{"email"\\: "string", "username"\\: "string"%s}'
        WHERE name = 'user'"""
    run(psql, add % r', "age"\: "int"')
    run(psql, add % "")
    assert filled.snapshot().entities[-1].dropped == {}
    run(psql, add % r', "age"\: "int"')
    lease = filled.take_lease("job", "here", 4, take_over=False, expires_after=30)
    filled.applied(lease, filled.snapshot().version)
    run(psql, add % "")
    assert filled.snapshot().entities[-1].dropped == {"age": "int"}


def test_an_operator_adds_slots_by_psql_as_the_next_version(filled: Registry, psql: Engine) -> None:
    run(psql, "INSERT INTO slots VALUES (6), (7)")
    assert (filled.snapshot().slots, filled.snapshot().version) == (7, 2)
    assert [(one.entry, one.operation, one.new, one.why) for one in filled.history(2)] == [
        ("slots", "insert", {"slot": 7}, "a test"),
        ("slots", "insert", {"slot": 6}, "a test"),
    ]


def test_edits_of_one_transaction_are_one_version_and_an_edit_of_nothing_is_none(
    filled: Registry, psql: Engine
) -> None:
    run(psql, "UPDATE entities SET topic = topic", "DELETE FROM products WHERE name = 'nobody'")
    assert filled.snapshot().version == 1
    run(psql, "UPDATE entities SET topic = topic || 'x'", "UPDATE products SET version = 2, topic = topic || 'x'")
    assert filled.snapshot().version == 2


def test_a_transaction_that_is_rolled_back_raises_no_version(filled: Registry, psql: Engine) -> None:
    with psql.connect() as connection:
        connection.execute(text("SELECT edit_by_hand('a test')"))
        connection.execute(text("UPDATE products SET version = 2, topic = 'x'"))
        connection.rollback()
    run(psql, "UPDATE products SET version = 2, topic = 'y'")
    assert filled.snapshot().version == 2


def test_rules_hold_without_the_schema_on_the_search_path(filled: Registry, psql: Engine, schema: str) -> None:
    added = f"INSERT INTO {schema}.entities (name, topic, key, shards, columns, definition)"
    columns = r"""{"id"\: "int"}"""
    run(psql, "SET LOCAL search_path TO public", f"{added} VALUES ('x', 'x', '{{id}}', 1, '{columns}', '{{}}')")
    with pytest.raises(IntegrityError, match=UNSERVED):
        run(psql, "SET LOCAL search_path TO public", f"DELETE FROM {schema}.access_paths")
    assert filled.snapshot().version == 2
