"""The lines of a job: its events as text, or as JSON with `--log json`. On a terminal the status line stays below the others."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, TextIO

from processor.counts import Count
from processor.engine.rounds.events import JobEvent
from processor.job.metrics.status import freshness_text, lag_text
from processor.text import visible_line

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
