"""A value that the source did not send is never read as a value: each form of the placeholder, absent columns, and nulls."""

import gzip
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.decode import decode
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.source.session import ALWAYS, unsent_as_null
from processor.values.entity import PLACEHOLDER, Entity, name_uuid, placeholder_of
from processor.values.record import UNAVAILABLE, AbsentColumns, Change
from processor.values.recorded_topics import read_records
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope, reason, with_schema

CAPTURES = Path(__file__).parents[3] / "data" / "reports" / "cdc" / "50-real-debezium"
COLUMNS = {
    "uuids": "uuid[]", "hs": "hstore", "blobs": "bytea[]", "smalls": "smallint[]", "ints": "integer[]", "bigs": "bigint[]",
    "nums": "numeric(8,2)[]", "free": "numeric[]", "dbls": "double precision[]", "flags": "boolean[]", "days": "date[]",
    "stamps": "timestamp without time zone[]", "tzs": "timestamp with time zone[]", "texts": "text[]",
    "vchars": "character varying(40)[]", "docs": "jsonb[]", "inets": "inet[]", "doc": "jsonb", "body": "text", "bin": "bytea",
    "x": "xml", "bits": "bit varying", "tsv": "tsvector",
}  # fmt: skip
"""The columns of the captured table, and their types. The row with the number n of its column holds a large value in it."""
LOST = {"smalls", "nums", "free", "dbls", "flags", "stamps", "tzs", "inets", "bits"}
"""The columns that every captured connector without REPLICA IDENTITY FULL sends as null."""
SETTINGS = {
    "plain": {"time.precision.mode isostring"},
    "precise_schema": {"binary.handling.mode hex"},
    "hstore_json": {"binary.handling.mode base64"},
}
"""A capture -> its settings that make null of more types."""
DECIMALS = {"plain": "text", "full": "text", "hstore_json": "bytes"}


def captured(name: str, **more: Any) -> tuple[Entity, dict[str, tuple[Any, Any]]]:
    """The entity of a capture, and the value of each column in the insert and in the update of its row."""
    text = (CAPTURES / "entities.yaml").read_text(encoding="utf-8")
    (table,) = load({"entities.yaml": text}).entities.values()
    columns = dict(table.columns)
    if name == "hstore_json":  # without a schema, and with Debezium's default time.precision.mode
        columns["stamps"] = replace(columns["stamps"], unit="us")
    table = replace(table, decimals=DECIMALS.get(name), columns=columns, **more)  # type: ignore[arg-type]
    places = [*[*COLUMNS][:22], "hugenum", "poly", "tsv"]
    found: dict[str, list[Any]] = {}
    for record in read_records(str(CAPTURES / f"{name}.jsonl.gz")):
        if not record.topic.endswith(".t") or record.value is None:
            continue
        one = decode(record, table)
        assert isinstance(one, Change), one
        column = places[one.key[0] - 1]
        if column in COLUMNS:
            found.setdefault(column, []).append((one.row or {})[column])
    return table, {column: (values[0], values[1]) for column, values in found.items()}


