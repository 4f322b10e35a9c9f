"""Verify over a product whose documents wait at its gate."""

from dataclasses import replace
from random import Random

from processor.inspect.verification import VerificationResult, Verifier, with_open_changes
from processor.records.record import Record
from processor.rounds.follow_up_stages import RootToRepair
from processor.rounds.step_runner import StepRunner
from tests.unit.trial.test_gates import Shop


def verified(shop: Shop) -> VerificationResult:
    runner = with_open_changes(StepRunner(store=shop.trial.store))
    sent = shop.trial.published.messages
    topic = [Record(topic=m.topic, partition=0, offset=n, key=m.key, value=m.value) for n, m in enumerate(sent)]
    verifier = Verifier(plan=shop.plan, runner=runner, wait=lambda: None)
    return verifier.verify(shop.plan.products["bill"], lambda: topic, None, Random(1))


def waiting_shop() -> Shop:
    """A new order, an update and a delete that wait."""
    shop = Shop("{quiet: 1 h, at_most: 2 h}")
    shop.batch(*(shop.record("public.orders", {"id": n, "total": 1}, n) for n in (5, 6)))
    shop.trial.finish()
    shop.batch(
        shop.record("public.orders", {"id": 5, "total": 2}, 5),
        replace(shop.record("public.orders", {}, 6), value=None),
        shop.record("public.orders", {"id": 7, "total": 1}, 7),
    )
    return shop


def test_a_document_that_waits_is_no_difference() -> None:
    shop = waiting_shop()
    found = verified(shop)
    assert (found.differences, found.unpublished, found.waiting) == ((), 0, 3)
    shop.trial.finish()
    assert (verified(shop).differences, verified(shop).waiting) == ((), 0)


def test_a_document_that_no_row_explains_is_a_difference_next_to_others_that_wait() -> None:
    shop = waiting_shop()
    shop.trial.published.messages.append(shop.trial.published.messages[0]._replace(key=b'{"id":8}'))
    found = verified(shop)
    assert [one.key for one in found.differences] == ['{"id":8}']
    assert found.waiting == 3


def test_a_repair_goes_out_at_once_and_leaves_what_waits() -> None:
    shop = waiting_shop()
    shop.trial.driver.repair([RootToRepair(("bill", "5"), '{"id":5}')])
    assert shop.documents()[-1] == {"id": 5, "total": 2, "lines": []}
    assert verified(shop).waiting == 2
