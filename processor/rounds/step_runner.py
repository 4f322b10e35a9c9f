"""Runs many steps side by side: collects what they ask next, asks each distinct read once, sends, and hands back the
answers.

Promises: all keys of a turn go out in as few batched reads as possible. Equal lookups go out once per run. Writes and
messages go out one by one in the order of the steps. A store that is faster in parallel gets its requests from a pool:
the reads of a turn side by side, then the writes side by side. The runner keeps no answer beyond a run.

The runner lays open changes over every index answer, on the way up and on the way down. Where an open row has, or had,
the key of a lookup, the runner reads that row by key in the same turn, and the higher version wins. Steps check the
columns of the rows that they get, so a row that no longer has the key drops out there. Edges need no overlay: edges and
the rows that they name are strongly consistent.
"""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import Any, Protocol, TypeVar

from processor.plan.step import Lookup, Request, Send, Step
from processor.progress.overlay import Overlay
from processor.records.message import Message
from processor.settings import FAN_OUT_PAGE
from statestore.edges import row_of
from statestore.item_attributes import replace_older
from statestore.keys import Key
from statestore.requests import MAX_KEYS
from statestore.store import Delete, Item, Page, Store, Write, WriteOutcome

T = TypeVar("T")
A = TypeVar("A")
Waiting = list[tuple[int, Step[Any], tuple[Request, ...]]]


def tune_garbage_collector() -> None:
    """Lets the garbage collector run less often, once per process that runs steps. A round makes many values that live
    as long as the round and hold no cycles. This saves a fifth of the steps' time (docs/benchmarks.md)."""
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
    lay over index answers. `pool`: threads for requests, None to ask one after the other. `page`: rows of a
    page."""

    store: Store
    outbox: Outbox | None = None
    overlays: tuple[Overlay, ...] = ()
    pool: ThreadPoolExecutor | None = None
    page: int = FAN_OUT_PAGE

    def run(self, steps: Iterable[Step[T]]) -> list[T]:
        """The results of the steps, in their order."""
        turn: list[tuple[int, Step[T], Any]] = [(i, step, None) for i, step in enumerate(steps)]
        results: list[Any] = [None] * len(turn)
        known: dict[Lookup, Page] = {}
        while turn:
            waiting: Waiting = []
            for i, step, previous in turn:
                try:
                    waiting.append((i, step, step.send(previous)))
                except StopIteration as end:
                    results[i] = end.value
            answers = self._answers(list(chain.from_iterable([asked for _, _, asked in waiting])), known)
            ends = accumulate([len(asked) for _, _, asked in waiting])
            turn = [
                (i, step, tuple(answers[end - len(asked) : end]))
                for (i, step, asked), end in zip(waiting, ends, strict=True)
            ]
        return results

    def _answers(self, requests: Sequence[Any], known: dict[Lookup, Page]) -> list[Any]:
        """The answers to the requests of a turn, by position. `known`: the lookups that this run has answered."""
        positions: dict[type, list[int]] = defaultdict(list)
        for n, request in enumerate(requests):
            positions[type(request)].append(n)
        answers: list[Any] = [None] * len(requests)
        for n in positions[Send]:
            self._send(requests[n])
        lookups = dict.fromkeys(requests[n] for n in positions[Lookup] if requests[n] not in known)
        items = self._read(dict.fromkeys(requests[n] for n in positions[Key]), list(lookups), known)
        for n in positions[Key]:
            answers[n] = items.get(requests[n])
        for n in positions[Lookup]:
            answers[n] = known[requests[n]]
        writes = sorted(positions[Write] + positions[Delete])
        for n, outcome in zip(writes, self._each(self._write, [requests[n] for n in writes]), strict=True):
            answers[n] = outcome
        return answers

    def _send(self, request: Send) -> None:
        if self.outbox is None:
            raise TypeError(f"a step sends to topic {request.message.topic}, and this runner has no outbox")
        self.outbox.send(request.message)

    def _read(self, keys: dict[Key, None], lookups: Sequence[Lookup], known: dict[Lookup, Page]) -> Mapping[Key, Item]:
        """The items with these keys. Adds the answers to the lookups to `known`; the rows behind them go out in the
        same batched reads, side by side with the queries."""
        edges = [lookup for lookup in lookups if isinstance(lookup.source, str)]
        queries = [lookup for lookup in lookups if not isinstance(lookup.source, str)]
        open_rows = [self._open_rows(query) for query in queries]
        edge_pages = list(self._each(self._look_up, edges))
        named_rows = [list(map(row_of, page.items)) for page in edge_pages]
        keys.update(dict.fromkeys(chain(*open_rows, *named_rows)))
        asked = list(keys)
        chunks = [asked[start : start + MAX_KEYS] for start in range(0, len(asked), MAX_KEYS)]
        reads: list[list[Key] | Lookup] = [*chunks, *queries]
        read = iter(self._each(self._ask, reads))
        items: dict[Key, Item] = {}
        for found in islice(read, len(chunks)):
            items.update(found)
        for query, rows, page in zip(queries, open_rows, read, strict=True):
            known[query] = apply_overlay(page, {key: items.get(key) for key in rows}) if rows else page
        for lookup, rows, page in zip(edges, named_rows, edge_pages, strict=True):
            known[lookup] = Page([items[key] for key in rows if key in items], page.after)
        return items

    def _ask(self, read: list[Key] | Lookup) -> Any:
        return self._look_up(read) if isinstance(read, Lookup) else self.store.get(read)

    def _look_up(self, lookup: Lookup) -> Page:
        """A page of an index query or of the edges of one key; all pages as one unless the lookup is paged."""
        source = lookup.source
        if lookup.paged:
            return self.store.page(source, lookup.after, self.page)
        return Page(self.store.partition(source) if isinstance(source, str) else self.store.query(source), None)

    def _write(self, request: Write | Delete) -> WriteOutcome:
        return self.store.delete(request) if isinstance(request, Delete) else self.store.write(request)

    def _open_rows(self, lookup: Lookup) -> Sequence[Key]:
        """The open rows that the answer of an index may lack, or show too old."""
        query = lookup.source
        if isinstance(query, str) or lookup.after is not None or not lookup.overlay:
            return ()
        index_key = (query.slot, query.value)
        rows = [key for overlay in self.overlays for key in overlay.get(index_key, ())]
        return [key for key in rows if query.covers(key)]

    def _each(self, ask: Callable[[A], T], requests: list[A]) -> Iterable[T]:
        if self.pool is None or len(requests) < 2:
            return map(ask, requests)
        return self.pool.map(ask, requests)


def apply_overlay(page: Page, rows: Mapping[Key, Item | None]) -> Page:
    """An index answer with open rows, read by key, laid over it: the higher version wins, and a row that is gone drops
    out."""
    return Page(replace_older(page.items, rows), page.after)
