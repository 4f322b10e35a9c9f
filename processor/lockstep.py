"""Runs many steps side by side: gathers what they ask next, asks each distinct read once, sends, and hands back the answers.

Promises: keys go out in one batched read, equal queries once per run, writes and messages one by one in the order of the
steps. A store that is faster in parallel gets its queries and writes from a pool. Keeps no answer beyond a run.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from processor.model.step import Message, Request, Send, Step
from statestore.keys import Key
from statestore.store import Query, Store, Write

T = TypeVar("T")
A = TypeVar("A")


class Outbox(Protocol):
    """Where messages go."""

    def send(self, message: Message) -> None:
        """Takes a message to send; an error of delivery may surface later, at `flush`."""

    def flush(self) -> None:
        """Returns when every message sent was acknowledged; raises otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lockstep:
    """Runs steps against a store and an outbox. `pool`: threads for queries and writes, None to ask one after the other."""

    store: Store
    outbox: Outbox
    pool: ThreadPoolExecutor | None = None

    def run(self, steps: Iterable[Step[T]]) -> list[T]:
        """The results of the steps, in their order."""
        results: dict[int, T] = {}
        waiting: list[tuple[int, Step[T], tuple[Request, ...]]] = []
        for i, step in enumerate(steps):
            self._advance(i, step, None, waiting, results)
        known: dict[Request, Any] = {}
        while waiting:
            turn, waiting = waiting, []
            answers = self._ask([request for _, _, requests in turn for request in requests], known)
            for i, step, requests in turn:
                self._advance(i, step, _answers(requests, answers, known), waiting, results)
        return [results[i] for i in sorted(results)]

    @staticmethod
    def _advance(
        i: int,
        step: Step[T],
        answers: tuple[Any, ...] | None,
        waiting: list[tuple[int, Step[T], tuple[Request, ...]]],
        results: dict[int, T],
    ) -> None:
        try:
            requests = next(step) if answers is None else step.send(answers)
        except StopIteration as end:
            results[i] = end.value
        else:
            waiting.append((i, step, requests))

    def _ask(self, requests: Sequence[Request], known: dict[Request, Any]) -> dict[int, Any]:
        """Answers of writes and messages by identity; reads go to `known`."""
        gets: dict[Key, None] = {}
        queries: dict[Query, None] = {}
        writes: list[Write] = []
        done: dict[int, Any] = {}
        for request in requests:
            match request:
                case Key():
                    gets[request] = None
                case Query():
                    if request not in known:
                        queries[request] = None
                case Write():
                    writes.append(request)
                case Send():
                    self.outbox.send(request.message)
                    done[id(request)] = None
        if gets:
            found = self.store.get(gets)
            known.update((key, found.get(key)) for key in gets)
        known.update(zip(queries, self._each(self.store.query, list(queries)), strict=True))
        done.update(zip(map(id, writes), self._each(self.store.write, writes), strict=True))
        return done

    def _each(self, ask: Callable[[A], T], requests: list[A]) -> Iterable[T]:
        if self.pool is None or len(requests) < 2:
            return map(ask, requests)
        return self.pool.map(ask, requests)


def _answers(requests: Sequence[Request], done: dict[int, Any], known: dict[Request, Any]) -> tuple[Any, ...]:
    return tuple([known[r] if isinstance(r, Key | Query) else done[id(r)] for r in requests])
