"""What a verb and the monitor say of roots that wait."""

from dataclasses import replace

from processor.engine.protocol.gates import AwaitedTransaction, gate_states, wait_of, waiting_in
from tests.unit.engine.rounds.test_gates import Shop, whole


def test_the_monitor_says_how_many_wait_since_when_and_for_which_transaction() -> None:
    shop = Shop("{transactions: whole}")
    end, line, order, _ = whole(shop)
    shop.batch(shop.record("public.orders", {"id": 9, "total": 1}, 9))
    shop.batch(line, order)
    held, clock = shop.trial.driver.progress.held, shop.trial.clock
    transaction = {"topic": "app.transaction", "id": "7", "missing": None, "again": False}
    assert gate_states(held, clock.now(), 1_000.0 + clock.now()) == {
        "bill": {"waiting": 1, "since": 1_001.0, "transaction": transaction}
    }
    shop.batch(end)
    assert gate_states(held, clock.now(), clock.date())["bill"]["transaction"]["missing"] == {"public.lines": (1, 2)}
    shop.trial.finish()
    assert gate_states(held, 0.0, 0.0) == {"bill": {"waiting": 0, "since": None, "transaction": None}}


def test_the_table_alone_says_the_same_as_the_driver() -> None:
    shop = Shop("{transactions: whole, quiet: 4 s}")
    _, line, order, _ = whole(shop)
    shop.batch(line)
    shop.batch(order)
    now = shop.trial.clock.now()
    stored = waiting_in(shop.plan, shop.trial.store.partition("OPEN"), now)
    found, known = (wait_of(held, ("bill", "5")) for held in (stored, shop.trial.driver.progress.held))
    assert found is not None
    assert known is not None
    assert found._replace(last=0) == known._replace(last=0)
    assert found.last >= known.last  # a start counts `at_most` from the last change
    assert wait_of(stored, ("bill", "6")) is None


def test_a_paused_product_waits_for_its_operator_and_not_at_its_gate() -> None:
    shop = Shop("{quiet: 4 s}")
    shop.batch(shop.record("public.orders", {"id": 9, "total": 1}, 9))
    paused = replace(shop.plan, products={"bill": replace(shop.plan.products["bill"], paused=True)})
    assert waiting_in(paused, shop.trial.store.partition("OPEN"), 1.0).held == {}


def test_a_transaction_that_comes_again_is_called_so() -> None:
    awaited = AwaitedTransaction("app.transaction", "7", None, again=True)
    assert (
        awaited.text
        == "transaction 7 of topic app.transaction, the connector sends it again, with all that came after it"
    )
