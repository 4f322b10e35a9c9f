"""Edits by SQL, as an operator makes them with psql."""

import re
from collections.abc import Mapping

from sqlalchemy import Engine, text
from sqlalchemy.exc import DatabaseError


def run(psql: Engine, *statements: str, announced: bool = True) -> None:
    """Runs the statements in a transaction that announces its edit."""
    with psql.begin() as connection:
        if announced:
            connection.execute(text("SELECT edit_by_hand('a test')"))
        for statement in statements:
            connection.execute(text(statement))


def wrong_answers(psql: Engine, refused: Mapping[str, tuple[str, str]], *, announced: bool = True) -> dict[str, str]:
    """The statements that the database does not refuse with their message, by name: each with the answer that it gave. All share
    one registry, which a refused statement leaves as it was."""
    wrong = {}
    for name, (statement, message) in refused.items():
        answer = "the database takes it"
        try:
            run(psql, statement.replace(":", r"\:"), announced=announced)
        except DatabaseError as error:
            answer = str(error).split("[SQL")[0]
        if not re.search(message, answer):
            wrong[name] = answer
    return wrong
