"""When roots go out at the gates of their products, and what a crash leaves of them."""

from collections.abc import Iterable
from math import inf
from typing import Any

from processor.gates.held_portion import Held, HeldPortion, SeenPlace, SeenRecords, make_portions
from processor.gates.held_roots import HeldRoots
from processor.gates.ranges import ranges_of
from processor.gates.start import PATIENCE_SECONDS
from processor.product.gate import OPEN, Gate
from processor.records.source_transaction import TransactionEnd
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


def test_a_root_waits_until_its_transaction_is_complete() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0, "t1", orders=1)
    assert gates.held.transactions.missing_ends() == {TOPIC: 1.0}
    assert not gates.release(1.0)
    gates.ends("t1", orders=1, lines=2, elsewhere=5)
    gates.touch(2.0, "t1", lines=1)
    assert not gates.release(2.0)
    gates.touch(3.0, "t1", lines=1)  # the same record again
    assert not gates.release(3.0)
    gates.touch(4.0, "t1", lines=2)
    assert gates.release(4.0)
    assert gates.held.next_due() is None


def test_a_root_waits_for_a_transaction_that_was_open_when_it_changed() -> None:
    gates = Gates(whole=True)
    gates.add(Held(seen={(TOPIC, "t1"): seen_of(1.0, lines=1)}), 0.0)
    gates.touch(1.0, "t2", orders=1)
    gates.ends("t2", orders=1)
    assert not gates.release(2.0)
    gates.add(Held(seen={(TOPIC, "t3"): seen_of(1.0, lines=1)}), 3.0)
    gates.ends("t1", lines=1)
    assert gates.release(3.0)


def test_a_transaction_without_an_end_delays_no_root_for_ever() -> None:
    gates = Gates(whole=True, at_most=10.0)
    gates.add(Held(seen={(TOPIC, "t1"): seen_of(1.0, lines=1)}), 0.0)
    gates.touch(8.0, "t2", orders=1)
    gates.ends("t2", orders=1)
    assert not gates.release(9.9)
    assert gates.held.next_due() == 10.0
    assert gates.release(10.0)
    assert gates.held.transactions.given_up == 1
    gates.touch(11.0)
    assert gates.release(11.0)


def test_a_root_waits_for_each_transaction_that_touched_it() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0, "t1", orders=1)
    gates.touch(1.0, "t2", lines=1)
    gates.ends("t1", orders=1)
    assert not gates.release(2.0)
    gates.ends("t2", lines=1)
    assert gates.release(2.0)


def test_no_root_waits_longer_than_at_most_and_changes_do_not_begin_it_again() -> None:
    gates = Gates(whole=True, at_most=60.0)
    gates.touch(0.0, "t1", orders=1)
    gates.touch(50.0, "t2", orders=1)
    assert not gates.release(59.0)
    assert gates.held.next_due() == 60.0
    assert gates.release(60.0)


def test_a_crash_keeps_the_roots_the_records_and_the_time() -> None:
    gates = Gates(whole=True, at_most=60.0)
    gates.touch(0.0, "t1", orders=1)
    gates.start(20.0).expect({}, {}, 20.0)
    gates.touch(21.0, "t1", lines=1)
    gates.ends("t1", orders=1, lines=1)
    assert gates.release(30.0)
    gates.touch(35.0, "t2", orders=1)  # the portions of t1 stay: the batch may come again
    gates.start(40.0).expect({}, {}, 40.0)
    gates.ends("t1", orders=1, lines=1)
    assert gates.held.next_due() == 95.0
    gates.start(200.0).expect({}, {}, 200.0)
    assert gates.held.next_due() == 200.0 + PATIENCE_SECONDS


def test_a_change_after_a_start_does_not_inherit_the_time_of_a_hold_that_was_released() -> None:
    gates = Gates(whole=True, at_most=60.0)
    seen = {(TOPIC, "t1"): seen_of(1.0, orders=1)}
    gates.add(Held(roots={ORDER: 1.0, ("order", "8"): 1.0}, seen=seen), 0.0)
    gates.ends("t1", orders=1)
    gates.delete(gates.held.released([ORDER], 1.0))  # its portion stays: another root uses it
    gates.start(50.0).expect({}, {}, 50.0)
    gates.ends("t1", orders=1)
    gates.touch(55.0, "t2", orders=1)
    assert not gates.release(61.0)


