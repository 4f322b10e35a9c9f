"""What a run prints and writes: the lines of a job, as text or as JSON with `--log json`; recorded lines of messages and dead
letters; how the job reads a record; and a summary of counts. On a terminal the status line of a job stays below the others.

A terminal shows colours (not where NO_COLOR is set: no-color.org), a document, and how far long work is: on a terminal by a
bar for each phase, in one line; elsewhere by a line every 10 s, without a bar. A phase ends with its last state, on a line
of its own. A stream that is no terminal gets no control character.

The log of a job has a status line each minute, with the sum of all rounds since the line before. A round has a line of its own
only where it took long, or lost something: records became dead letters, or a document does not fit. So has the first batch.
"""

import argparse
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Lock
from time import monotonic
from typing import Any, TextIO

from processor.counts import BATCH, OUTCOMES, REQUEST, Count
from processor.engine.protocol.decode import TopicEntities, read_part
from processor.engine.protocol.pending import stopped_line
from processor.engine.rounds.decoding import SettledDecode
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round_counts import AGE_BUCKETS, FRESHNESS, account_text
from processor.job.metrics.status import behind_text, freshness_text, letters_text
from processor.text import shortened, visible, visible_line
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.envelopes.kind import row_images
from processor.values.envelopes.kinds import read_image
from processor.values.framing import FramedReader
from processor.values.record import UNAVAILABLE, Change, Decoded, Ignored, Message, Record, Rejected, Truncated, Value
from processor.values.recorded_topics import check_writable, open_writer, to_line, to_reject_line
from statestore.memory import MemoryStore

_CODES = {"red": "31", "green": "32", "bold": "1"}


def warn(*lines: str) -> None:
    """Prints lines to standard error: what a person must know, but no program that reads the result."""
    for line in lines:
        print(visible_line(line), file=sys.stderr)


