"""What verbs print: messages and dead letters as recorded lines, a summary of counts, tables."""

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from processor.account import PARTS
from processor.model.change import Record, Rejected
from processor.model.owed import stopped_line
from processor.model.step import Message
from processor.recorded import open_writer, to_line, to_reject_line


def write_published(records: Iterable[Record], path: str) -> None:
    """Published messages, one line each; `-` is standard output."""
    with open_writer(path) as file:
        file.writelines(to_line(record) + "\n" for record in records)


def write_rejects(rejects: Iterable[Rejected], path: str | None) -> None:
    """Dead letters, one line each, with the reason. Nowhere without a path."""
    if path is not None:
        with open_writer(path) as file:
            file.writelines(to_reject_line(rejected) + "\n" for rejected in rejects)


def rejects_path(given: str | None, to: str | None) -> str | None:
    """Where dead letters go: where the user said, else beside the messages."""
    if given is not None or to is None or to == "-":
        return given
    return to + ".rejects.jsonl"


def in_topics(messages: Iterable[Message]) -> Iterable[Record]:
    """Messages as the records that they become in topics of one partition."""
    offsets: Counter[str] = Counter()
    for m in messages:
        yield Record(topic=m.topic, partition=0, offset=offsets[m.topic], key=m.key, value=m.value, headers=m.headers)
        offsets[m.topic] += 1


def stopped_products(stopped: Mapping[str, str]) -> int:
    """Names the products that are stopped; returns the exit status that follows."""
    for product, why in sorted(stopped.items()):
        print(stopped_line(product, why), file=sys.stderr)
    return 1 if stopped else 0


def summary(tally: Mapping[str, int]) -> str:
    """Counts in two lines: the account of the records, and what came of it."""
    account = " + ".join(f"{tally.get(part, 0)} {part}" for part in PARTS)
    requests = ", ".join(
        f"{n} {name.removeprefix('request ')}" for name, n in sorted(tally.items()) if name.startswith("request ")
    )
    others = ", ".join(f"{tally.get(name, 0)} {name}" for name in ("published", "unchanged", "cut", "ambiguous"))
    return f"{tally.get('read', 0)} records read = {account}\n{others}; requests: {requests or 'none'}"


def aligned(rows: list[list[str]], right: Collection[int]) -> Iterator[str]:
    """The lines of a table. `right`: the columns that are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (t.rjust(w) if n in right else t.ljust(w) for n, (t, w) in enumerate(zip(row, widths, strict=True)))
        yield ("  " + "  ".join(cells)).rstrip()
