"""What a run prints and writes: the lines of a job, as text or as JSON with `--log json`; recorded lines of messages and dead
letters; how the job reads a record; and a summary of counts. On a terminal the status line of a job stays below the others."""

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, TextIO

from processor.cli.printing.terminal import warn
from processor.counts import OUTCOMES, REQUEST, Count
from processor.engine.protocol.decode import TopicEntities, read_part
from processor.engine.protocol.pending import stopped_line
from processor.engine.rounds.decoding import SettledDecode
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round_counts import AGE_BUCKETS, FRESHNESS
from processor.job.metrics.status import freshness_text, lag_text
from processor.text import visible_line
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.envelopes.kind import row_images
from processor.values.envelopes.kinds import read_image
from processor.values.framing import FramedReader
from processor.values.record import UNAVAILABLE, Change, Decoded, Ignored, Message, Record, Rejected, Truncated, Value
from processor.values.recorded_topics import check_writable, open_writer, to_line, to_reject_line
from statestore.memory import MemoryStore

ROUNDS = {
    "batch": (Count.READ, Count.APPLIED, Count.DEAD_LETTERS, Count.PUBLISHED),
    "settled": (Count.SETTLED, Count.CORRECTIONS),
    "walk": (Count.WALKED, Count.FILLED, Count.DELETED, Count.PUBLISHED),
    "fan-out": (Count.PUBLISHED,),
    "backlog": (Count.PUBLISHED,),
}
"""The counts that the line of a round shows, by the kind of the round."""
CLEAR = "\r\x1b[K"
"""Goes to the begin of a terminal's line, and clears the line."""


def add_log_flags(parser: argparse.ArgumentParser) -> None:
    """Adds `--log` and `--quiet`."""
    parser.add_argument(
        "--log", choices=("text", "json"), default="text", help="the form of the lines: text (default), or JSON objects"
    )
    parser.add_argument("--quiet", action="store_true", help="print only warnings and errors")


def event_text(event: JobEvent) -> str:
    """An event for people, in one line."""
    return visible_line(_event_text(event))


def _event_text(event: JobEvent) -> str:
    if event.what == "status":
        return f"status: {status_summary(event.fields)}"
    if names := ROUNDS.get(event.what):
        counts = [f"{event.fields.get(name, 0)} {name}" for name in names]
        return f"{event.text}: " + ", ".join(filter(None, [*counts, freshness_text(event.fields)]))
    return " ".join(event.text.split())


def text_line(event: JobEvent, now: datetime) -> str:
    """The line of an event: local time, level, text."""
    return f"{now:%Y-%m-%dT%H:%M:%S} {event.level:<7} {event_text(event)}"


def json_line(event: JobEvent, now: datetime) -> str:
    """The same as one JSON object."""
    head = {"time": now.isoformat(timespec="seconds"), "level": event.level, "event": event.what}
    return json.dumps({**head, "text": event_text(event), **({"fields": dict(event.fields)} if event.fields else {})})


def status_summary(state: Mapping[str, Any]) -> str:
    """The state of a run (`processor.job.run.monitor`) in one line. Only topics that wait are named."""
    behind = [topic for topic, lag in state["topics"].items() if lag["records"] != 0]
    parts = [
        "behind " + (", ".join(f"{topic} {lag_text(state, topic)}" for topic in behind) or "0 records"),
        f"{state['events_per_second']:g} events/s",
        f"{state['documents_per_second']:g} documents/s",
        f"{state['open_changes']} open changes",
        f"{state['fan_outs']} fan-outs",
        f"{state['dead_letters']} dead letters"
        + (f" (the last: {state['last_dead_letter']})" if state["last_dead_letter"] else ""),
    ]
    stopped = [*state["stopped_products"], *state["stopped_walks"]]
    named = (
        ("stopped", stopped),
        ("waiting", state["waiting_products"]),
        ("missing topics", state["missing_topics"]),
        ("paused topics", state["paused_topics"]),
    )
    for title, names in named:
        parts += [f"{title}: {', '.join(names)}"] if names else []
    return ", ".join([*(["paused"] if state["doing"] == "paused" else []), *parts])