def lost_columns(name: str) -> set[str]:
    """The columns of which the page and `doctor --source` say that this connector sends null."""
    said = {column: unsent_as_null(kind) for column, kind in COLUMNS.items()}
    by_setting = {word.split()[-1] for word in SETTINGS[name]}
    return {
        column for column, when in said.items() if when == ALWAYS or by_setting & set(when.replace(",", "").split())
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_each_captured_placeholder_is_known_and_each_lost_type_is_named(name: str) -> None:
    _, values = captured(name)
    assert values.keys() == COLUMNS.keys()
    lost = {column for column, (_, after) in values.items() if after is None}
    kept = {column for column, (_, after) in values.items() if after is UNAVAILABLE}
    assert lost == lost_columns(name) >= LOST
    assert kept == COLUMNS.keys() - lost
    assert all(before not in (None, UNAVAILABLE) for before, _ in values.values())


def test_the_page_names_each_type_that_arrives_as_null_as_doctor_does() -> None:
    page = (Path(__file__).parents[4] / "docs" / "debezium.md").read_text(encoding="utf-8")
    table = page.partition("| type | arrives as |\n|---|---|\n")[2].partition("\n\n")[0]
    said: dict[str, str] = {}
    for row in table.splitlines():
        types, arrives = (cell.strip() for cell in row.strip("|").split(" | "))
        placeholder, _, setting = arrives.partition("; null with ")
        assert placeholder in ("the placeholder", "null")
        when = ALWAYS if placeholder == "null" else setting.replace("`", "")
        said |= dict.fromkeys(re.findall("`([^`]+)`", types), when)
    longer = {
        "varchar": "character varying",
        "timestamp": "timestamp without time zone",
        "timestamptz": "timestamp with time zone",
    }
    kinds = {
        name: longer.get(name.removesuffix("[]"), name.removesuffix("[]")) + "[]" * name.endswith("[]") for name in said
    }
    assert {name: unsent_as_null(kind) for name, kind in kinds.items()} == said
    assert {kind.partition("(")[0] + "[]" * kind.endswith(")[]") for kind in COLUMNS.values()} <= {*kinds.values()}


def test_a_full_replica_identity_sends_every_value() -> None:
    _, values = captured("full")
    assert all(before == after and after is not None for before, after in values.values())


@pytest.mark.parametrize("name", SETTINGS)
def test_null_of_a_column_without_nulls_is_a_value_that_was_not_sent(name: str) -> None:
    _, values = captured(name, not_null=frozenset(COLUMNS))
    assert {after for _, after in values.values()} == {UNAVAILABLE}


@pytest.mark.parametrize("name", ["plain", "full"])
def test_documents_keep_the_values_of_a_captured_update(name: str) -> None:
    table, _ = captured(name)
    words = ", ".join(
        f"{column}: {{type: '{kind}', not_null: true}}" for column, kind in table.columns.items() if column in COLUMNS
    )
    text = f"t: {{topic: {table.topic}, key: [id], decimals: text, columns: {{id: int, name: string, {words}}}}}"
    trial = Trial(
        plan=plan_alone(load({"entities.yaml": text, "d.yaml": "product: d\nroot: t"}), 3), settings=Settings()
    )
    for record in read_records(str(CAPTURES / f"{name}.jsonl.gz")):
        trial.batch([record] if record.topic == table.topic else [])
    trial.finish()
    documents: dict[Any, list[dict[str, Any]]] = {}
    for message in trial.published.messages:
        documents.setdefault(message.key, []).append(json.loads(message.value or b"null"))
    for first, last in ((one[0], one[-1]) for one in documents.values()):
        assert (first["name"], last["name"]) == ("a", "b")
        assert {**first, "name": "b"} == last


# Each form of any placeholder

OWN = "__left out__ñ"
ITEM = replace(
    entity(
        "item",
        "id",
        "id int, bio string, tags string[], ns int[], fs float[], ds decimal(6,2)[], j json, days date[], n int",
    ),
    unavailable=OWN,
)


def forms(text: str) -> Iterator[tuple[str, str, Any]]:
    """The forms of a placeholder, each with the column that holds it."""
    data = text.encode()
    signed = [byte - 256 if byte > 127 else byte for byte in data]
    yield "text", "bio", text
    yield "base64", "bio", b64encode(data).decode()
    yield "base64url", "bio", urlsafe_b64encode(data).decode()
    yield "hex", "bio", data.hex()
    yield "array", "tags", [text]
    yield "bytes in an array", "tags", [b64encode(data).decode()]
    yield "uuid", "tags", [name_uuid(data)]
    yield "numbers", "ns", signed
    yield "days", "days", signed
    yield "floats", "fs", [float(number) for number in signed]
    yield "unscaled numbers", "ds", [b64encode(bytes([byte])).decode() for byte in data]
    yield "scaled numbers", "ds", [{"scale": 0, "value": b64encode(bytes([byte])).decode()} for byte in data]
    yield "map", "j", {text: text}
    yield "map as text", "j", json.dumps({text: text}, separators=(",", ":"), ensure_ascii=False)
    yield "map in an array", "j", [{text: text}]
    yield "undeclared", "photo", b64encode(data).decode()


FORMS = [(place, *form) for place, text in (("own", OWN), ("default", PLACEHOLDER)) for form in forms(text)]


@pytest.mark.parametrize(("place", "name", "column", "value"), FORMS, ids=[f"{a} {b}" for a, b, *_ in FORMS])
@pytest.mark.parametrize("kind", ["envelope", "schema", "flattened", "plain"])
def test_each_form_of_a_placeholder_is_a_value_that_was_not_sent(
    kind: str, place: str, name: str, column: str, value: Any
) -> None:
    row = {"id": 7, "bio": "known", column: value}
    record: Any = {
        "envelope": envelope("u", after=row),
        "schema": with_schema(row, [{"field": "j", "type": "string", "name": "io.debezium.data.Json"}]),
        "flattened": {**row, "__deleted": "false"},
        "plain": row,
    }[kind]
    assert change(ITEM, {"id": 7}, record)[1][column] is UNAVAILABLE


def test_the_uuid_of_a_text_is_that_of_java() -> None:
    assert name_uuid(PLACEHOLDER.encode()) == "b68a35a7-17ad-35b3-af2a-ae46edb4545a"


def test_a_placeholder_in_hex_is_its_bytes() -> None:
    forms_ = placeholder_of("hex:FF00FE00FD00FC00")
    assert forms_.is_in(b64encode(bytes.fromhex("FF00FE00FD00FC00")).decode())
    assert forms_.is_in([-1, 0, -2, 0, -3, 0, -4, 0])


@pytest.mark.parametrize("value", ["n/a", "bi9h", "6e2f61", ["n/a"], [110, 47, 97]])
def test_a_short_placeholder_has_no_hex_form_which_real_values_may_equal(value: Any) -> None:
    assert placeholder_of("n/a").is_in(value) is (value != "6e2f61")


@pytest.mark.parametrize(
    "value", [[True] * len(PLACEHOLDER), [PLACEHOLDER, PLACEHOLDER], f" {PLACEHOLDER}", {PLACEHOLDER: 1}, []]
)
def test_a_value_that_is_only_like_a_placeholder_is_a_value(value: Any) -> None:
    assert not placeholder_of(PLACEHOLDER).is_in(value)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tags", ["a", OWN]),
        ("j", {"profile": {"bio": OWN}}),
        ("j", [[PLACEHOLDER]]),
        ("nested", {"bio": OWN, "name": "x"}),
    ],
)
def test_a_value_that_holds_the_placeholder_inside_is_a_dead_letter(column: str, value: Any) -> None:
    record = json.dumps(envelope("u", after={"id": 7, "bio": "known", column: value}), ensure_ascii=False).encode()
    text = reason(ITEM, {"id": 7}, record)
    assert text == f"column {column!r} holds {OWN!r} inside: the source did not send a part of the value"


