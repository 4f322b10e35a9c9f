"""Without what the store and Spark are relied upon for: whole answers, strong key reads, stages one after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from processor.model.open_changes import OpenChanges
from processor.rounds import Rounds
from statestore.keys import Key
from statestore.memory import MemoryStore
from tests.simulator.line import TableClient
from tests.simulator.spark import Frame
from tests.simulator.table import LateTable
from tests.simulator.without.switch import replacing

first_page_only = replacing(
    (TableClient, "query", lambda _: lambda self, query: self.page(query, None, self._line.world.temper.answer).items),
)
unprocessed_dropped = replacing((TableClient, "get", lambda _: lambda self, keys: self.some(sorted(keys))[0]))


@contextmanager
def eventual_reads() -> Iterator[None]:
    """Key reads answer as the table was a second ago."""
    past: dict[Key, list[tuple[float, Any]]] = {}

    def noted(replace: Any) -> Any:
        def changed(self: LateTable, key: Key, old: Any, new: Any) -> None:
            past.setdefault(key, []).append((self._clock(), new))
            replace(self, key, old, new)

        return changed

    def late(_: Any) -> Any:
        def get(self: MemoryStore, keys: Any) -> Any:
            stood = {key: [item for at, item in past.get(key, ()) if at <= self._clock() - 1][-1:] for key in keys}
            return {key: items[0] for key, items in stood.items() if items and items[0] is not None}

        return get

    with replacing((LateTable, "_replace", noted), (MemoryStore, "get", late))():
        yield


def _task_by_task(live: Any) -> Any:
    """Each task of a batch publishes before the next one writes; what they opened is known when all have ended."""

    def changed(self: Rounds, frame: Any, *args: Any) -> None:
        opened: list[Any] = []
        with replacing((OpenChanges, "opened", lambda _: lambda *call: opened.append(call)))():
            for partition in frame.partitions:
                live(self, Frame(frame.world, [partition]), *args)
        for held, *call in opened:
            held.opened(*call)

    return changed


no_barrier = replacing((Rounds, "live", _task_by_task))
