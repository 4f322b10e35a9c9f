"""Each row of the captured types: the records hold what the row says, and the job publishes what the row says."""

import json
import re
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.decode import decode
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values import canonical_json
from processor.values.record import UNAVAILABLE, Change, Record, Rejected
from processor.values.recorded_topics import read_records
from statestore.values import canonical
from tests.unit.engine.protocol.decoding import entity
from tests.unit.engine.protocol.type_tables import (
    COLUMNS,
    PAGE,
    SAMPLES,
    SERVERS,
    TypeRow,
    after,
    captured_records,
    captured_values,
    file_of,
    files,
    page_with_tables,
    type_rows,
)

ROWS = list(type_rows())
UNIT_OR_SCALE = re.compile(r"\((?!text).*?\)")
"""A record with a schema needs none of them in the declared type."""
CAPTURES = [
    (server, file_of(prefix, mode, schema))
    for server, (prefix, types) in SERVERS.items()
    for mode in types.MODES
    for schema in (False, True)
]
NOT_SHOWN = ("jsonb", "'1e400'")
"""The number of 401 digits is too long for the page."""


def test_the_page_for_authors_has_the_declaration_of_each_row() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page_with_tables(page) == page, "run python -m tests.unit.engine.protocol.type_tables"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.line}-{row.type}-{row.settings}-{row.schema}")
def test_a_row_of_the_page_is_true(row: TypeRow) -> None:
    found = captured_records(row)
    assert found, "no capture has this row"
    for _, column, arrived in found:
        assert row.arrives == (canonical_json.dumps(arrived[column]) if column in arrived else "no column")
    declared = [
        (found[0], row.declare, row.decimals),
        (found[-1], row.declare, row.decimals),
    ]  # without a schema, and with it
    if row.schema == "both":
        declared.append((found[-1], UNIT_OR_SCALE.sub("", row.declare), None))
    for (record, column, arrived), type_, decimals in declared:
        other = next(name for name in arrived if name not in ("id", column))  # so that the row has a declared column
        result = decode(record, entity("sample", "id", f"id int, {column} {type_}, {other} json", decimals=decimals))
        if isinstance(result, Rejected):
            assert row.published.startswith("dead letter: ")
            assert row.published.removeprefix("dead letter: ") in result.reason
        else:
            assert isinstance(result, Change)
            assert result.row is not None
            value = result.row[column]
            assert row.published == ("the stored value" if value is UNAVAILABLE else published(value))


@pytest.mark.parametrize(("server", "file"), CAPTURES)
def test_the_page_shows_every_captured_value(server: str, file: str) -> None:
    shown = {(row.type, row.value) for row in ROWS if row.server == server and file in files(row)}
    assert set(captured_values(server, file)) - shown == ({NOT_SHOWN} if server == "PostgreSQL" else set())


@pytest.mark.parametrize(
    ("server", "file", "like"),
    [
        *((server, file, file) for server, file in CAPTURES),
        ("PostgreSQL", "postgres-types-flattened", "postgres-types-adaptive"),
        ("PostgreSQL", "postgres-types-flattened-schema", "postgres-types-adaptive-schema"),
    ],
)
def test_a_document_of_all_types_is_as_the_page_says(server: str, file: str, like: str) -> None:
    rows = {(row.type, row.value): row for row in ROWS if row.server == server and like in files(row)}
    shown = {name: rows[place] for name, place in COLUMNS[server].items()}
    columns = {"id": "int"} | {name: row.declare for name, row in shown.items()}
    records = list(read_records(str(SAMPLES / f"{file}.jsonl.gz")))[:2]
    form: dict[str, Any] = {"format": "flattened"} if "flattened" in file else {}
    form["decimals"] = {name: row.decimals for name, row in shown.items() if row.decimals}
    for document in documents(records, {"columns": columns} | form):
        assert {name: published(document[name]) for name in shown} == {
            name: row.published for name, row in shown.items()
        }


@pytest.mark.parametrize(("server", "file"), [*CAPTURES[:2], *CAPTURES[-2:]])
def test_columns_that_nobody_declares_pass_through_as_they_arrive(server: str, file: str) -> None:
    records = list(read_records(str(SAMPLES / f"{file}.jsonl.gz")))[:2]
    for record, document in zip(records, documents(records, {"columns": {"id": "int"}}), strict=True):
        assert document == canonical(after(record))


def test_a_number_of_401_digits_in_json_keeps_every_digit() -> None:
    for schema in (False, True):
        values = captured_values("PostgreSQL", file_of("postgres", "adaptive", schema))
        record, column, _ = values[NOT_SHOWN]
        result = decode(record, entity("sample", "id", f"id int, {column} json"))
        assert isinstance(result, Change)
        assert result.row is not None
        assert result.row[column] == (10**400 if schema else str(10**400))


def documents(records: list[Record], members: dict[str, Any]) -> list[Any]:
    """The documents of the records of an entity with these members."""
    entities = {"sample": {"topic": records[0].topic, "key": ["id"]} | members}
    texts = {"entities.yaml": json.dumps(entities), "all.yaml": '{"product": "all", "root": "sample"}'}
    trial = Trial(plan=plan_alone(load(texts), 20), settings=Settings())
    trial.batch(records)
    trial.finish()
    assert [message.value for message in trial.rejects.messages] == []
    assert len(trial.published.messages) == len(records)
    return [canonical_json.loads(message.value or b"") for message in trial.published.messages]


def published(value: object) -> str:
    return canonical_json.dumps(canonical(value))