# Absent is not null

TABLE = entity("t", "id", "id int, name string, lower string, n int")


@pytest.mark.parametrize(
    ("record", "sure"),
    [
        (envelope("u", after={"id": 7, "n": None, "extra": 1}), True),
        ({"id": 7, "n": None, "__op": "u"}, True),
        (with_schema({"id": 7, "n": None}, [{"field": "id", "type": "int32"}, {"field": "n", "type": "int32"}]), True),
        ({"id": 7, "n": None}, False),
    ],
    ids=["envelope", "flattened", "schema", "plain"],
)
@pytest.mark.parametrize(
    ("absent", "row"),
    [
        (None, (None, None)),
        ("null", (None, None)),
        ("keep", (UNAVAILABLE, UNAVAILABLE)),
        ({"lower": "keep"}, (None, UNAVAILABLE)),
    ],
)
def test_an_absent_column_is_named_and_is_what_the_entity_says(record: Any, sure: bool, absent: Any, row: Any) -> None:
    found = decoded(replace(TABLE, absent=absent), {"id": 7}, record)
    assert isinstance(found, Change)
    assert found.row is not None
    assert (found.row["name"], found.row["lower"], found.row["n"]) == (*row, None)
    assert found.absent == AbsentColumns(("name", "lower"), sure)


def test_a_column_whose_schema_the_record_has_is_null_and_not_absent() -> None:
    fields = [{"field": name, "type": "string"} for name in TABLE.columns]
    found = decoded(replace(TABLE, absent="keep"), {"id": 7}, with_schema({"id": 7, "name": "a"}, fields))
    assert isinstance(found, Change)
    assert (found.absent, found.row) == (None, {"id": 7, "name": "a", "lower": None, "n": None})


@pytest.mark.parametrize("record", [{"name": "a", "lower": "a", "n": 1}, None, envelope("d", before={"id": 7})])
def test_a_key_that_only_the_kafka_key_has_and_a_delete_lack_nothing(record: Any) -> None:
    found = decoded(TABLE, {"id": 7}, record)
    assert isinstance(found, Change)
    assert found.absent is None


# The capture is what the test says


def test_the_captures_hold_one_insert_and_one_update_of_each_column() -> None:
    with gzip.open(CAPTURES / "plain.jsonl.gz", "rt", encoding="utf-8") as lines:
        values = [json.loads(line)["value"] for line in lines if '.t"' in line]
    assert [one["op"] for one in values if one] == ["c"] * 25 + ["u"] * 25
