"""Runs many steps side by side: collects what they ask next, asks each distinct read once, sends, and hands back the
answers.

Promises: the store gets the lookups of a turn together, then all its keys, then its writes in the order of the steps, and
decides itself how to send them. Equal lookups go out once per run. Messages go out one by one in the order of the steps. The
runner keeps no answer beyond a run.

The runner lays open changes over every index answer, on the way up and on the way down. Where an open row has, or had, the key
of a lookup, the runner compares the answer of the index with the version of the open change. If the answer lacks the row or
shows it too old, the runner reads the row by key in the same turn, and the higher version wins. If the answer shows the row in
time, that is evidence, and the runner keeps it for the driver (`sights`). Of a row that has left the indexes, an answer without
it is evidence. Steps check the columns of the rows that they get, so a row that no longer has the key drops out there. Edges
need no overlay: edges and the rows that they name are strongly consistent.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Protocol, TypeVar

from processor.engine.plan.step import Lookup, OrderedPage, Request, Send, ShownRow, Step, WeakKey
from processor.engine.protocol.find_roots import ShownRows
from processor.engine.protocol.segments import IndexKey, IndexObservation, OpenRow, Overlay, observations_of, open_rows
from processor.values.framing import NO_SCHEMAS, FramedReader
from processor.values.record import Message
from statestore.items import by_key, replace_older, version_shown
from statestore.keys import Key
from statestore.store import PAGE, Delete, Item, Page, Query, Read, Store, Write
from statestore.table import range_name
from statestore.writes import row_of

T = TypeVar("T")
OpenWriter = Callable[[str], Callable[[Any], bytes]]


def tune_garbage_collector() -> None:
    """Lets the garbage collector run less often, once per process that runs steps. A round makes many values that live
    as long as the round and hold no cycles. This saves a fifth of the steps' time (benchmarks/results.md)."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


