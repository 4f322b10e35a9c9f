"""The open changes of the table as a reader sees them, to lay over its index answers.

Promises: a look, at most one in LOOK_SECONDS, reads only the segments of the last round that the view knows, and of later rounds.
Once in WHOLE_SECONDS a look reads all segments. Then those go that the job has closed, and those come that a task of an earlier
round wrote late. A closed change in the view changes no answer.

Does not: read the rows of open changes, as a start of a job does. A row whose newest change has no durable segment yet is as the
index shows it.
"""

from collections.abc import Iterable
from threading import Lock
from time import monotonic
from typing import Final

from processor.progress.overlay import SegmentGroup
from processor.progress.segment import PARTITIONS, Segment, make_segment, read_changes
from processor.serve.problem import LookUpProblem
from statestore.keys import Key
from statestore.store import Item, Read, Store

LOOK_SECONDS: Final = 1.0
WHOLE_SECONDS: Final = 20.0
MOST_CHANGES: Final = 1_000_000
"""Open changes that a process holds: 100 MB."""
PAGE: Final = 100
ROUND_LENGTH: Final = len("0000000000.0000000000")
"""The begin of a segment's name: run and round, which rise."""


class OpenView:
    """The segments by name, and the groups that index them. Threads may share a view, and take turns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, int] = {}
        self._groups: list[SegmentGroup] = []
        self._looked = self._read_whole = float("-inf")

    def overlays(self, store: Store) -> tuple[SegmentGroup, ...]:
        """The overlays of now. Raises LookUpProblem where more changes are open than a process holds."""
        with self._lock:
            now = monotonic()
            if now - self._looked >= LOOK_SECONDS:
                if now - self._read_whole >= WHOLE_SECONDS:
                    self._known, self._groups = {}, []
                    self._look(store, "")
                    self._read_whole = now
                else:
                    self._look(store, max(self._known, default="")[:ROUND_LENGTH])
                self._looked = now
            return tuple(self._groups)

    def _look(self, store: Store, since: str) -> None:
        """Takes the segments whose names are not below `since`."""
        items = (item for item in _items(store, since) if item["SK"] not in self._known)
        found = tuple(_segments(items))
        if found:
            self._groups.append(SegmentGroup(found))
            self._known |= {one.name: one.size for one in found}
        if (count := sum(self._known.values())) > MOST_CHANGES:
            raise LookUpProblem(
                503, f"{count:,} changes are open, more than {MOST_CHANGES:,}: wait until the job settles"
            )


def _items(store: Store, since: str) -> Iterable[Item]:
    waiting = [Read(pk, Key(pk, since) if since else None, PAGE) for pk in PARTITIONS]
    while waiting:
        pages = store.read(waiting)
        yield from (item for page in pages for item in page.items)
        rest = zip(waiting, pages, strict=True)
        waiting = [read._replace(after=page.after) for read, page in rest if page.after is not None]


def _segments(items: Iterable[Item]) -> Iterable[Segment]:
    return (make_segment(item["SK"], changes) for item in items if (changes := read_changes(item)))
