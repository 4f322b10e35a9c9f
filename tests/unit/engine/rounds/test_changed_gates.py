"""A live product whose gate changes, and one that goes while documents wait."""

from dataclasses import replace

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.erasures import Erasure
from processor.engine.protocol.gate_items import read_portion
from processor.engine.protocol.gates import waiting_in
from processor.engine.protocol.identity import IDENTITY
from processor.engine.rounds.operators import Eraser
from processor.language.definitions.load import load
from statestore.copy_items import copy_items
from statestore.items import encode_version
from statestore.memory import MemoryStore
from tests.unit.engine.rounds.test_gates import ENTITIES, PRODUCT, Shop

ORDER = {"id": 5, "total": 7}
BILL = {"id": 5, "total": 7, "lines": []}


def waiting_shop() -> Shop:
    shop = Shop("{quiet: 1 h, at_most: 2 h}")
    shop.batch(shop.record("public.orders", ORDER, 5))
    assert shop.documents() == []
    return shop


def plan_with(publish: str) -> Plan:
    return plan_alone(load({"entities.yaml": ENTITIES, "bill.yaml": f"{PRODUCT}{publish}"}), slots=5)


def adopt(shop: Shop, plan: Plan) -> None:
    shop.trial.driver.adopt(replace(plan, version=2))
    shop.trial.background_work()


def test_what_waits_goes_out_when_a_product_loses_its_gate() -> None:
    shop = waiting_shop()
    adopt(shop, plan_with(""))
    assert shop.documents() == [BILL]
    assert shop.trial.store.partition("OPEN") == []


def test_what_waits_follows_a_shorter_gate() -> None:
    shop = waiting_shop()
    adopt(shop, plan_with("publish: {quiet: 3 s}"))
    assert shop.documents() == []
    shop.trial.clock.sleep(3)
    shop.trial.background_work()
    assert shop.documents() == [BILL]


def test_what_waits_of_a_product_that_is_gone_is_forgotten() -> None:
    shop = waiting_shop()
    adopt(shop, replace(shop.plan, products={}))
    assert shop.documents() == []
    assert shop.trial.store.partition("OPEN") == []


def test_the_tombstones_of_a_retracted_product_wait_for_nothing() -> None:
    """The job removes the product when its walk has ended: what waited then would be forgotten."""
    shop = waiting_shop()
    adopt(shop, plan_with(""))
    gated = plan_with("publish: {quiet: 1 h, at_most: 2 h}")
    retracted = {"bill": replace(gated.products["bill"], version=2, retracted=True)}
    adopt(shop, replace(gated, products=retracted))
    shop.trial.finish()
    assert shop.documents() == [BILL, None]
    assert shop.trial.clock.seconds < 3_600


def test_another_gate_publishes_nothing_again() -> None:
    shop = waiting_shop()
    shop.trial.finish()
    adopt(shop, plan_with("publish: {every: 3 s}"))
    shop.trial.finish()
    assert shop.documents() == [BILL]


def test_an_erasure_leaves_no_item_that_names_the_root_of_the_row() -> None:
    """Also one that waits next to others, and in an open transaction."""
    shop = Shop("{transactions: whole, quiet: 1 h, at_most: 2 h}")
    shop.batch(shop.change("orders", "7", 1, id=5, total=7), shop.change("orders", "7", 2, id=6, total=8))
    shop.restart()
    driver = shop.trial.driver
    assert "5" in str([read_portion(item) for item in shop.trial.store.partition("OPEN")])
    eraser = Eraser(driver)
    eraser.erase("order", "5", Erasure({0: encode_version(0, 0, 10)}))
    while driver.unsettled:
        shop.trial.clock.seconds = max(shop.trial.clock.seconds, driver.next_due() or 0)
        driver.background_work()
    eraser.release()
    (portion,) = filter(None, map(read_portion, shop.trial.store.partition("OPEN")))
    assert portion.held.roots.keys() == {("bill", "6")}
    assert shop.documents() == []
    assert shop.trial.clock.seconds < 60


def test_a_copy_of_the_table_has_what_waits() -> None:
    shop = waiting_shop()
    copy = MemoryStore(5)
    copy_items(shop.trial.store, copy, without=IDENTITY, report=lambda _: None)
    assert waiting_in(shop.plan, copy.partition("OPEN"), 1.0).held.keys() == {("bill", "5")}
