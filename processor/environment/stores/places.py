"""The table as the registry names it: `statestore` in DynamoDB, `postgres:statestore` in Postgres. Pure."""

FIRST = "dynamodb"
"""The kind whose tables have no prefix: the registry knew only this kind when it got the column."""


def place_of(kind: str, table: str) -> str:
    """The name of a table in the registry."""
    return table if kind == FIRST else f"{kind}:{table}"


def kind_and_table(place: str) -> tuple[str, str]:
    """The kind and the table that the registry names."""
    kind, _, table = place.rpartition(":")
    return kind or FIRST, table
