"""Output that several verbs share: recorded lines of messages and dead letters, and a summary of counts."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from processor.counts import OUTCOMES, REQUEST, Count
from processor.engine.protocol.pending import stopped_line
from processor.engine.rounds.round_counts import AGE_BUCKETS, FRESHNESS
from processor.job.metrics.status import freshness_text
from processor.text import visible_line
from processor.values.message import Message
from processor.values.record import Record, Rejected
from processor.values.recorded_line import to_line, to_reject_line
from processor.values.recorded_topics import check_writable, open_writer

COUNTS = (
    "Counts. Of records: applied: written as a row; superseded: a newer change of the row came before, or in the same batch; "
    "ignored: no entity names the topic, or the message changes no row; dead letters: the record breaks its contract. Of "
    "documents: published: a message went out; unchanged: equal to the last message, so none went out; cut: a list longer than "
    "its `limit`; ambiguous: a `one` without `order_by` that found several rows; held: left to the gate of its product."
)
"""The meaning of the counts of `summary`, for the help of verbs."""
DOCUMENT_COUNTS = (Count.PUBLISHED, Count.UNCHANGED, Count.CUT, Count.AMBIGUOUS)
UNFIT_LINE = (
    "the document does not fit its topic, which shows an earlier one or none: `statestore rejects list --each` says why"
)
"""What an operator reads about such a document."""


def write_published(records: Iterable[Record], path: str) -> None:
    """Writes published messages, a line each. The path `-` is standard output."""
    with open_writer(path) as file:
        file.writelines(to_line(record) + "\n" for record in records)


def write_rejects(rejects: Iterable[Rejected], path: str | None) -> None:
    """Writes dead letters with their reasons, a line each. Without a path it writes nothing."""
    if path is not None:
        with open_writer(path) as file:
            file.writelines(to_reject_line(rejected) + "\n" for rejected in rejects)


def check_outputs(to: str | None, rejects: str | None) -> None:
    """Raises RecordedError, before the work begins, if one of the two files cannot be written."""
    for path in (to, rejects_path(rejects, to)):
        if path is not None:
            check_writable(path)


def rejects_path(given: str | None, to: str | None) -> str | None:
    """The file for dead letters: the one that the user named, else a file next to that of the messages, else None."""
    if given is not None or to is None or to == "-":
        return given
    return to + ".rejects.jsonl"


def to_records(messages: Iterable[Message]) -> Iterable[Record]:
    """The messages as records of topics with one partition each."""
    offsets: Counter[str] = Counter()
    for m in messages:
        yield Record(topic=m.topic, partition=0, offset=offsets[m.topic], key=m.key, value=m.value, headers=m.headers)
        offsets[m.topic] += 1


def report_stopped_products(stopped: Mapping[str, str]) -> int:
    """Prints each stopped product with its reason. Returns the exit status: 1 if there is one."""
    for product, why in sorted(stopped.items()):
        print(visible_line(stopped_line(product, why)), file=sys.stderr)
    return 1 if stopped else 0


def freshness_histogram(tally: Mapping[str, int]) -> str:
    """The same, and how many documents are in each bucket that is not empty; empty without documents."""
    buckets = ", ".join(f"{tally[name]} {name.removeprefix(FRESHNESS)}" for name in AGE_BUCKETS if tally.get(name))
    return f"{freshness_text(tally)}; documents by age: {buckets}" if buckets else ""


def summary(tally: Mapping[str, int]) -> str:
    """The counts in two lines: the account of the records, then messages and requests."""
    account = " + ".join(f"{tally.get(outcome, 0)} {outcome}" for outcome in OUTCOMES)
    requests = ", ".join(
        f"{n} {name.removeprefix(REQUEST)}" for name, n in sorted(tally.items()) if name.startswith(REQUEST)
    )
    others = ", ".join(f"{tally.get(name, 0)} {name}" for name in DOCUMENT_COUNTS)
    if held := tally.get(Count.HELD):
        others += f", {held} held"
    if unfit := tally.get(Count.UNFIT):
        others += f", {unfit} unfit (a dead letter takes the place of the document)"
    if unreadable := tally.get(Count.UNREADABLE):
        others += f", {unreadable} {Count.UNREADABLE} (stored before their column was declared, of another type: shown as null)"
    return f"{tally.get(Count.READ, 0)} records read = {account}\n{others}; requests: {requests or 'none'}"