def coloured(text: str, colour: str) -> str:
    """The text in a colour (red, green, bold). Without a terminal, or with another name, the text itself."""
    if colour not in _CODES or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{_CODES[colour]}m{text}\033[0m"


LINE_SECONDS = 10.0
MOST_CELLS = 40
"""The longest bar, in characters."""


class ProgressBar:
    """Writes to a stream. `clock`: seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = monotonic) -> None:
        self._stream, self._clock, self._terminal = stream, clock, stream.isatty()
        self._phase, self._began, self._written, self._line = "", 0.0, 0.0, ""

    def show(self, phase: str, done: int, total: int | None, *, about: bool = False, note: str = "") -> None:
        """Shows how many items of a phase are done. `total`: None where unknown; `about`: an estimate; `note`: more text."""
        now = self._clock()
        if phase != self._phase:
            self.close()
            self._phase, self._began, self._written = phase, now, now
        known = total if total and done <= total else 0  # an estimate may be too low
        text = _figures(done, known, "about " if about else "", now - self._began) + note
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            cells = min(MOST_CELLS, width - len(f"{phase} [] {text}"))
            bar = f"[{'#' * (cells * done // known):-<{cells}}] " if known and cells > 0 else ""
            self._line = f"{phase} {bar}{text}"[:width]
            self._write(f"\r{self._line:<{width}}")
        else:
            self._line = f"{phase}: {text}"
            if now - self._written >= LINE_SECONDS:
                self.close()
                self._written = now

    def close(self) -> None:
        """Ends the line of a phase, so that other lines begin below it."""
        if self._line:
            self._write("\n" if self._terminal else f"{self._line}\n")
            self._line = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _figures(done: int, total: int, about: str, seconds: float) -> str:
    """Items, their share, how many a second, and the time that is left by this rate. `total`: 0 where it is unknown."""
    rate = done / seconds if seconds else 0.0
    parts = [f"{done:,} of {about}{total:,} items, {100 * done // total} %" if total else f"{done:,} items"]
    parts += [f"{rate:,.0f}/s"] if rate else []
    parts += [f"{timedelta(seconds=round((total - done) / rate))} left"] if rate and total else []
    return ", ".join(parts)


def document_text(value: bytes, options: argparse.Namespace) -> str:
    """The document of an encoded value, for this terminal or this file."""
    if options.pretty or sys.stdout.isatty():
        return visible(canonical_json.dumps_indented(canonical_json.loads(value)))
    return visible_line(value.decode())


ROUNDS = {
    "batch": (Count.PUBLISHED,),
    "settled": (Count.SETTLED, Count.CORRECTIONS),
    "walk": (Count.WALKED, Count.FILLED, Count.DELETED, Count.PUBLISHED),
    "fan-out": (Count.PUBLISHED,),
    "backlog": (Count.PUBLISHED,),
    "due": (Count.PUBLISHED,),
    "released": (Count.PUBLISHED,),
    "repair": (Count.PUBLISHED,),
}
"""The counts that the line of a round shows, by the kind of the round."""
SUMMED = (Count.PUBLISHED, Count.CORRECTIONS, Count.SETTLED, Count.WALKED, Count.FILLED, Count.DELETED)
"""Of the rounds of a minute, if there are some."""
COUNTED = frozenset((Count.READ, *OUTCOMES, *SUMMED))
LONG_SECONDS = 5.0
"""A round that takes longer has a line of its own."""
STATUS_SECONDS = 60.0
"""Between two status lines that stay."""
LAST = ("stopped", "end")
"""Events after which no status line comes."""
CLEAR = "\r\x1b[K"
"""Goes to the begin of a terminal's line, and clears the line."""


def event_text(event: JobEvent) -> str:
    """An event for people, in one line."""
    return visible_line(_event_text(event))


def _event_text(event: JobEvent) -> str:
    if event.what == "status":
        return f"status: {status_summary(event.fields)}"
    if names := ROUNDS.get(event.what):
        account = [account_text(event.fields)] if event.what == "batch" else []
        counts = [*account, *(f"{event.fields.get(name, 0)} {name}" for name in names)]
        took = f"took {event.seconds:.1f} s" if event.seconds > LONG_SECONDS else ""
        return f"{event.text}: " + ", ".join(filter(None, [*counts, freshness_text(event.fields), took]))
    return " ".join(event.text.split())


def text_line(event: JobEvent, now: datetime) -> str:
    """The line of an event: local time, level, text."""
    return f"{now:%Y-%m-%dT%H:%M:%S} {event.level:<7} {event_text(event)}"


def json_line(event: JobEvent, now: datetime) -> str:
    """The same as one JSON object."""
    head = {"time": now.isoformat(timespec="seconds"), "level": event.level, "event": event.what}
    return json.dumps({**head, "text": event_text(event), **({"fields": dict(event.fields)} if event.fields else {})})


def status_summary(state: Mapping[str, Any]) -> str:
    """The state of a run (`processor.job.run.monitor`) in one line. Only topics that wait are named, and of these the first."""
    minute = [minute_text(state["rounds"])] if state.get("rounds") else []
    parts = [
        f"behind {behind_text(state)}",
        f"{state['events_per_second']:g} events/s",
        f"{state['documents_per_second']:g} documents/s",
        f"{state['open_changes']} open changes",
        f"{state['fan_outs']} fan-outs",
        *([] if state["letters_waiting"] is None else [letters_text(state["letters_waiting"], state["at"])]),
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
    return ", ".join([*(["paused"] if state["doing"] == "paused" else []), *minute, *parts])


def minute_text(counts: Mapping[str, int]) -> str:
    """The sum of the rounds since the last status line."""
    named = [f"{counts[name]:,} {name}" for name in SUMMED if counts.get(name)]
    batches = f" in {counts[BATCH]:,} batches" if counts.get(BATCH) else ""
    return ", ".join([*([account_text(counts) + batches] if batches else []), *named])


SHORT = 100
"""The most characters of a line of the form `short`."""
FORMS: dict[str, Callable[[JobEvent, datetime], str]] = {
    "text": text_line,
    "json": json_line,
    "short": lambda event, now: shortened(event_text(event), SHORT),
}


class JobLog:
    """Writes the events of a job to a stream. Threads may share it. `form`: of FORMS; `short` is for a person who watches,
    without the time. `clock`: the local time."""

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
        self._rounds = Counter[str]()
        self._begun = False
        self._said: datetime | None = None

    def __call__(self, event: JobEvent) -> None:
        """Writes an event. With `quiet` only warnings and errors."""
        if self.quiet and event.level == "info":
            return
        stream = self._stream or sys.stderr
        with self._lock:
            paced = self._paced(event, stays=self.form == "json" or not stream.isatty())
            for line in map(self._line, paced):
                self._write(stream, event, line)

    def _paced(self, event: JobEvent, *, stays: bool) -> list[JobEvent]:
        """The events to write now. `stays`: whether a status line stays when the next one comes."""
        if event.what in ROUNDS:
            self._rounds.update({name: count for name, count in event.fields.items() if name in COUNTED})
            self._rounds[BATCH] += event.what == BATCH
            first, self._begun = event.what == BATCH and not self._begun, self._begun or event.what == BATCH
            lost = event.fields.get(Count.UNFIT, 0)  # dead letters of records have a warning
            return [event] if first or lost or event.seconds > LONG_SECONDS else []
        if event.what == "status":
            now = self._clock()
            if stays and self._said is not None and (now - self._said).total_seconds() < STATUS_SECONDS:
                return []
            self._said = now
            return [replace(event, fields={**event.fields, "rounds": self._taken()})]
        if event.what in LAST and any(self._rounds.values()):
            text = f"since the last status: {minute_text(self._taken())}"
            return [JobEvent(what="rounds", text=text), event]
        return [event]

    def _taken(self) -> dict[str, int]:
        """The sum of the rounds so far, which begins again."""
        taken, self._rounds = dict(+self._rounds), Counter()
        return taken

    def _write(self, stream: TextIO, event: JobEvent, line: str) -> None:
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
        return FORMS[self.form](event, self._clock())


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
