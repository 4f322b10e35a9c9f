"""What if psql changes only this? Every table and every column of the registry has an answer here.

REFUSED      the database refuses it, with this message
KEPT         a trigger puts the former value back
VERSION      an edit like any other: it raises the version, and each job takes it
DIFFERS      each job refuses the version and names the entry, because the entry differs from its definition
FREE         no document depends on it: the job or the next verb writes it again
"""

import re
from typing import NamedTuple

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DatabaseError

from processor.engine.plan.planning import plan_of, requirements_of
from processor.errors import PlanError
from processor.language.definitions.load import load
from registry.model import KeptLetter, LetterPosition
from registry.repository import Registry
from registry.repository.rows import read
from registry.tables import metadata
from tests.integration.registry.by_hand import run

KEPT, VERSION, DIFFERS, FREE = "kept", "version", "differs from its definition", "free"
FENCE, RUN, PRODUCT, DERIVED = "never fall", "only rise", "keeps its topic", "the triggers of edits keep it"


class Lone(NamedTuple):
    """A change of one column. `value`: its new value, as SQL; `answer`: as above, or the message of the refusal; `where`: of
    which rows."""

    value: str
    answer: str
    where: str = "true"


ONE_PATH = "direction = 'down' AND edges IS NULL AND slot IS NOT NULL"
COLUMNS: dict[str, dict[str, Lone]] = {
    "meta": {
        "one": Lone("false", "by one for each edit"),
        "version": Lone("version + 1", "by one for each edit"),
        "edited_in": Lone("'me'", "by one for each edit"),
        "identity": Lone("'other'", FREE),  # the next start compares it with the table
        "job": Lone("'other'", FREE),
        "table_name": Lone("'other'", FREE),
    },
    "slots": {"slot": Lone("slot + 9", "their number only rises")},
    "entities": {
        "name": Lone("'x'", "never change", "name = 'star'"),
        "topic": Lone("'elsewhere'", DIFFERS, "name = 'star'"),
        "key": Lone("'{who}'", "never change", "name = 'star'"),
        "shards": Lone("2", "never change"),
        "columns": Lone("""'{"id":"int","who":"string","note":"int"}'""", DIFFERS, "name = 'star'"),
        "dropped": Lone("""'{"x":"int"}'""", KEPT),
        "definition": Lone(
            """'{"key":["id"],"columns":{"id":"int","who":"string","note":"string","x":"int"}}'""",
            DIFFERS,
            "name = 'star'",
        ),
        "created_version": Lone("created_version + 9", "never change"),
    },
    "layouts": {"entity": Lone("'x'", DERIVED), "version": Lone("version + 1", DERIVED)},
    "assignments": {
        "entity": Lone("'star'", "changes only its state", "entity = 'user'"),
        "slot": Lone("5", "changes only its state", "entity = 'user'"),
        "columns": Lone("'{id}'", "changes only its state", "entity = 'user'"),
        "state": Lone("'retiring'", "is not served", "entity = 'user' AND slot = 1"),
        "changed_version": Lone("changed_version + 9", KEPT),
    },
    "joins": {
        column: Lone(value, "never change|can only be updated to DEFAULT", "child = 'star'")
        for column, value in {
            "id": "id + 9",
            "child": "'user'",
            "child_columns": "'{note}'",
            "parent": "'star'",
            "parent_columns": "'{id}'",
            "strong": "NOT strong",
        }.items()
    },
    "access_paths": {
        "join_id": Lone("join_id + 9", "changes only its slot", ONE_PATH),
        "direction": Lone("'up'", "changes only its slot", ONE_PATH),
        "entity": Lone("'user'", "changes only its slot", ONE_PATH),
        "slot": Lone("5", "_fk", ONE_PATH),
        "edges": Lone("'{who}'", "changes only its slot", ONE_PATH),
    },
    "products": {
        "name": Lone("'x'", "_fk|its name never changes"),
        "topic": Lone("'elsewhere'", PRODUCT),
        "root": Lone("'star'", "its root never changes|keeps its topic"),
        "definition": Lone("""'{"product":"stars","root":"user","fields":["id"],"where":"id > 3"}'""", PRODUCT),
        "version": Lone("version + 9", VERSION),  # the job publishes each document again
        "paused": Lone("NOT paused", VERSION),
        "retracted": Lone("NOT retracted", PRODUCT),
    },
    "product_joins": {
        "product": Lone("'x'", "_fk|its joins change only with its version"),
        "join_id": Lone("join_id + 9", "_fk|its joins change only with its version"),
        "position": Lone("position + 9", "its joins change only with its version"),
    },
    "waiting_products": {
        "name": Lone("'x'", "_fk|its name never changes"),
        "topic": Lone("'elsewhere'", PRODUCT),
        "root": Lone("'star'", PRODUCT),
        "definition": Lone("""'{"product":"stars","root":"user","fields":["id"],"where":"id > 3"}'""", PRODUCT),
        "version": Lone("version + 9", VERSION),
        "paused": Lone("NOT paused", VERSION),
    },
    "waiting_joins": {
        "product": Lone("'x'", "_fk|its joins change only with its version"),
        "join_id": Lone("join_id + 9", "_fk|its joins change only with its version"),
        "position": Lone("position + 9", "its joins change only with its version"),
    },
    "product_versions": {"product": Lone("'x'", DERIVED), "version": Lone("version + 1", DERIVED)},
    "ledger_numbers": {
        "root": Lone("'x'", DERIVED),
        "product": Lone("'x'", DERIVED),
        "number": Lone("number + 1", DERIVED),
    },
    "work": {
        "one": Lone("false", "work_one_row_ck"),
        "paused": Lone("NOT paused", VERSION),
        "paused_topics": Lone("'{star}'", VERSION),
    },
    "walk_progress": {
        "walk": Lone("'fill x'", FREE),
        "rows": Lone("9", FREE),
        "written": Lone("9", FREE),
        "of": Lone("9", FREE),
        "done": Lone("NOT done", FREE),
        "seconds": Lone("9", FREE),
    },
    "history": {column.name: Lone("DEFAULT", "its rows never change") for column in metadata.tables["history"].columns},
    "epochs": {
        column.name: Lone("DEFAULT", "a boundary never changes") for column in metadata.tables["epochs"].columns
    },
    "leases": {
        "job": Lone("'x'", FENCE),
        "generation": Lone("generation - 1", FENCE),
        "owner": Lone("'x'", FREE),  # the run loses its lease
        "acquired_at": Lone("now()", FREE),
        "renewed_at": Lone("'2020-01-01'", FREE),  # another run may take the lease, and fences this one
        "expires_after": Lone("1", FREE),
        "lanes": Lone("lanes - 1", FENCE),
        "applied_version": Lone("NULL", FENCE),
        "report": Lone("NULL", FREE),
        "reported_at": Lone("NULL", FREE),
        "ended_run": Lone("9", FREE),  # the next start compares it with the table
        "ended_round": Lone("9", FREE),
        "ended": Lone("NULL", FREE),
        "past": Lone("NULL", FREE),  # the registry forgets that runs failed
    },
    "attempts": {
        "job": Lone("'x'", RUN),
        "lane": Lone("lane + 1", RUN),
        "generation": Lone("generation - 1", RUN),
        "round": Lone("round - 1", RUN),
        "attempt": Lone("attempt - 1", RUN),
    },
    "replay_requests": {  # the table of rows remembers which letters were replayed
        "id": Lone("DEFAULT", "_fk"),
        "who": Lone("'x'", FREE),
        "why": Lone("'x'", FREE),
        "at": Lone("'2020-01-01'", FREE),
        "state": Lone("'withdrawn'", FREE),
        "act": Lone("'drop'", FREE),
        "selection": Lone("'x'", FREE),
        "ended_at": Lone("now()", FREE),
    },
    "replay_letters": {
        "request": Lone("request + 9", "_fk"),
        "topic": Lone("'x'", FREE),  # of no letter: the job refuses it
        "partition": Lone("9", FREE),
        "offset": Lone("9", FREE),
        "epoch": Lone("9", FREE),
        "outcome": Lone("'applied'", FREE),
        "reason": Lone("'x'", FREE),
    },
    "dead_letters": {  # the next `dead-letters list` corrects it
        "topic": Lone("'x'", FREE),
        "partition": Lone("9", FREE),
        "offset": Lone("9", FREE),
        "mark": Lone("'x'", FREE),
        "epoch": Lone("9", FREE),
        "code": Lone("'x'", FREE),
        "column": Lone("'x'", FREE),
        "entity": Lone("'x'", FREE),
        "first_seen": Lone("9", FREE),
        "last_seen": Lone("9", FREE),
        "outcome": Lone("'applied'", FREE),
    },
    "landings": {  # its next process writes the row again
        "id": Lone("'x'", FREE),
        "product": Lone("'x'", FREE),
        "topic": Lone("'x'", FREE),
        "place": Lone("'x'", FREE),
        "made_at": Lone("'2020-01-01'", FREE),
        "seen_at": Lone("'2020-01-01'", FREE),
    },
    "entity_statistics": {
        "entity": Lone("'star'", FREE),
        "taken_at": Lone("now()", FREE),
        "rows": Lone("9", FREE),
        "mean_bytes": Lone("9", FREE),
        "most_bytes": Lone("9", FREE),
        "entry_bytes": Lone("9", FREE),
        "undeclared_bytes": Lone("9", FREE),
    },
    "join_statistics": {
        "join_id": Lone("join_id + 9", "_fk"),
        "direction": Lone("'up'", FREE),
        "mean": Lone("9", FREE),
        "most": Lone("9", FREE),
        "value": Lone("'x'", FREE),
    },
}
REMOVED = {
    "meta": "the registry needs it",
    "slots": "their number only rises",
    "entities": "_fk|a job has run with it",
    "layouts": DERIVED,
    "assignments": "_fk|retire it, then free it",
    "joins": "_fk",
    "access_paths": "is not served",
    "products": VERSION,  # as `remove` without --tombstones
    "product_joins": "its joins change only with its version",
    "waiting_products": VERSION,
    "waiting_joins": "its joins change only with its version",
    "product_versions": DERIVED,
    "ledger_numbers": DERIVED,
    "work": "the registry needs it",
    "walk_progress": FREE,
    "history": "its rows never change",
    "epochs": "a boundary never changes",
    "leases": "it keeps earlier runs away",
    "attempts": "it keeps earlier runs away",
    "replay_requests": FREE,
    "replay_letters": FREE,
    "dead_letters": FREE,
    "landings": FREE,
    "entity_statistics": FREE,
    "join_statistics": FREE,
}
"""The answers for rows that psql removes."""
ENTITIES = "{user: {key: [id], columns: {id: int, name: string, note: string}},\n star: {key: [id], columns: %s}}"
OF_STARS = "{id: int, who: string, note: string}"
STARS = "{product: stars, root: user, fields: [id], embed: {stars: {many: star, on: {%s}, fields: [id]}}}"