class JobLog:
    """Writes the events of a job to a stream. Threads may share it. `clock`: the local time."""

    def __init__(
        self,
        *,
        form: str = "text",
        quiet: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> None:
        self.form, self.quiet = form, quiet
        self._stream, self._clock, self._lock = stream, clock, Lock()
        self._status = ""

    def __call__(self, event: JobEvent) -> None:
        """Writes an event. With `quiet` only warnings and errors."""
        if self.quiet and event.level == "info":
            return
        line, stream = self._line(event), self._stream or sys.stderr
        with self._lock:
            if self.form == "json" or not stream.isatty():
                stream.write(f"{line}\n")
            elif event.what == "status":
                self._status = line[: shutil.get_terminal_size().columns - 1]
                stream.write(f"{CLEAR}{self._status}")
            else:
                stream.write(f"{CLEAR if self._status else ''}{line}\n{self._status}")
            stream.flush()

    def end(self) -> None:
        """Ends the status line of a terminal, so that the next program begins a line of its own."""
        with self._lock:
            if self._status:
                (self._stream or sys.stderr).write("\n")
                self._status = ""

    def write_at_once(self, event: JobEvent) -> None:
        """Writes an event from a signal handler, which may interrupt a write to the stream."""
        if not self.quiet:
            clear = CLEAR if self._status else ""
            os.write(sys.stderr.fileno(), f"{clear}{self._line(event)}\n".encode())

    def _line(self, event: JobEvent) -> str:
        return (json_line if self.form == "json" else text_line)(event, self._clock())


COUNTS = (
    "Counts. Of records: applied: written as a row; superseded: a newer change of the row came before, or in the same batch; "
    "ignored: no entity names the topic, or the message changes no row; dead letters: the record breaks its contract. Of "
    "documents: published: a message went out; unchanged: equal to the last message, so none went out; cut: a list longer than "
    "its `limit`; ambiguous: a `one` without `order_by` that found several rows; held: left to the gate of its product."
)
"""The meaning of the counts of `summary`, for the help of verbs."""
DOCUMENT_COUNTS = (Count.PUBLISHED, Count.UNCHANGED, Count.CUT, Count.AMBIGUOUS)
UNFIT_LINE = (
    "the document does not fit its topic, which shows an earlier one or none: `statestore dead-letters list --each` says "
    "why"
)
"""What an operator reads about such a document."""


def write_published(records: Iterable[Record], path: str) -> None:
    """Writes published messages, a line each. The path `-` is standard output."""
    with open_writer(path) as file:
        file.writelines(to_line(record) + "\n" for record in records)


def write_dead_letters(letters: Iterable[Rejected], path: str | None) -> None:
    """Writes dead letters with their reasons, a line each. Without a path it writes nothing."""
    if path is not None:
        with open_writer(path) as file:
            file.writelines(to_reject_line(rejected) + "\n" for rejected in letters)


def check_outputs(to: str | None, dead_letters: str | None) -> None:
    """Raises RecordedError, before the work begins, if one of the two files cannot be written."""
    for path in (to, dead_letters_path(dead_letters, to)):
        if path is not None:
            check_writable(path)


def dead_letters_path(given: str | None, to: str | None) -> str | None:
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
    warn(*(stopped_line(product, why) for product, why in sorted(stopped.items())))
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
    if cycles := tally.get(Count.CYCLES):
        others += f", {cycles} {Count.CYCLES} (rows above themselves, which recursive joins left out)"
    if held := tally.get(Count.HELD):
        others += f", {held} held"
    if unfit := tally.get(Count.UNFIT):
        others += f", {unfit} unfit (a dead letter takes the place of the document)"
    if unreadable := tally.get(Count.UNREADABLE):
        others += f", {unreadable} {Count.UNREADABLE} (stored before their column was declared, of another type: shown as null)"
    return f"{tally.get(Count.READ, 0)} records read = {account}\n{others}; requests: {requests or 'none'}"


SHOWN_COLUMNS = 6
SHOWN_CHARACTERS = 40
IGNORED_BY = {
    "control": "a message that changes no row: a heartbeat, a transaction, a change of the schema, a tombstone of compaction",
    "truncate": "the source emptied the table, and the entity has `truncate: ignore`",
    "other table": "the record names another table than `table` of the entity",
    "unknown topic": "no entity names the topic",
}
"""Why the job ignores a record, by the word of `Ignored`."""


def row_lines(records: Iterable[Record], entities: Mapping[str, Entity], schemas: FramedReader) -> Iterator[str]:
    """How the job reads each record, in a line: `user/0 offset 3: row 17: name = Ada, deleted`. `entities`: by name. A form of
    decimals that one of the records shows counts for all of them."""
    decoding = SettledDecode(store=MemoryStore(1), schemas=schemas, forms={})
    for decoded in decoding.decode_all(records, TopicEntities(entities.values())):
        record = decoded.record
        yield f"{record.topic}/{record.partition} offset {record.offset}: {_reading(decoded, entities, schemas)}"


def _reading(decoded: Decoded, entities: Mapping[str, Entity], schemas: FramedReader) -> str:
    match decoded:
        case Rejected():
            return f"dead letter: {decoded.reason}"
        case Ignored():
            return f"ignored: {IGNORED_BY[decoded.why]}"
        case Truncated():
            return f"empties the table of entity {decoded.entity}"
    entity = entities[decoded.entity]
    old = _old_row(decoded.record, entity, schemas) if decoded.row is None else {}
    changes = sorted((decoded, *decoded.others), key=lambda change: change.part)
    return "; ".join(_row(change, entity, old) for change in changes)


def _row(change: Change, entity: Entity, old: Mapping[str, Value]) -> str:
    key = "/".join(map(_short, change.key))
    row = old if change.row is None else change.row
    shown = [f"{name} = {_short(value)}" for name, value in row.items() if name not in entity.key]
    more = [f"{len(shown) - SHOWN_COLUMNS} more columns"] if len(shown) > SHOWN_COLUMNS else []
    return f"row {key}: " + (
        ", ".join([*shown[:SHOWN_COLUMNS], *more, *["deleted"] * (change.row is None)]) or "its key alone"
    )


def _old_row(record: Record, entity: Entity, schemas: FramedReader) -> Mapping[str, Value]:
    """What a record that deletes one row shows of it: members as they came, without nulls."""
    images = row_images(read_image(read_part(record, "value", schemas), entity))
    row = images[0].row if len(images) == 1 else {}
    return {name: value for name, value in row.items() if name in entity.columns and value is not None}


def _short(value: Value) -> str:
    text = "not sent" if value is UNAVAILABLE else value if type(value) is str else canonical_json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
