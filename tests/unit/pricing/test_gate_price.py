"""The price of holding is that of the items which a job writes and deletes."""

import pytest

from processor.cli.printing.plan_text import plan_lines
from processor.definitions.load import load
from processor.plan.planning import plan_alone, requirements_of
from processor.pricing.preview import preview
from processor.pricing.price import BATCH, price_events, price_gates
from processor.pricing.price_list import DEFAULT
from processor.settings.settings import Settings
from processor.trial.trial import Trial
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.model import Snapshot
from statestore.metered import MeteredStore
from tests.unit.trial.test_gates import ENTITIES, PRODUCT, Shop

GATES = ("{quiet: 2 s}", "{every: 5 s}", "{transactions: whole}", "{transactions: whole, quiet: 1 s, every: 5 s}")


def files(publish: str) -> dict[str, str]:
    return {"entities.yaml": ENTITIES, "bill.yaml": PRODUCT + (f"publish: {publish}\n" if publish else "")}


def written(publish: str, batch: int) -> int:
    """The write units of a batch of events, each on another order and in a transaction of its own, until all is forgotten."""
    shop, store = Shop(publish or "{every: 1 ms}"), MeteredStore(5)
    shop.plan = plan_alone(load(files(publish)), slots=5)
    shop.trial = Trial(plan=shop.plan, settings=Settings(), other_store=store)
    shop.trial.driver.progress.open_changes.samples = False
    changes = [shop.change("orders", f"{10**6 + n}", 1, id=7**17 + 7**13 * n, total=n) for n in range(batch)]
    shop.batch(*changes, *(shop.end(f"{10**6 + n}", orders=1) for n in range(batch)))
    shop.trial.finish()
    for _ in range(2):
        shop.batch()
        shop.trial.clock.sleep(200)
    shop.batch()
    assert store.partition("OPEN") == []
    return store.written


@pytest.mark.parametrize("publish", GATES)
def test_holding_costs_what_a_job_spends_and_nothing_near_one_unit_an_event(publish: str) -> None:
    (price,) = price_gates(plan_alone(load(files(publish)), slots=5))
    assert written(publish, 1) - written("", 1) == price.alone <= 4
    more = (written(publish, BATCH) - written("", BATCH)) / BATCH
    assert more <= price.in_batch <= 0.1
    assert price.in_batch - more <= 0.03, "the keys of this test are shorter"


def test_the_price_of_an_event_has_holding_and_the_document_that_waited() -> None:
    with_gate, without = (
        {
            cost.event: cost
            for cost in price_events(plan_alone(load(files(one)), 5), Settings())
            if cost.entity == "order"
        }
        for one in ("{quiet: 2 s}", "")
    )
    for event, cost in without.items():
        assert with_gate[event].documents == cost.documents
        waits = cost.documents > 0 or event == "replay"
        assert with_gate[event].write_units - cost.write_units == 2 * waits, event


EMPTY = Snapshot(version=0, slots=5, entities=(), products=(), assignments=(), joins=())


def test_plan_shows_another_gate_as_a_change_without_another_version() -> None:
    live = edited(EMPTY, apply(EMPTY, requirements_of(load(files("{quiet: 2 s}"))), frozenset()))
    found = preview(load(files("{quiet: 3 s}")), live, frozenset({"order", "line"}))
    (entry,) = found.entries
    assert (entry.name, entry.version, entry.waits) == ("bill", 1, False)
    assert entry.details == ("publish.quiet: 2 s -> 3 s", "the version stays, and no document goes out again")


def test_plan_says_what_holding_costs() -> None:
    found = preview(load(files("{quiet: 2 s}")), EMPTY, frozenset(), Settings())
    text = "\n".join(plan_lines(found, DEFAULT))
    assert "\n  bill: 2 alone, 0.0" in text
    assert "gates: write units of holding" in text
    assert preview(load(files("")), EMPTY, frozenset(), Settings()).gates == ()
