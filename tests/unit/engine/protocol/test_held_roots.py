"""When roots go out at the gates of their products, and what a crash leaves of them."""

from math import inf

import pytest

from processor.engine.protocol import held_roots
from processor.engine.protocol.gate_items import Held
from processor.engine.protocol.source_transactions import PATIENCE_SECONDS
from processor.language.product.product import OPEN
from tests.unit.engine.protocol.gate_scene import ORDER, TOPIC, Gates, seen_of


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
    gates.start(20.0).note_topic_ends({}, {}, 20.0)
    gates.touch(21.0, "t1", lines=1)
    gates.ends("t1", orders=1, lines=1)
    assert gates.release(30.0)
    gates.touch(35.0, "t2", orders=1)  # the portions of t1 stay: the batch may come again
    gates.start(40.0).note_topic_ends({}, {}, 40.0)
    gates.ends("t1", orders=1, lines=1)
    assert gates.held.next_due() == 95.0
    gates.start(200.0).note_topic_ends({}, {}, 200.0)
    assert gates.held.next_due() == 200.0 + PATIENCE_SECONDS


def test_a_run_takes_what_the_run_before_left_after_its_start_and_nothing_twice() -> None:
    """A zombie writes roots of its walk's page, and then moves the walk behind them, until the new run has claimed the walk."""
    gates = Gates(quiet=1.0, at_most=60.0)
    zombie = gates.held
    gates.start(20.0)
    left, gates.run = gates.held, 1
    gates.held = zombie
    gates.touch(21.0)
    gates.held, gates.run = left, 2
    gates.add(Held(roots={("order", "8"): 1.0}), 21.0)
    assert not gates.release(30.0)
    items = gates.store.partition("OPEN")
    gates.delete(gates.held.reload_later(items, 30.0, 30.0))
    assert gates.release(31.0)
    assert gates.held.reload_later(gates.store.partition("OPEN"), 31.0, 31.0) == []
    assert not gates.held.held


def test_a_change_after_a_start_does_not_inherit_the_time_of_a_hold_that_was_released() -> None:
    gates = Gates(whole=True, at_most=60.0)
    seen = {(TOPIC, "t1"): seen_of(1.0, orders=1)}
    gates.add(Held(roots={ORDER: 1.0, ("order", "8"): 1.0}, seen=seen), 0.0)
    gates.ends("t1", orders=1)
    gates.delete(gates.held.released([ORDER], 1.0))  # its portion stays: another root uses it
    gates.start(50.0).note_topic_ends({}, {}, 50.0)
    gates.ends("t1", orders=1)
    gates.touch(55.0, "t2", orders=1)
    assert not gates.release(61.0)


def test_after_a_start_a_root_waits_until_the_job_has_read_what_its_topics_had() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0)
    held, at = gates.start(5.0), ("app.public.orders", 0)
    assert not gates.release(6.0)
    held.note_topic_ends({at: 10}, {at: 7}, 6.0)
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
    gates.start(5.0).note_topic_ends({}, {}, 5.0)
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


def blocked_product() -> Gates:
    """An order that waits for no transaction of its own, after a round that could not find the roots of an open transaction."""
    gates = Gates(whole=True, at_most=60.0)
    gates.touch(0.0)
    gates.add(Held(unfound=frozenset({"order"}), seen={(TOPIC, "t1"): seen_of(1.0, lines=1)}), 1.0)
    return gates


def test_roots_of_a_product_wait_for_a_transaction_whose_roots_are_unknown_also_after_an_edit() -> None:
    for edited in (False, True):
        gates = blocked_product()
        if edited:
            tables = {TOPIC: ["public.orders", "public.lines"]}
            assert gates.held.adopt({"order": gates.gate}, {"order": frozenset({TOPIC})}, tables, 2.0) == []
        assert not gates.release(3.0)
        gates.ends("t1", lines=1)
        assert gates.release(4.0)


def test_an_edit_that_takes_the_gate_away_lets_go_of_all_that_waited() -> None:
    gates = blocked_product()
    gates.delete(gates.held.adopt({}, {}, {}, 2.0))
    assert gates.store.partition("OPEN") == []
    assert gates.held.next_due() is None


def test_the_item_of_unknown_roots_goes_with_the_next_batch_after_their_transaction() -> None:
    gates = blocked_product()
    gates.delete(gates.held.begin_batch(1, 2.0))
    assert len(gates.store.partition("OPEN")) == 2
    gates.ends("t1", lines=1)
    assert gates.release(3.0)
    for batch in (2, 3):
        gates.delete(gates.held.begin_batch(batch, 4.0))
    assert [item for item in gates.store.partition("OPEN") if "held" in item["SK"]] == []


def test_an_item_that_names_unknown_roots_alone_stays_while_a_transaction_is_open() -> None:
    gates = Gates(whole=True, at_most=60.0)
    gates.add(Held(seen={(TOPIC, "t1"): seen_of(1.0, lines=1)}), 0.0)
    (portion,) = gates.add(Held(unfound=frozenset({"order"})), 1.0)
    gates.delete(gates.held.begin_batch(1, 2.0))
    assert gates.store.get([portion.item])
    gates.ends("t1", lines=1)
    gates.delete(gates.held.begin_batch(2, 3.0))
    assert not gates.store.get([portion.item])


def test_a_root_that_changed_before_all_open_transactions_waits_for_none() -> None:
    gates = Gates(whole=True)
    gates.touch(0.0)
    gates.add(Held(seen={(TOPIC, "t1"): seen_of(1.0, lines=1)}), 1.0)
    assert gates.held.blocker(ORDER) is None
    assert gates.release(1.0)


def test_a_batch_that_is_repeated_forgets_none_of_its_own_transactions() -> None:
    gates = Gates(whole=True)
    gates.held.begin_batch(7, 0.0)
    gates.touch(0.0, "t1", orders=1)
    gates.ends("t1", orders=1)
    assert gates.release(1.0)
    assert gates.held.begin_batch(7, 1.0) == []
    assert gates.held.begin_batch(8, 2.0) != []


def test_a_round_takes_a_bounded_number_of_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_roots, "ROOTS_PER_ROUND", 2)
    gates = Gates(whole=True)
    gates.add(Held(roots={("order", str(n)): 1.0 for n in range(5)}), 0.0)
    sizes = []
    for now in (1.0, 2.0, 3.0, 4.0):
        due = list(gates.held.due(now).times)
        gates.delete(gates.held.released(due, now))
        sizes.append(len(due))
    assert sizes == [2, 2, 1, 0]


def test_a_start_asks_where_the_topics_end() -> None:
    gates = Gates(whole=True)
    assert not gates.held.needs_topic_ends
    assert gates.start(20.0).needs_topic_ends
    gates.held.note_topic_ends({}, {}, 20.0)
    assert not gates.held.needs_topic_ends