@pytest.fixture
def filled(registry: Registry, psql: Engine) -> Registry:
    """A registry with a row in every table: a job has run, and a second version of its product waits."""

    def apply(on: str) -> None:
        texts = {"entities.yaml": ENTITIES % OF_STARS, "products/stars.yaml": STARS % on}
        registry.apply(requirements_of(load(texts)), who="me", why="first")

    apply("who: name")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, 1)
    assert [registry.begin_attempt(lease, 1, 1) for _ in range(2)] == [0, 1]
    apply("note: note")
    registry.applied(lease, 2)
    registry.replays.ask([LetterPosition("star", 0, 5, 1)], who="me")
    registry.letters.keep([KeptLetter(LetterPosition("star", 0, 5, 1), "f00", "not-json", "", "star", 1.0)])
    registry.landings.note("f00", product="stars", topic="stars", place="table stars at host:5432/db")
    run(
        psql,
        "INSERT INTO epochs VALUES ('star', 'id', 0, 0, 1)",
        "INSERT INTO walk_progress VALUES ('fill star', 1, 1, 1, false, 1)",
        "INSERT INTO entity_statistics VALUES ('user', now(), 1, 1, 1)",
        "INSERT INTO join_statistics SELECT min(id), 'down', 1, 1, 'x' FROM joins",
    )
    return registry


