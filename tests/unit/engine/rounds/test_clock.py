"""Documents of a product with a clock change when time passes a boundary, and a job at rest has nothing to do for them."""

from collections import Counter
from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.erasures import Erasure
from processor.engine.protocol.ticks import CLOCK, SHARDS
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.operators import Eraser
from processor.engine.rounds.publish_stage import encoded_document
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.explain import lineage
from processor.values import canonical_json
from processor.values.record import Record
from statestore.items import encode_version
from statestore.memory import MemoryStore
from statestore.store import Store

ENTITIES = """
customer: {key: [id], columns: {id: int, name: string}}
order: {key: [id], columns: {id: int, customer_id: int, at: timestamp, amount: "decimal(12,2)"}}
"""
TOTALS = """
product: totals
root: customer
clock: 1 minute
fields: {id: id, spent: "coalesce(sum(orders.amount) filter (where orders.at > clock - interval '30 days'), 0)"}
join: {orders: {many: order, on: {customer_id: id}}}
"""
NOON = 1_790_078_400
"""2026-09-22T12:00:00Z."""
DAY = 86_400.0


class Shop:
    """A trial whose clock begins at noon, and the documents that it has published."""

    def __init__(self, product: str = TOTALS, store: Store | None = None, *, run: int = 1, at: float = NOON) -> None:
        plan = plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": product}), 20)
        self.trial = Trial(
            plan=plan, settings=Settings(), consistent=True, other_store=store, run=run, clock=VirtualClock(start=at)
        )
        self.trial.driver.start()
        self.offset = 0

    def rows(self, entity: str, *rows: dict[str, Any]) -> None:
        """A batch of rows, and the work after it."""
        records = []
        for row in rows:
            self.offset += 1
            key, value = canonical_json.encode({"id": row["id"]}), canonical_json.encode(row)
            records.append(Record(topic=entity, partition=0, offset=self.offset, key=key, value=value))
        self.trial.batch(records)
        self.trial.finish()

    @property
    def spent(self) -> list[int]:
        """What each published document says, in their order."""
        values = (message.value for message in self.trial.published.messages)
        return [canonical_json.loads(value)["spent"] for value in values if value is not None]

    def items(self, kind: str) -> list[Any]:
        """The items of a kind of partition."""
        return [item for item in self.trial.store.scan(None, 1_000).items if item["PK"].startswith(kind)]


def sold(shop: Shop) -> None:
    shop.rows("customer", {"id": 1, "name": "Ada"})
    shop.rows(
        "order",
        {"id": 1, "customer_id": 1, "at": "2026-08-24T12:00:00Z", "amount": "5"},
        {"id": 2, "customer_id": 1, "at": "2026-09-01T00:00:00Z", "amount": "7"},
        {"id": 3, "customer_id": 1, "at": "2020-01-01T00:00:00Z", "amount": "100"},
    )


def test_a_thirty_day_sum_falls_when_an_order_is_older_and_not_before() -> None:
    shop = Shop()
    sold(shop)
    assert shop.spent == [0, 12]
    shop.trial.advance(DAY - 60)
    assert shop.spent == [0, 12]
    shop.trial.advance(60)
    assert shop.spent == [0, 12, 7]
    shop.trial.advance(9 * DAY)
    assert shop.spent == [0, 12, 7, 0]
    assert shop.items("DUE#") == []


def test_a_day_without_a_boundary_costs_the_reads_of_its_buckets() -> None:
    store = MemoryStore(20, consistent=True)
    shop = Shop(store=store)
    sold(shop)
    shop.trial.advance(2 * DAY)
    store.requests.clear()
    shop.trial.advance(DAY)
    assert store.requests == {"Query": 24 * SHARDS}


def test_a_root_has_one_due_item_however_often_it_changes() -> None:
    shop = Shop()
    sold(shop)
    (item,) = shop.items("DUE#")
    for n in range(5):
        shop.rows("order", {"id": 10 + n, "customer_id": 1, "at": f"2026-09-1{n}T00:00:00Z", "amount": "1"})
        assert shop.items("DUE#") == [item]
    shop.rows("order", {"id": 2, "customer_id": 1, "at": "2026-08-24T12:00:00Z", "amount": "7"})
    assert shop.items("DUE#") == [item]
    shop.trial.advance(DAY)
    assert shop.spent[-1] == 5
    assert [item["root"] for item in shop.items("DUE#")] == ["1"]


