"""Writes and deletes the durable items of open changes (`processor.progress.open_changes`)."""

from collections.abc import Sequence

from processor.progress.open_changes import OpenChange, OpenChanges, write_changes
from statestore.errors import Terminal
from statestore.keys import Key
from statestore.store import Delete, Store, TooLarge


def keep_changes(item: Key, changes: Sequence[OpenChange], store: Store) -> None:
    """Makes open changes durable."""
    if isinstance(store.write(write_changes(item, changes)), TooLarge):
        raise Terminal(
            f"{changes[0].key.pk}: the former keys of a row, whose changes are open, fill an item: wait W, then start again"
        )


def close_open_changes(changes: OpenChanges, store: Store, run: int, round_: int, now: float) -> None:
    """Closes the changes that the indexes have shown long enough; deletes and compacts their durable items."""
    unused = changes.close(now)
    if changes.fragmented():
        compacted, replaced = changes.compact(run, round_)
        for item, portion in compacted.items():
            keep_changes(item, portion, store)
        unused += replaced
    for item in unused:
        store.delete(Delete(key=item))