class Outbox(Protocol):
    """Where messages go."""

    def send(self, message: Message) -> None:
        """Takes a message to send; an error of delivery may surface later, at `flush`."""

    def flush(self) -> None:
        """Returns when every message sent was acknowledged; raises otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRunner:
    """Runs steps against a store. `outbox`: where messages go, None for steps that send none. `overlays`: the rows to
    lay over index answers. `page`: rows of a page. `seen`: the versions of open rows in index answers, by row and index; "" for a
    row that an answer lacks; `dropped`: the rows that have left the index, by row and index key: whether all answers lacked the
    row; `opened`: the open rows at the index keys of lookups. `schemas`: of records that a schema registry
    describes. `open_writer`: makes the function that writes bodies by the text of an Avro schema, for steps that publish such
    documents. `shown`: what the way up of the round has shown, for publish tasks: the runner asks for none of it again, and takes
    no evidence from it."""

    store: Store
    outbox: Outbox | None = None
    overlays: tuple[Overlay, ...] = ()
    page: int = PAGE
    seen: dict[tuple[Key, str], str] = field(default_factory=dict)
    dropped: dict[tuple[Key, IndexKey], bool] = field(default_factory=dict)
    opened: dict[IndexKey, Sequence[tuple[Key, OpenRow]]] = field(default_factory=dict)
    schemas: FramedReader = NO_SCHEMAS
    open_writer: OpenWriter | None = None
    shown: ShownRows | None = None

    def sights(self) -> tuple[IndexObservation, ...]:
        """The open rows that index answers showed or lacked since the runner was made."""
        return tuple(observations_of(self.seen, self.opened, self.dropped))

    def run(self, steps: Iterable[Step[T]]) -> list[T]:
        """The results of the steps, in their order."""
        turn = list(enumerate(steps))
        results: list[Any] = [None] * len(turn)
        answers: list[Any] = [None] * len(turn)
        known: dict[Lookup, Page | OrderedPage] = {}
        while turn:
            waiting: list[tuple[int, Step[T]]] = []
            requests: list[Request] = []
            ends = [0]
            for one, answer in zip(turn, answers, strict=True):
                try:
                    requests += one[1].send(answer)
                except StopIteration as end:
                    results[one[0]] = end.value
                else:
                    waiting.append(one)
                    ends.append(len(requests))
            found = tuple(self._answers(requests, known))
            turn, answers = waiting, [found[first:end] for first, end in pairwise(ends)]
        return results

    def _answers(self, requests: Sequence[Any], known: dict[Lookup, Page | OrderedPage]) -> list[Any]:
        """The answers to the requests of a turn, by position. `known`: the lookups that this run has answered."""
        positions: dict[type, list[int]] = defaultdict(list)
        for n, request in enumerate(requests):
            positions[type(request)].append(n)
        answers: list[Any] = [None] * len(requests)
        for n in positions[Send]:
            self._send(requests[n])
        lookups = dict.fromkeys([requests[n] for n in positions[Lookup]])
        keys = dict.fromkeys([requests[n] for n in positions[Key]])
        shown = {n: self._shown_row(requests[n].key) for n in positions[ShownRow]}
        keys |= dict.fromkeys([requests[n].key for n, item in shown.items() if item is None])
        items = self._read(keys, [lookup for lookup in lookups if lookup not in known], known)
        for n in positions[Key]:
            answers[n] = items.get(requests[n])
        for n, item in shown.items():
            answers[n] = items.get(requests[n].key) if item is None else item
        weak = self.store.get_weak([requests[n].key for n in positions[WeakKey]]) if positions[WeakKey] else {}
        for n in positions[WeakKey]:
            answers[n] = weak.get(requests[n].key)
        for n in positions[Lookup]:
            answers[n] = known[requests[n]]
        written = sorted(positions[Write] + positions[Delete])
        for n, outcome in zip(written, self.store.write_all([requests[n] for n in written]), strict=True):
            answers[n] = outcome
        return answers

    def _send(self, request: Send) -> None:
        if self.outbox is None:
            raise TypeError(f"a step sends to topic {request.message.topic}, and this runner has no outbox")
        self.outbox.send(request.message)

    def _read(
        self, keys: dict[Key, None], lookups: Sequence[Lookup], known: dict[Lookup, Page | OrderedPage]
    ) -> Mapping[Key, Item]:
        """The items with these keys. Adds the answers to the lookups to `known`. The lookups go out first: the rows that they
        lack join the keys."""
        handed = self._handed(lookups)
        if handed:
            read = iter(self.store.read([self._read_of(lookup) for lookup in lookups if lookup not in handed]))
            pages = [handed[lookup] if lookup in handed else next(read) for lookup in lookups]
            lacking = [
                self._open_rows_lacking(lookup, lookup.source, page)
                if lookup in handed and isinstance(lookup.source, Query)
                else self._lacking_rows(lookup, page)
                for lookup, page in zip(lookups, pages, strict=True)
            ]
        else:
            pages = self.store.read([self._read_of(lookup) for lookup in lookups])
            lacking = [self._lacking_rows(lookup, page) for lookup, page in zip(lookups, pages, strict=True)]
        asked = list(dict.fromkeys(chain(keys, *lacking)))
        items = self.store.get(asked) if asked else {}
        for lookup, rows, page in zip(lookups, lacking, pages, strict=True):
            if lookup.totals:
                known[lookup] = page
            elif isinstance(lookup.source, str):
                known[lookup] = Page([items[key] for key in rows if key in items], page.after)
            else:
                found = apply_overlay(page, {key: items.get(key) for key in rows}) if rows else page
                known[lookup] = OrderedPage(*found, _end_of(page, lookup.source)) if lookup.most else found
        return items

    def _read_of(self, lookup: Lookup) -> Read:
        """A page of an index query or of the edges of one key; all pages as one unless the lookup is paged."""
        if lookup.most:
            return Read(lookup.source, None, max(2, min(lookup.most, self.page)))
        return Read(lookup.source, lookup.after, self.page) if lookup.paged else Read(lookup.source)

    def _lacking_rows(self, lookup: Lookup, page: Page) -> Sequence[Key]:
        """The rows to read by key: those that edges name, and the open rows that the answer of an index lacks or shows
        too old. A row that only had the key must not be there, so it lacks nothing. Notes at which version answers show rows."""
        query = lookup.source
        if isinstance(query, str):
            return () if lookup.totals else list(map(row_of, page.items))
        rows = self._open_rows(lookup, query)
        if not rows:
            return ()
        answered, first, lacking = by_key(page.items), lookup.after is None, []
        for key, row in rows.items():
            item, place, left = answered.get(key), (key, query.slot), (key, (query.slot, query.value))
            if item is not None:
                version = version_shown(item)
                self.seen[place] = max(version, self.seen.get(place, ""))
                if version < row.version:
                    self.dropped[left] = False
            else:
                version = "" if row.has else row.version
                if first and not lookup.paged:  # a later page may show the row
                    if row.has:
                        self.seen.setdefault(place, "")
                    else:
                        self.dropped.setdefault(left, True)
            if first and version < row.version:
                lacking.append(key)
        return lacking

    def _handed(self, lookups: Iterable[Lookup]) -> Mapping[Lookup, Page]:
        """The answers that the way up of the round has handed over."""
        pages: Mapping[Any, Page] = self.shown.pages if self.shown else {}
        return {one: pages[one.source] for one in lookups if not one.paged and one.source in pages} if pages else {}

    def _open_rows_lacking(self, lookup: Lookup, query: Query, page: Page) -> Sequence[Key]:
        """The same for an answer of the way up. It is no evidence: another task may have written a row after it."""
        answered = by_key(page.items)
        return [
            key
            for key, row in self._open_rows(lookup, query, notes=False).items()
            if (version_shown(answered[key]) if key in answered else "" if row.has else row.version) < row.version
        ]

    def _shown_row(self, key: Key) -> Item | None:
        """The row as the way up has shown it; None for a row that is open, or that it has not shown."""
        row = self.shown.rows.get(key) if self.shown else None
        return None if row is None or any(overlay.is_open(key) for overlay in self.overlays) else row.item

    def _open_rows(self, lookup: Lookup, query: Query, *, notes: bool = True) -> Mapping[Key, OpenRow]:
        """The open rows that the answer may lack, or show too old: of each its newest version. `notes`: notes all versions."""
        index_key = (query.slot, query.value)
        found = open_rows(self.overlays, index_key) if lookup.overlay else ()
        if not found:
            return {}
        if notes:
            self.opened[index_key] = found
        rows: dict[Key, OpenRow] = {}
        every = query.entity is None and query.row is None
        for key, row in found:
            if (every or query.covers(key)) and (key not in rows or row > rows[key]):
                rows[key] = row
        return rows


def apply_overlay(page: Page, rows: Mapping[Key, Item | None]) -> Page:
    """An index answer with open rows, read by key, laid over it: the higher version wins, and a row that is gone drops
    out."""
    return Page(replace_older(page.items, rows), page.after)


def _end_of(page: Page, query: Query) -> str:
    """The name of the last row that an index has in a page; empty for an empty page."""
    return page.items[-1][range_name(query.slot)] if page.items else ""
