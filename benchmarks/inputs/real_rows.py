"""Make the rows of a history like those of real tables: wide, and mostly updated in columns that no product reads.

    widened                2.5 KB more in each row: 24 undeclared columns of words, which stay the same over the row's updates
    with_unread_updates    after each event an update of any row, in an undeclared column

Promises: streaming, and the same lines for the same seed. Does not: change what any product shows.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from processor.tools.demo.github import RecordedLine
from processor.values import canonical_json

WORDS = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8").split()
"""Words as often as English has them."""
COLUMNS, COLUMN_BYTES = 24, 88


def widened(lines: Iterator[RecordedLine]) -> Iterator[RecordedLine]:
    """The lines, with 2.5 KB more in each row."""
    for line in lines:
        value = line["value"]
        yield line if value is None else {**line, "value": {**value, **_texts(canonical_json.dumps(line["key"]))}}


def with_unread_updates(lines: Iterator[RecordedLine], seed: int) -> Iterator[RecordedLine]:
    """The lines, each with an update behind it that no product reads, spread evenly over all rows."""
    chance = Random(seed)
    places: dict[tuple[str, str], int] = {}
    rows: list[RecordedLine] = []
    for count, line in enumerate(lines):
        yield line
        name = line["topic"], canonical_json.dumps(line["key"])
        place = places.setdefault(name, len(rows))
        if line["value"] is not None:
            rows[place : place + 1] = [line]
        elif place < len(rows):
            del places[name]
            last = rows.pop()
            if place < len(rows):
                rows[place] = last
                places[last["topic"], canonical_json.dumps(last["key"])] = place
        else:
            del places[name]
        row = chance.choice(rows)
        seen: dict[str, Any] = {**(row["value"] or {}), "last_seen_at": count}
        yield {**row, "value": seen, "timestamp": line["timestamp"]}


def _texts(name: str) -> dict[str, str]:
    chance = Random(name)
    columns = {}
    for n in range(COLUMNS):
        text = ""
        while len(text) < COLUMN_BYTES:
            text += f" {chance.choice(WORDS)}"
        columns[f"note_{n:02}"] = text[1:]
    return columns
