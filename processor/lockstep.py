"""Runs many steps side by side: gathers what they ask next, asks each distinct read once, sends, and hands back the answers.

Promises: keys go out in one batched read, equal queries once per run, writes and messages one by one in the order of the
steps. A store that is faster in parallel gets its queries and writes from a pool. Keeps no answer beyond a run.

Open changes are laid over every index answer here, on the way up and on the way down: where a row that is open has, or had, the
key that a query asks for, the row itself is read by key with the same turn's reads, and the higher version wins. Steps check the
columns of what they get, so a row that has left the key falls out there. Edges need none of that: they and the rows that they
name are read strongly consistent.
"""

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

from processor.model.places import Places
from processor.model.step import EdgePage, Edges, Message, Paged, Raw, Request, Send, Step
from statestore.edges import row_of
from statestore.keys import Key
from statestore.store import Delete, Item, Outcome, Page, Query, Store, Write

_READS = frozenset((Key, Query, Paged, Raw, Edges, EdgePage))
_WRITES = (Write, Delete)
PAGE = 1_000
T = TypeVar("T")
A = TypeVar("A")


def calm_collector() -> None:
    """Lets the garbage collector run less often, once per process that runs steps: a round makes many values that live as long
    as the round and hold no cycles. Worth a fifth of the steps' time (docs/benchmarks.md)."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)


class Outbox(Protocol):
    """Where messages go."""

    def send(self, message: Message) -> None:
        """Takes a message to send; an error of delivery may surface later, at `flush`."""

    def flush(self) -> None:
        """Returns when every message sent was acknowledged; raises otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lockstep:
    """Runs steps against a store and an outbox. `open`: where rows are to be laid over index answers. `pool`: threads
    for queries and writes, None to ask one after the other. `page`: rows of a page."""

    store: Store
    outbox: Outbox
    open: tuple[Places, ...] = ()
    pool: ThreadPoolExecutor | None = None
    page: int = PAGE

    def run(self, steps: Iterable[Step[T]]) -> list[T]:
        """The results of the steps, in their order."""
        turn: list[tuple[int, Step[T], Any]] = [(i, step, None) for i, step in enumerate(steps)]
        results: list[Any] = [None] * len(turn)
        known: dict[Any, Any] = {}
        while turn:
            asking: list[tuple[int, Step[T], tuple[Request, ...]]] = []
            for i, step, answers in turn:
                try:
                    asking.append((i, step, step.send(answers)))
                except StopIteration as end:
                    results[i] = end.value
            done = self._ask(chain.from_iterable([requests for _, _, requests in asking]), known)
            turn = [
                (i, step, tuple([known[r] if type(r) in _READS else done[id(r)] for r in requests]))
                for i, step, requests in asking
            ]
        return results

    def _ask(self, requests: Iterable[Request], known: dict[Any, Any]) -> dict[int, Any]:
        """Answers of writes and messages by identity; reads go to `known`."""
        gets: dict[Key, None] = {}
        queries: dict[Query | Paged | Raw, None] = {}
        edges: dict[Edges | EdgePage, None] = {}
        writes: list[Write | Delete] = []
        done: dict[int, Any] = {}
        for request in requests:
            if isinstance(request, Key):
                gets[request] = None
            elif isinstance(request, _WRITES):
                writes.append(request)
            elif isinstance(request, Send):
                self.outbox.send(request.message)
                done[id(request)] = None
            elif request in known:
                continue
            elif isinstance(request, Edges | EdgePage):
                edges[request] = None
            else:
                queries[request] = None
        open_rows = [self._open_rows(q) for q in queries]
        pages = list(self._each(self._edges, list(edges)))
        named = [list(map(row_of, page.items)) for page in pages]
        gets.update(dict.fromkeys(chain(*open_rows, *named)))
        if gets:
            found = self.store.get(gets)
            known.update(gets)
            known.update(found)
        for query, rows, answer in zip(queries, open_rows, self._each(self._query, list(queries)), strict=True):
            if rows:
                over = {key: known[key] for key in rows}
                paged = isinstance(answer, Page)
                answer = Page(laid_over(answer.items, over), answer.after) if paged else laid_over(answer, over)
            known[query] = answer
        for request, page, rows in zip(edges, pages, named, strict=True):
            items = [item for key in rows if (item := known[key]) is not None]
            known[request] = Page(items, page.after) if isinstance(request, EdgePage) else items
        done.update(zip(map(id, writes), self._each(self._write, writes), strict=True))
        return done

    def _write(self, request: Write | Delete) -> Outcome:
        return self.store.delete(request) if isinstance(request, Delete) else self.store.write(request)

    def _query(self, query: Query | Paged | Raw) -> Any:
        if isinstance(query, Paged):
            return self.store.page(query.query, query.after, self.page)
        return self.store.query(query.query if isinstance(query, Raw) else query)

    def _edges(self, asked: Edges | EdgePage) -> Page:
        """Edges of one key: a page, or all as one."""
        if isinstance(asked, EdgePage):
            return self.store.page(asked.edges.partition, asked.after, self.page)
        return Page(self.store.partition(asked.partition), None)

    def _open_rows(self, asked: Query | Paged | Raw) -> Sequence[Key]:
        """The open rows that the answer may lack, or show too old."""
        if isinstance(asked, Raw):
            return ()
        query, after = asked if isinstance(asked, Paged) else (asked, None)
        if after is not None:
            return ()
        at = (query.slot, query.value)
        rows = [key for places in self.open for key in places.get(at, ())]
        if query.pk is not None:
            return [key for key in rows if key.pk == query.pk]
        return [key for key in rows if key.pk.startswith(query.pk_prefix)] if query.pk_prefix else rows

    def _each(self, ask: Callable[[A], T], requests: list[A]) -> Iterable[T]:
        if self.pool is None or len(requests) < 2:
            return map(ask, requests)
        return self.pool.map(ask, requests)


def laid_over(items: Iterable[Item], rows: Mapping[Key, Item | None]) -> list[Item]:
    """An index answer with open rows, read by key, laid over it: the higher version wins, a row that is gone is out."""
    answer = {(item["PK"], item["SK"]): item for item in items}
    for key, row in rows.items():
        if row is None:
            answer.pop(key, None)
        elif key not in answer or answer[key]["_v"] <= row["_v"]:
            answer[key] = row
    return list(answer.values())