def test_after_a_start_a_root_waits_until_the_job_has_read_what_its_topics_had() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0)
    held, at = gates.start(5.0), ("app.public.orders", 0)
    assert not gates.release(6.0)
    held.expect({at: 10}, {at: 7}, 6.0)
    assert not gates.release(7.0)
    held.read({at: 9}, 8.0)
    assert not gates.release(8.0)
    held.read({at: 10}, 9.0)
    assert gates.release(9.0)


def test_a_run_that_cannot_read_its_topics_releases_a_root_at_last_and_counts_it() -> None:
    gates = Gates(whole=True, at_most=20.0)
    gates.touch(0.0)
    held = gates.start(5.0)
    assert held.due(24.9).times == {}
    assert held.due(25.0).incomplete == {ORDER}


def test_the_items_of_released_roots_go_once_no_batch_repeats_their_records() -> None:
    gates = Gates(whole=True)
    gates.held.begin_batch(1, 0.0)
    gates.touch(0.0, "t1", orders=1)
    gates.ends("t1", orders=1)
    assert gates.release(1.0)
    assert [item["SK"].split("#")[0] for item in gates.store.partition("OPEN")] == ["held"]
    gates.delete(gates.held.begin_batch(2, 2.0))
    assert gates.store.partition("OPEN") == []


def test_a_start_does_not_wait_for_a_transaction_of_which_a_portion_is_gone() -> None:
    gates = Gates(whole=True)
    gates.held.begin_batch(1, 0.0)
    gates.touch(0.0, "t1", orders=1)
    gates.touch(0.0, "t1", "t2", lines=1)
    gates.ends("t1", orders=1, lines=1)
    gates.ends("t2", lines=2)
    gates.delete(gates.held.begin_batch(2, 1.0))
    assert len(gates.store.partition("OPEN")) == 3
    gates.start(5.0).expect({}, {}, 5.0)
    gates.ends("t1", orders=1, lines=1)
    gates.touch(6.0, "t2", lines=2)
    gates.ends("t2", lines=2)
    assert gates.release(6.0)
    gates.delete(gates.held.begin_batch(3, 7.0))
    gates.delete(gates.held.begin_batch(4, 8.0))
    assert gates.store.partition("OPEN") == []


def test_all_roots_of_a_product_wait_for_the_transaction_of_a_fan_out() -> None:
    gates = Gates(whole=True)
    seen = {(TOPIC, "t1"): seen_of(1.0, orders=1)}
    gates.add(Held(seen=seen, unfound=frozenset({"order"})), 0.0)
    gates.touch(0.0)
    assert not gates.release(1.0)
    gates.ends("t1", orders=1)
    assert gates.release(1.0)


def test_a_root_waits_until_it_is_quiet() -> None:
    gates = Gates(quiet=2.0, at_most=5.0)
    gates.touch(0.0)
    gates.touch(1.5)
    assert not gates.release(3.0)
    assert gates.release(3.5)
    for second in range(10, 15):
        gates.touch(float(second))
        assert not gates.release(float(second))
    assert gates.release(15.0)


def test_messages_of_a_root_keep_their_distance_also_after_a_crash() -> None:
    gates = Gates(every=30.0)
    gates.touch(0.0)
    assert gates.release(0.0)
    gates.touch(1.0)
    assert not gates.release(1.0)
    gates.start(10.0)
    assert not gates.release(29.0)
    assert gates.release(30.0)
    gates.touch(100.0)
    assert gates.release(100.0)
    gates.release(200.0)
    gates.delete(gates.held.begin_batch(9, 200.0))
    assert gates.store.partition("OPEN") == []


def test_a_product_that_loses_its_gate_lets_its_roots_go() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0, "t1", orders=1, time=inf)
    gates.delete(gates.held.adopt({"order": OPEN}, {}, {}, 1.0))
    assert gates.release(1.0)
    assert gates.store.partition("OPEN") == []


def test_a_product_that_is_gone_leaves_nothing() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0, "t1", orders=1)
    gates.delete(gates.held.adopt({}, {}, {}, 1.0))
    assert (gates.held.next_due(), gates.store.partition("OPEN")) == (None, [])


def complete(gates: Gates, name: str, at: float) -> None:
    """A transaction of an order and a line, whose document goes out."""
    gates.held.begin_batch(int(at), at)
    gates.touch(at, name, time=at, offset=int(at), orders=1, lines=1)
    gates.ends(name, time=at, orders=1, lines=1)
    assert gates.release(at)


