"""Switches for what the job expects of the store and of Spark: whole answers, consistent key reads, one stage after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from processor.engine.protocol.open_changes import OpenChanges
from processor.engine.rounds.driver import Driver
from processor.job.run.job import BatchFrame
from statestore.keys import Key
from statestore.memory import MemoryStore
from tests.simulator.actor import TableClient
from tests.simulator.fence import WriteFence
from tests.simulator.spark import Frame
from tests.simulator.table import LateTable
from tests.simulator.without.switch import always, replacing

first_page_only = replacing(
    (
        TableClient,
        "query",
        lambda _: lambda self, query: self.page(query, None, self._actor.world.conditions.index_page).items,
    ),
)
no_retry_of_unprocessed = replacing(
    (TableClient, "_get_all", lambda _: lambda self, read, keys: self.get_once(read, sorted(keys))[0])
)
late_and_consistent = replacing((TableClient, "consistent", lambda _: True))
no_write_fence = replacing((WriteFence, "check", always(None)))


@contextmanager
def late_key_reads() -> Iterator[None]:
    """Key reads return the items of one second ago."""
    past: dict[Key, list[tuple[float, Any]]] = {}

    def remember_item(replace: Any) -> Any:
        def changed(self: LateTable, key: Key, old: Any, new: Any) -> None:
            past.setdefault(key, []).append((self._clock(), new))
            replace(self, key, old, new)

        return changed

    def read_past(_: Any) -> Any:
        def get(self: MemoryStore, keys: Any) -> Any:
            versions = {key: [item for at, item in past.get(key, ()) if at <= self._clock() - 1][-1:] for key in keys}
            return {key: items[0] for key, items in versions.items() if items and items[0] is not None}

        return get

    with replacing((LateTable, "_replace", remember_item), (MemoryStore, "get", read_past))():
        yield


def _task_by_task(process: Any) -> Any:
    """Each task of a batch publishes before the next task writes. The driver takes their open changes when all have ended."""

    def changed(self: Driver, batch: BatchFrame, *args: Any) -> None:
        opened: list[Any] = []
        frame: Any = batch.frame
        with replacing((OpenChanges, "add", lambda _: lambda *call: opened.append(call)))():
            for partition in frame.partitions:
                alone: Any = Frame(frame.world, [partition])
                process(self, replace(batch, frame=alone), *args)
        for changes, *call in opened:
            changes.add(*call)

    return changed


no_barrier = replacing((Driver, "process_batch", _task_by_task))
