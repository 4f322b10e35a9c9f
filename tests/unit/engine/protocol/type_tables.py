"""The rows of tests/data/debezium/types.md with the captured values that they describe, and the tables of docs/types.md.

python -m tests.unit.engine.protocol.type_tables     writes the tables of docs/types.md
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from processor.values import canonical_json
from processor.values.entity import DecimalForm
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from tests.capture import mariadb_types, postgres_types

ROOT = Path(__file__).parents[4]
SAMPLES = ROOT / "tests" / "data" / "debezium"
ROWS = SAMPLES / "types.md"
PAGE = ROOT / "docs" / "types.md"
"""The page for authors, whose tables leave out the values."""
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
SERVERS = {"PostgreSQL": ("postgres", postgres_types), "MariaDB": ("mariadb", mariadb_types)}
COLUMNS = {
    server: {name: (kind, value) for name, kind, value in types.COLUMNS} for server, (_, types) in SERVERS.items()
}
SAME_UNDER_ALL = ("type", "value", "arrives as", "declare", "published")
"""The columns of a table whose rows arrive in the same form under every setting, with schemas and without."""
WITHOUT_SCHEMA = ("type", "value", "setting", "arrives as", "declare", "published")
"""The columns of a table whose rows arrive in the same form with schemas and without."""
FORMS: dict[str, DecimalForm] = {form: form for form in get_args(DecimalForm)}
SCHEMAS = {"without": (False,), "with": (True,), "both": (False, True)}


class TypeRow(NamedTuple):
    """A row of a table: `value` of a column of `type` arrives under `settings` as `arrives`. `published`: JSON, or the reason of
    the dead letter after `dead letter: `. `declare`: the type of the column; `decimals`: what the entity says of its decimals."""

    line: int
    decimals: DecimalForm | None
    server: str
    setting: str
    type: str
    value: str
    settings: str
    schema: str
    arrives: str
    declare: str
    published: str


class Captured(NamedTuple):
    """A captured record, the name of the column with the value, and the row that arrived."""

    record: Record
    column: str
    row: Mapping[str, Any]


def type_rows() -> Iterator[TypeRow]:
    """The rows of all captured values."""
    server = setting = ""
    for number, line in enumerate(ROWS.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("## "):
            server = next((name for name in SERVERS if name in line), "")
        elif line.startswith("### "):
            setting = next(iter(re.findall(r"`([a-z.]+\.(?:mode|datatypes))`", line)), "")
        elif server and line.startswith("| `"):
            cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
            if len(cells) == len(SAME_UNDER_ALL):
                cells[2:2] = ["any", "both"]
            elif len(cells) == len(WITHOUT_SCHEMA):
                cells[3:3] = ["both"]
            cells[5], _, form = cells[5].partition("`, `decimals: ")
            yield TypeRow(number, FORMS.get(form), server, setting, *cells)


def page_with_tables(page: str) -> str:
    """The page with its tables: for each database and setting, which types need which declaration."""
    text = "\n\n".join(f"### {server}\n\n{_table(server)}" for server in SERVERS)
    return f"{page.partition(BEGIN)[0]}{BEGIN}\n\n{text}\n\n{END}{page.partition(END)[2]}"


def _table(server: str) -> str:
    """The table of a database. Settings that ask for the same declaration of the same types are one row."""
    types: dict[tuple[str, str, str], list[str]] = {}
    for row in type_rows():
        if row.server == server and row.arrives not in ("null", "no column"):
            form = f", `decimals: {row.decimals}`" if row.decimals else ""
            named = types.setdefault((row.setting, row.settings, f"`{row.declare}`{form}"), [])
            named += [row.type] if row.type not in named else []
    settings: dict[tuple[str, str, str], list[str]] = {}
    for (setting, value, declare), named in types.items():
        settings.setdefault((setting, declare, ", ".join(f"`{one}`" for one in named)), []).append(value)
    lines = ["| setting | is | type | declare |", "|---|---|---|---|"]
    for (setting, declare, named_types), values in settings.items():
        every = " ".join(dict.fromkeys(", ".join(values).split(", "))).replace(" ", ", ") if setting else "any"
        lines.append(f"| {f'`{setting}`' if setting else ''} | {every} | {named_types} | {declare} |")
    return "\n".join(lines)


def files(row: TypeRow) -> list[str]:
    """The captures that the row describes: of each of its modes, with and without a schema."""
    prefix, types = SERVERS[row.server]
    modes = [mode for mode, settings in types.MODES.items() if row.settings == "any" or _has(settings, row)]
    return [file_of(prefix, mode, schema) for mode in modes for schema in SCHEMAS[row.schema]]


def captured_records(row: TypeRow) -> list[Captured]:
    """The records that the row describes."""
    return [captured_values(row.server, file)[row.type, row.value] for file in files(row)]


def file_of(prefix: str, mode: str, schema: bool) -> str:
    """The name of the capture of a mode."""
    return f"{prefix}-types-{mode}{'-schema' if schema else ''}"


@lru_cache(maxsize=64)
def captured_values(server: str, file: str) -> dict[tuple[str, str], Captured]:
    """The streamed records of a capture, by type and value of the column that they show."""
    found: dict[tuple[str, str], Captured] = {}
    columns, special = COLUMNS[server], SERVERS[server][1].SPECIAL
    for record in read_records(str(SAMPLES / f"{file}.jsonl.gz")):
        row = after(record)
        if row["id"] == 2:
            found |= {place: Captured(record, name, row) for name, place in columns.items()}
        elif row["id"] > 2:
            name, value = special[row["id"] - 3]
            found[columns[name][0], value] = Captured(record, name, row)
    return found


def after(record: Record) -> Mapping[str, Any]:
    """The row in the record of a capture."""
    value = canonical_json.loads(record.value or b"")
    value = value.get("payload", value)
    row: Mapping[str, Any] = value.get("after", value)
    return row


def _has(settings: Mapping[str, str], row: TypeRow) -> bool:
    return settings[row.setting] in row.settings.split(", ")


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