AT = ("app.public.orders", 0)


def test_a_transaction_that_comes_again_holds_its_product_until_the_newest_has_come_again() -> None:
    gates = Gates(whole=True)
    complete(gates, "t1", 10.0)
    complete(gates, "t2", 11.0)
    gates.touch(50.0, "t1", time=50.0, offset=50, orders=1)
    gates.ends("t1", time=50.0, orders=1, lines=1)
    gates.held.expect({AT: 50}, {AT: 51}, 51.0)
    assert not gates.release(51.0)
    gates.ends("t2", time=52.0, orders=1, lines=1)
    assert gates.held.asks
    gates.held.expect({AT: 60}, {AT: 51}, 52.0)
    assert not gates.release(52.0)
    gates.touch(53.0, "t2", time=52.0, offset=52, orders=1, lines=1)
    gates.held.read({AT: 60}, 53.0)
    assert gates.release(53.0)
    complete(gates, "t3", 54.0)


def test_a_part_of_a_forgotten_transaction_that_comes_again_opens_it_for_no_longer_than_the_others() -> None:
    gates = Gates(whole=True)
    complete(gates, "t1", 10.0)
    gates.held.begin_batch(20, 20.0)
    gates.touch(50.0, "t1", time=50.0, offset=50, lines=1)
    assert not gates.release(50.0)
    gates.ends("t1", time=50.0, orders=1, lines=1)
    gates.held.expect({AT: 60}, {AT: 60}, 51.0)
    assert gates.release(51.0)


def test_the_last_transaction_before_a_kill_comes_again_and_waits_until_its_copies_are_read() -> None:
    gates = Gates(whole=True)
    gates.touch(10.0, "t1", time=10.0, offset=10, orders=1)
    gates.touch(50.0, "t1", time=50.0, offset=50, orders=1)
    assert not gates.release(51.0)
    gates.touch(52.0, "t1", time=52.0, offset=52, lines=1)
    gates.ends("t1", time=52.0, orders=1, lines=1)
    assert not gates.release(52.0)
    gates.held.expect({AT: 60}, {AT: 59}, 52.0)
    assert not gates.release(53.0)
    gates.held.read({AT: 60}, 54.0)
    assert gates.release(54.0)


def test_a_copy_from_before_the_end_of_a_forgotten_transaction_holds_until_the_topics_are_read() -> None:
    gates = Gates(whole=True)
    gates.touch(10.0, "t1", time=10.0, offset=10, orders=1)
    gates.touch(20.0, "t1", time=52.0, offset=52, lines=1)
    gates.ends("t1", time=52.0, orders=1, lines=1)
    assert gates.release(20.0)
    gates.held.begin_batch(2, 21.0)
    gates.touch(22.0, "t1", time=50.0, offset=50, orders=1)
    assert not gates.release(22.0)
    gates.held.expect({AT: 60}, {AT: 60}, 23.0)
    assert gates.release(23.0)


def test_a_batch_that_is_tried_again_is_no_copy() -> None:
    gates = Gates(whole=True)
    gates.touch(10.0, "t1", time=10.0, offset=10, orders=1)
    gates.touch(20.0, "t1", time=10.0, offset=10, orders=1)
    gates.ends("t1", time=11.0, orders=1)
    assert gates.release(20.0)


def test_after_a_start_the_ends_alone_tell_that_a_transaction_comes_again() -> None:
    gates = Gates(whole=True)
    gates.touch(50.0, "t1", time=50.0, offset=50, orders=1)
    gates.start(60.0).expect({}, {}, 60.0)
    gates.ends("t1", time=10.0, orders=1)
    gates.ends("t2", time=11.0, orders=1)
    gates.ends("t1", time=50.0, orders=1)
    assert not gates.release(61.0)
    gates.ends("t2", time=51.0, orders=1)
    gates.held.expect({}, {}, 62.0)
    assert gates.release(62.0)


def test_a_transaction_that_comes_again_and_never_ends_holds_no_root_for_longer_than_at_most() -> None:
    gates = Gates(whole=True, at_most=20.0)
    complete(gates, "t1", 10.0)
    complete(gates, "t2", 11.0)
    gates.touch(50.0, "t1", time=50.0, offset=50, orders=1)
    assert gates.held.due(69.9).times == {}
    assert gates.held.due(70.0).incomplete == {ORDER}
    assert gates.held.transactions.repeats == {}
