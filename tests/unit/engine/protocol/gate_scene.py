"""A driver's gates over a store in memory, for tests."""

from collections.abc import Iterable
from typing import Any

from processor.engine.protocol.gate_items import Held, HeldPortion, SeenPlace, SeenRecords, make_portions, ranges_of
from processor.engine.protocol.held_roots import HeldRoots
from processor.language.product.product import Gate
from processor.values.record import TransactionEnd
from statestore.memory import MemoryStore
from statestore.store import Delete, Write

TOPIC = "app.transaction"
ORDER = ("order", "7")


def seen_of(time: float, offset: int = 1, **orders: int) -> SeenRecords:
    """These records, one of each table: `lines=2` is the second one of that table."""
    places = {(f"public.{table}", 0): SeenPlace(offset, offset, ranges_of([order])) for table, order in orders.items()}
    return SeenRecords(time, time, places)


class Gates:
    """A driver's gates over a store in memory."""

    def __init__(self, **gate: Any) -> None:
        self.store, self.gate, self.round, self.run = MemoryStore(), Gate(**gate), 0, 0
        self.held = self.start(0.0)

    def start(self, now: float) -> HeldRoots:
        """A run that begins."""
        self.run += 1
        self.held = HeldRoots(run=self.run)
        topics = {"order": frozenset({TOPIC})} if self.gate.whole else {}
        self.held.adopt({"order": self.gate}, topics, {TOPIC: ["public.orders", "public.lines"]}, now)
        self.delete(self.held.reload(self.store.partition("OPEN"), now, now))
        return self.held

    def touch(self, at: float, *transactions: str, time: float = 1.0, offset: int = 1, **orders: int) -> None:
        """A round in which transactions touch the order by these records, which have this time and offset in Kafka."""
        self.round += 1
        seen = {(TOPIC, name): seen_of(time, offset, **orders) for name in transactions if orders}
        self.add(Held(roots={ORDER: time}, seen=seen), at)

    def add(self, held: Held, at: float) -> list[HeldPortion]:
        portions = list(make_portions(held, self.run, self.round, at))
        for portion in portions:
            self.store.write(portion.write())
        self.held.add(portions, at)
        return portions

    def ends(self, name: str, time: float = 1.0, **counts: int) -> None:
        end = TransactionEnd(name, {f"public.{table}": n for table, n in counts.items()}, time)
        self.held.take_ends(TOPIC, [end])

    def release(self, now: float) -> bool:
        """Whether the order goes out now."""
        due = list(self.held.due(now).times)
        self.round += 1
        for write in self.held.note_release(due, self.round, now, now):
            self.store.write(write)
        self.delete(self.held.released(due, now))
        return ORDER in due

    def delete(self, requests: Iterable[Write | Delete]) -> None:
        for request in requests:
            self.store.write(request) if isinstance(request, Write) else self.store.delete(request)
