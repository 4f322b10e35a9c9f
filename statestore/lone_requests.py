"""The requests of a turn, for stores that send them one by one: each by the method of the store that does it alone."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from statestore.store import Delete, Page, Read, Store, Write, WriteOutcome

Each = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Calls a function with each of these, and returns the answers in their order: `map`, or threads."""


def read_alone(store: Store, read: Read) -> Page:
    """The answer to one read. Raises the errors of the store."""
    source, after, limit = read
    if limit is not None:
        return store.page(source, after, limit)
    return Page(store.partition(source) if isinstance(source, str) else store.query(source), None)


def write_alone(store: Store, request: Write | Delete) -> WriteOutcome:
    """The outcome of one write or delete. Raises the errors of the store."""
    return store.delete(request) if isinstance(request, Delete) else store.write(request)


def write_in_batches(
    store: Store, requests: Sequence[Write | Delete], most: int, each: Each = map
) -> list[WriteOutcome]:
    """The outcomes of writes and deletes: up to `most` plain writes by one `write_batch`, the others alone. `each`: sends the
    batches, as `map` does. Raises the errors of the store."""
    plain = [n for n, request in enumerate(requests) if most > 1 and isinstance(request, Write) and request.plain]
    batches = [[n] for n in sorted({*range(len(requests))}.difference(plain))]
    batches += [plain[start : start + most] for start in range(0, len(plain), most)]

    def send(batch: list[int]) -> list[WriteOutcome]:
        if len(batch) == 1:
            return [write_alone(store, requests[batch[0]])]
        return store.write_batch([request for n in batch if isinstance(request := requests[n], Write)])

    outcomes = dict(zip(chain.from_iterable(batches), chain.from_iterable(each(send, batches)), strict=True))
    return [outcomes[n] for n in range(len(requests))]
