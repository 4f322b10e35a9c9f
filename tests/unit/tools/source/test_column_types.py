"""The type that a draft declares for an SQL type, compared with each row of the captured types."""

from itertools import product

import pytest

from processor.tools.source.column_types import ConnectorModes, declared_type
from tests.unit.engine.protocol.type_tables import TypeRow, type_rows

OTHER_SETTINGS = {"interval.handling.mode", "bigint.unsigned.handling.mode", "include.unknown.datatypes"}
"""`init` does not ask for these settings, and marks types that they change as a guess."""
OWN_TYPES = {"mood", "mood[]", "positive", "short_price", "pair", "box", "pg_lsn", "tinyint(1)"}
"""The reader of the catalogue resolves enums and domains, and nobody knows the rest. `bool` is a guess for tinyint(1)."""
ROWS = [row for row in type_rows() if row.setting not in OTHER_SETTINGS and row.type not in OWN_TYPES]


def _modes(row: TypeRow) -> list[ConnectorModes]:
    settings = row.settings.split(", ")
    match row.setting:
        case "time.precision.mode":
            return [ConnectorModes(time=mode) for mode in settings]  # type: ignore[arg-type]
        case "decimal.handling.mode":
            return [ConnectorModes(decimal=mode) for mode in settings]  # type: ignore[arg-type]
    return [ConnectorModes()]


def test_each_row_of_the_page_declares_the_type_that_a_draft_declares() -> None:
    wrong = set()
    for row in ROWS:
        for modes in _modes(row):
            found = declared_type(row.type.removesuffix(" null"), modes, mysql=row.server == "MariaDB").type
            whole_unit = row.published == "null" or row.settings == "any"  # a unit that the value does not need
            if found != row.declare and not (whole_unit and found.startswith(row.declare)) and row.arrives != "null":
                wrong.add((row.server, row.type, row.settings, found, row.declare))
    assert wrong == set()
    assert len(ROWS) > 250


@pytest.mark.parametrize(
    ("sql_type", "guess"),
    [
        ("timestamp(6) without time zone", "the unit, by Debezium's default time.precision.mode"),
        ("interval", "string with interval.handling.mode string"),
        ("time", "string with time.precision.mode isostring"),
    ],
)
def test_a_type_that_a_setting_changes_is_a_guess_until_somebody_names_the_setting(sql_type: str, guess: str) -> None:
    assert declared_type(sql_type, ConnectorModes()).guess == guess


def test_a_named_setting_leaves_nothing_to_guess() -> None:
    for sql_type, modes in product(("timestamp", "time", "date"), (ConnectorModes(time="connect"),)):
        assert declared_type(sql_type, modes).guess == ""


@pytest.mark.parametrize("sql_type", ["pg_lsn", "box", "", "what ever?(", "numeric(x)"])
def test_a_type_that_nobody_knows_stays_undeclared_with_the_reason(sql_type: str) -> None:
    found = declared_type(sql_type, ConnectorModes())
    assert found.type in ("", "decimal")
    assert found.type or "undeclared it passes through" in found.guess
