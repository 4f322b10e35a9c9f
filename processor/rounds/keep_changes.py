"""Writes and deletes the durable items of open changes (`processor.progress.open_changes`)."""

from processor.progress.open_changes import OpenChanges
from processor.progress.segment import Segment
from statestore.errors import Terminal
from statestore.store import Delete, Store, TooLarge


def keep_segment(segment: Segment, store: Store) -> None:
    """Makes open changes durable."""
    if isinstance(store.write(segment.write()), TooLarge):
        pk = segment.change(0).key.pk
        raise Terminal(
            f"{pk}: the former keys of a row, whose changes are open, fill an item: wait W, then start again"
        )


def close_open_changes(changes: OpenChanges, store: Store, run: int, round_: int, now: float) -> None:
    """Closes the changes that the indexes have shown long enough; deletes and gathers their durable items."""
    unused = changes.close(now)
    if changes.fragmented():
        gathered = changes.gather(run, round_)
        for segment in gathered:
            keep_segment(segment, store)
        unused += changes.replace_left(gathered)
    for item in unused:
        store.delete(Delete(key=item))
