"""Edits by SQL, as an operator makes them with psql."""

from sqlalchemy import Engine, text


def run(psql: Engine, *statements: str, announced: bool = True) -> None:
    """Runs the statements in a transaction that announces its edit."""
    with psql.begin() as connection:
        if announced:
            connection.execute(text("SELECT edit_by_hand('a test')"))
        for statement in statements:
            connection.execute(text(statement))