def test_an_unchanged_document_keeps_its_place_in_time() -> None:
    shop = Shop()
    sold(shop)
    shop.rows("order", {"id": 1, "customer_id": 1, "at": "2026-08-24T13:00:00Z", "amount": "5"})
    assert shop.spent == [0, 12]
    shop.trial.advance(DAY)
    assert shop.spent == [0, 12]
    shop.trial.advance(3600)
    assert shop.spent == [0, 12, 7]


def test_a_run_after_a_week_publishes_what_was_due_meanwhile() -> None:
    store = MemoryStore(20, consistent=True)
    first = Shop(store=store)
    sold(first)
    later = Shop(store=store, run=2, at=NOON + 7 * DAY)
    later.trial.finish()
    assert later.spent == [7]


def test_the_clock_does_not_go_back_on_a_machine_that_is_behind() -> None:
    store = MemoryStore(20, consistent=True)
    first = Shop(store=store)
    sold(first)
    first.trial.advance(DAY)
    assert first.spent[-1] == 7
    behind = Shop(store=store, run=2, at=NOON - 3 * DAY)
    behind.offset = first.offset
    behind.rows("order", {"id": 9, "customer_id": 1, "at": "2026-09-22T00:00:00Z", "amount": "1"})
    assert behind.spent == [8]
    assert store.get([CLOCK])[CLOCK]["time"] == NOON + DAY


def test_a_root_without_a_document_gets_one_when_its_moment_comes() -> None:
    product = 'product: open\nroot: order\nclock: 1 h\nwhere: "at <= clock"\nfields: {id: id, spent: amount}\n'
    shop = Shop(product)
    shop.rows("order", {"id": 1, "customer_id": 1, "at": "2026-09-22T15:30:00Z", "amount": "5"})
    assert shop.spent == []
    shop.trial.advance(4 * 3600 - 2)  # the batch took a second
    assert shop.spent == []
    shop.trial.advance(1)
    assert shop.spent == [5]


def test_a_product_without_a_clock_makes_no_request_more() -> None:
    store = MemoryStore(20, consistent=True)
    shop = Shop("product: plain\nroot: order\nfields: {id: id, spent: amount}\n", store)
    shop.rows("order", {"id": 1, "customer_id": 1, "at": "2026-09-22T15:30:00Z", "amount": "5"})
    store.requests.clear()
    shop.trial.advance(2 * DAY)
    assert store.requests == {}
    assert shop.items("CLOCK") == shop.items("DUE") == []
    assert shop.trial.driver.next_due() is None


def test_an_erased_root_leaves_no_due_item_and_one_that_comes_back_has_its_own() -> None:
    shop = Shop()
    sold(shop)
    assert len(shop.items("DUE#")) == 1
    eraser = Eraser(shop.trial.driver)
    eraser.erase("customer", "1", Erasure({0: encode_version(0, 0, shop.offset + 1)}))
    shop.trial.finish()
    eraser.retire_entries("customer", "1")
    assert shop.items("DUE#") == []
    shop.rows("customer", {"id": 1, "name": "Ada"})
    assert shop.spent[-1] == 12
    shop.trial.advance(DAY)
    assert shop.spent[-1] == 7


def test_due_roots_wait_at_the_gate_of_their_product() -> None:
    shop = Shop(TOTALS + "publish: {quiet: 10 min}\n")
    sold(shop)
    shop.trial.advance(NOON + DAY - shop.trial.clock.date())
    before = shop.spent
    assert before[-1] == 12
    shop.trial.advance(9 * 60)
    assert shop.spent == before
    shop.trial.advance(2 * 60)
    assert shop.spent == [*before, 7]


def test_a_look_at_a_document_shows_it_at_the_clock_of_the_job() -> None:
    shop = Shop()
    sold(shop)
    shop.trial.advance(DAY)
    plan = shop.trial.driver.plan
    runner = StepRunner(store=shop.trial.store)
    (body,) = runner.run([encoded_document(plan, plan.products["totals"], "1", Counter())])
    assert body.value == shop.trial.published.messages[-1].value
    (found,) = runner.run([lineage(plan, plan.products["totals"], "1", {})])
    assert found.reason == ""
