"""`make bench-peers` compares statestore with the designs that it replaces, over products and changes made for this."""

from pathlib import Path

import pytest

from processor.engine.protocol.decode import decode
from processor.language.definitions.load import load
from processor.values.record import Change

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("from_the_root")


@pytest.fixture
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests import `benchmarks` from the root of the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.parametrize("joins", range(3, 10))
def test_each_product_has_as_many_joins_as_asked(joins: int) -> None:
    from benchmarks.peers.old_ways.workload import joined_definitions

    products = load(joined_definitions(10, joins)).products.values()
    assert [len(list(product.walk())) for product in products] == [joins] * 10
    assert {product.root for product in products} == {"user", "pull_request", "payment_info"}


def test_the_history_changes_every_joined_table_and_has_no_broken_record() -> None:
    from benchmarks.peers.old_ways.workload import joined_definitions, joined_records

    entities = load(joined_definitions(1, 9)).entities
    records = joined_records(2_000, 100, 9)
    assert len(records) == 2_000
    assert {record.topic for record in records} == entities.keys()
    assert [decode(r, entities[r.topic]) for r in records if not isinstance(decode(r, entities[r.topic]), Change)] == []


def test_a_row_of_the_table_has_the_figures_of_one_event() -> None:
    from decimal import Decimal

    from benchmarks.peers.old_ways.__main__ import format_ways
    from benchmarks.peers.old_ways.measure import WayCost
    from benchmarks.peers.old_ways.way import WayCounts

    before = WayCounts(requests=100, rows=10, documents=5)
    used = WayCounts(requests=2_100, rows=3_010, documents=405, written=2_000, read=Decimal(1_500)).since(before)
    cost = WayCost(way="statestore", products=3, joins=6, events=1_000, used=used, cpu=0.5, wrong=0)
    assert "\n| 3 | 6 | statestore | 2.000 | 3.0 | 2.00 | 1.50 | 1.44 | 0.40 | 0 | 0.50 |  |" in format_ways([cost])


def test_the_document_has_a_place_for_the_table_of_the_old_ways() -> None:
    from benchmarks.peers.old_ways.__main__ import BEGIN, END
    from benchmarks.run import DOCUMENT, insert_tables

    assert "\nnew\n" in insert_tables(DOCUMENT.read_text(encoding="utf-8"), "new", BEGIN, END)
