"""The requests of a turn, for stores that send them one by one: each by the method of the store that does it alone."""

from statestore.store import Delete, Page, Read, Store, Write, WriteOutcome


def read_alone(store: Store, read: Read) -> Page:
    """The answer to one read. Raises the errors of the store."""
    source, after, limit = read
    if limit is not None:
        return store.page(source, after, limit)
    return Page(store.partition(source) if isinstance(source, str) else store.query(source), None)


def write_alone(store: Store, request: Write | Delete) -> WriteOutcome:
    """The outcome of one write or delete. Raises the errors of the store."""
    return store.delete(request) if isinstance(request, Delete) else store.write(request)
