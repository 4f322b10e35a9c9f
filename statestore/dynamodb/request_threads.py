"""The threads of a store, which send requests side by side: DynamoDB answers many at a time, and each takes milliseconds."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


class RequestThreads:
    """So many threads; with 1 the caller itself sends one request after the other. A forked process needs threads of its own."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="requests") if threads > 1 else None

    def each(self, ask: Callable[[A], T], requests: Sequence[A]) -> Iterable[T]:
        """The answers to all requests, in their order. Raises the first error of `ask`."""
        if self._pool is None or len(requests) < 2:
            return map(ask, requests)
        return self._pool.map(ask, requests)

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