def test_every_table_and_every_column_has_an_answer() -> None:
    columns = {name: [column.name for column in table.columns] for name, table in metadata.tables.items()}
    assert {name: list(answers) for name, answers in COLUMNS.items()} == columns
    assert REMOVED.keys() == columns.keys()


def test_a_change_of_one_column_has_its_answer(filled: Registry, psql: Engine) -> None:
    wrong = {}
    for table, columns in COLUMNS.items():
        for column, lone in columns.items():
            statement = f'UPDATE {table} SET "{column}" = {lone.value} WHERE {lone.where}'
            wrong[table, column] = _answer(filled, psql, statement, lone.answer)
    assert {place: answer for place, answer in wrong.items() if answer is not None} == {}


def test_a_removal_of_the_rows_of_one_table_has_its_answer(filled: Registry, psql: Engine) -> None:
    wrong = {table: _answer(filled, psql, f"DELETE FROM {table}", answer) for table, answer in REMOVED.items()}
    assert {table: answer for table, answer in wrong.items() if answer is not None} == {}


def _answer(registry: Registry, psql: Engine, statement: str, answer: str) -> str | None:
    """What is wrong with the database's answer to an announced statement; None if the answer is as expected. The next
    statement finds the registry as it was."""
    before = registry.snapshot()
    rows = text(f"SELECT to_jsonb(one) FROM {_table_of(statement)} AS one")
    with psql.connect() as connection:
        connection.execute(text("SELECT edit_by_hand('a test')"))
        had = connection.scalars(rows).all()
        assert had, "the table is empty"
        try:
            changed = connection.execute(text(statement.replace(":", r"\:")))
            connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
        except DatabaseError as error:
            return None if re.search(answer, str(error)) else str(error).split("[SQL")[0]
        assert changed.rowcount, f"{statement} changed no row"
        after = read(connection)
        if answer == VERSION:
            plan_of(after)
            return None if after.version == before.version + 1 else "it raises no version"
        if answer == DIFFERS:
            with pytest.raises(PlanError, match=DIFFERS):
                plan_of(after)
            return None
        if answer == KEPT:
            return None if connection.scalars(rows).all() == had else "no trigger puts the former value back"
        return None if answer == FREE and after == before else "the database takes it"


def _table_of(statement: str) -> str:
    return statement.removeprefix("DELETE FROM ").removeprefix("UPDATE ").split()[0]
