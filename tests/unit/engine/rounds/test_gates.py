"""Documents that wait at the gate of their product, over the whole path of a trial."""

import json
from collections.abc import Iterator
from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record
from statestore.store import Store

ENTITIES = """
transactions: app.transaction
order: {topic: app.public.orders, key: [id], columns: {id: int, total: int}}
line: {topic: app.public.lines, key: [id], columns: {id: int, order_id: int, amount: int}}
"""
PRODUCT = """
product: bill
root: order
fields: [id, total]
embed: {lines: {many: line, on: {order_id: id}, value: amount}}
"""


class Shop:
    """An application whose transactions write an order and its lines, and a job behind it."""

    def __init__(self, publish: str) -> None:
        files = {"entities.yaml": ENTITIES, "bill.yaml": PRODUCT + f"publish: {publish}\n"}
        self.plan = plan_alone(load(files), slots=5)
        self.trial = Trial(plan=self.plan, settings=Settings())
        self._offset = 0

    def record(self, topic: str, value: dict[str, Any], key: Any = None) -> Record:
        self._offset += 1
        return Record(
            topic=f"app.{topic}",
            partition=0,
            offset=self._offset,
            timestamp=int(self.trial.clock.seconds * 1000),
            key=json.dumps({"id": key}).encode(),
            value=json.dumps(value).encode(),
        )

    def change(self, table: str, transaction: str, order: int, **row: Any) -> Record:
        source = {"connector": "postgresql", "schema": "public", "table": table}
        block = {"id": f"{transaction}:{order}99", "total_order": 9, "data_collection_order": order}
        value = {"op": "c", "before": None, "after": row, "source": source, "transaction": block}
        return self.record(f"public.{table}", value, row["id"])

    def end(self, transaction: str, **counts: int) -> Record:
        tables = [{"data_collection": f"public.{table}", "event_count": n} for table, n in counts.items()]
        return self.record("transaction", {"status": "END", "id": f"{transaction}:1", "data_collections": tables})

    def documents(self) -> list[Any]:
        return [message.value and json.loads(message.value) for message in self.trial.published.messages]

    def batch(self, *records: Record) -> None:
        self.trial.batch(records)
        self.trial.background_work()

    def restart(self) -> None:
        """The job dies, and another run takes over."""
        store: Store = self.trial.store
        before = self.trial
        self.trial = Trial(
            plan=self.plan, settings=Settings(), run=before.run + 1, other_store=store, clock=before.clock
        )
        self.trial.published, self.trial.committed = before.published, before.committed
        self.trial.driver.start()


def whole(shop: Shop) -> Iterator[Record]:
    """The records of one transaction, its end first."""
    yield shop.end("7", orders=1, lines=2, audit=4)
    yield shop.change("lines", "7", 1, id=1, order_id=5, amount=2)
    yield shop.change("orders", "7", 1, id=5, total=5)
    yield shop.change("lines", "7", 2, id=2, order_id=5, amount=3)


def test_no_document_shows_a_part_of_a_transaction() -> None:
    shop = Shop("{transactions: whole}")
    end, line, order, other = whole(shop)
    for record in (line, order, end):
        shop.batch(record)
        assert shop.documents() == []
    shop.batch(other)
    assert shop.documents() == [{"id": 5, "total": 5, "lines": [2, 3]}]
    shop.trial.finish()
    assert len(shop.documents()) == 1
    assert shop.trial.store.partition("OPEN") == [] or shop.trial.tally["released incomplete"] == 0


def test_a_product_without_a_gate_shows_the_parts() -> None:
    shop = Shop("{every: 1 ms}")
    for record in whole(shop):
        shop.batch(record)
    assert {"id": 5, "total": 5, "lines": [2]} in shop.documents()


def test_a_crash_between_hold_and_release_loses_no_document_and_shows_no_part() -> None:
    shop = Shop("{transactions: whole}")
    end, line, order, other = whole(shop)
    shop.batch(line)
    shop.batch(order)
    shop.restart()
    shop.batch(end)
    assert shop.documents() == []
    shop.batch(other)
    shop.trial.finish()
    assert shop.documents() == [{"id": 5, "total": 5, "lines": [2, 3]}]


def test_a_document_whose_transaction_never_ends_goes_out_at_last_and_is_counted() -> None:
    shop = Shop("{transactions: whole, at_most: 20 s}")
    _, line, order, _ = whole(shop)
    shop.batch(line)
    shop.batch(order)
    shop.trial.finish()
    assert shop.documents() == [{"id": 5, "total": 5, "lines": [2]}]
    assert shop.trial.tally["released incomplete"] == 1
    assert 20 <= shop.trial.clock.seconds <= 26


def test_a_dead_letter_counts_as_a_record_of_its_transaction() -> None:
    shop = Shop("{transactions: whole}")
    shop.batch(shop.change("orders", "8", 1, id=6, total=1))
    shop.batch(shop.change("lines", "8", 1, id=9, order_id=6, amount="many"))
    shop.batch(shop.end("8", orders=1, lines=1))
    assert shop.documents() == [{"id": 6, "total": 1, "lines": []}]


def test_a_root_goes_out_once_it_is_quiet_with_its_last_state() -> None:
    shop = Shop("{quiet: 3 s}")
    for total in range(4):
        shop.batch(shop.record("public.orders", {"id": 5, "total": total}, 5))
        assert shop.documents() == []
    shop.trial.finish()
    assert shop.documents() == [{"id": 5, "total": 3, "lines": []}]


def test_the_messages_of_a_root_keep_their_distance_and_the_last_state_goes_out() -> None:
    shop = Shop("{every: 10 s}")
    for total in range(25):
        shop.batch(shop.record("public.orders", {"id": 5, "total": total}, 5))
    shop.trial.finish()
    totals = [one["total"] for one in shop.documents()]
    assert totals[-1] == 24
    assert 3 <= len(totals) <= 4
