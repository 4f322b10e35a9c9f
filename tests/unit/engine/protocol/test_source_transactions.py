"""Which transactions of a source are open, without the roots that wait for them."""

from processor.engine.protocol.source_transactions import SourceTransactions
from processor.values.record import TransactionEnd
from statestore.keys import Key
from tests.unit.engine.protocol.gate_scene import TOPIC, seen_of

LINES = "public.lines"
ITEM = Key("OPEN", "held")


def known_of(*tables: str) -> SourceTransactions:
    return SourceTransactions(tables={TOPIC: set(tables)})


def test_an_edit_keeps_the_ends_of_a_topic_that_stays() -> None:
    """The end of a transaction may come before its records."""
    for kept, is_open in ((TOPIC, False), ("other", True)):
        known = known_of(LINES)
        known.end(TOPIC, TransactionEnd("t1", {LINES: 1}, 1.0), 1)
        assert list(known.retain([kept])) == []
        known.see((TOPIC, "t1"), seen_of(1.0, lines=1), ITEM, 2.0, 1)
        assert (known.first_open([TOPIC], 0.0) is not None) is is_open


def test_an_edit_forgets_the_transactions_of_a_topic_that_goes() -> None:
    known = known_of(LINES)
    known.see((TOPIC, "t1"), seen_of(1.0, lines=1), ITEM, 2.0, 1)
    assert list(known.retain([TOPIC])) == []
    assert known.first_open([TOPIC], 0.0) is not None
    assert list(known.retain(["other"])) == [ITEM]
    assert known.first_open([TOPIC], 0.0) is None


def test_the_oldest_transaction_without_an_end_says_since_when_a_topic_lacks_ends() -> None:
    known = known_of(LINES)
    for name, time in (("t1", 5.0), ("t2", 3.0), ("t3", 4.0)):
        known.see((TOPIC, name), seen_of(time, lines=1), ITEM, 9.0, 1)
    assert known.missing_ends() == {TOPIC: 3.0}
    known.end(TOPIC, TransactionEnd("t2", {LINES: 2}, 3.0), 1)
    assert known.missing_ends() == {TOPIC: 4.0}


def test_a_transaction_is_forgotten_by_the_newest_of_its_records() -> None:
    """A start takes the portions of earlier runs in the order of their names."""
    known = known_of(LINES)
    for at in (5.0, 3.0):
        known.see((TOPIC, "t1"), seen_of(1.0, lines=1), ITEM, at, 1)
    assert list(known.forget(1, 5.0)) == []
    assert list(known.forget(1, 5.1)) == [((TOPIC, "t1"), {ITEM})]
