"""Transactions that a connector sends again after it was killed."""

from tests.unit.engine.protocol.gate_scene import ORDER, Gates


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
    gates.held.note_topic_ends({AT: 50}, {AT: 51}, 51.0)
    assert not gates.release(51.0)
    gates.ends("t2", time=52.0, orders=1, lines=1)
    assert gates.held.needs_topic_ends
    gates.held.note_topic_ends({AT: 60}, {AT: 51}, 52.0)
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
    gates.held.note_topic_ends({AT: 60}, {AT: 60}, 51.0)
    assert gates.release(51.0)


def test_the_last_transaction_before_a_kill_comes_again_and_waits_until_its_copies_are_read() -> None:
    gates = Gates(whole=True)
    gates.touch(10.0, "t1", time=10.0, offset=10, orders=1)
    gates.touch(50.0, "t1", time=50.0, offset=50, orders=1)
    assert not gates.release(51.0)
    gates.touch(52.0, "t1", time=52.0, offset=52, lines=1)
    gates.ends("t1", time=52.0, orders=1, lines=1)
    assert not gates.release(52.0)
    gates.held.note_topic_ends({AT: 60}, {AT: 59}, 52.0)
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
    gates.held.note_topic_ends({AT: 60}, {AT: 60}, 23.0)
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
    gates.start(60.0).note_topic_ends({}, {}, 60.0)
    gates.ends("t1", time=10.0, orders=1)
    gates.ends("t2", time=11.0, orders=1)
    gates.ends("t1", time=50.0, orders=1)
    assert not gates.release(61.0)
    gates.ends("t2", time=51.0, orders=1)
    gates.held.note_topic_ends({}, {}, 62.0)
    assert gates.release(62.0)


def test_a_transaction_that_comes_again_and_never_ends_holds_no_root_for_longer_than_at_most() -> None:
    gates = Gates(whole=True, at_most=20.0)
    complete(gates, "t1", 10.0)
    complete(gates, "t2", 11.0)
    gates.touch(50.0, "t1", time=50.0, offset=50, orders=1)
    assert gates.held.due(69.9).times == {}
    assert gates.held.due(70.0).incomplete == {ORDER}
    assert gates.held.transactions.repeats == {}
