"""`make bench` writes its report into benchmarks/results.md, and its measurements run."""

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from processor.engine.rounds import round_counts

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("from_the_root")


@pytest.fixture
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests import `benchmarks` from the root of the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))


def test_the_tables_replace_only_the_text_between_the_markers() -> None:
    from benchmarks.run import BEGIN, END, insert_tables

    once = insert_tables(f"before\n{BEGIN}\nold\n{END}\nafter\n", "new")
    assert once == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert insert_tables(once, "new") == once


def test_a_document_without_markers_is_refused() -> None:
    from benchmarks.run import insert_tables
    from processor.errors import SettingError

    with pytest.raises(SettingError, match="has no lines"):
        insert_tables("no markers", "new")


def test_the_document_has_markers() -> None:
    from benchmarks.run import DOCUMENT, insert_tables

    assert "\nnew\n" in insert_tables(DOCUMENT.read_text(encoding="utf-8"), "new")


def test_every_repetition_gives_the_same_documents() -> None:
    from benchmarks.steps import measure_memory, measure_speed

    first, second = measure_speed(400, 30, 2)
    (consistent,) = measure_speed(400, 30, 1, consistent=True)
    assert first.events == second.events == consistent.events == 400
    assert first.documents == second.documents == consistent.documents > 0
    assert [h.events for h in measure_memory(400, 30, (1, 2, 4))] == [400, 800, 1_600]


def test_a_change_rebuilds_documents_only_of_products_that_read_its_column() -> None:
    from benchmarks.products import measure_planning, measure_products

    found = {read.readers: read.documents for read in measure_products(10, 400, 30)}
    assert found["none"] == 0 < found["one"] < found["all"]
    assert measure_planning(3).products == 3


@pytest.mark.rest
def test_a_fan_out_reaches_every_document_once() -> None:
    from benchmarks.fan_out import MEMORY, measure_fan_out

    once = measure_fan_out(MEMORY, 1_500)
    assert (once.documents, once.repeated) == (1_500, 0)
    assert once.rounds == 2
    assert once.requests["UpdateItem"] > 1_500


@pytest.mark.rest
def test_both_clients_of_dynamodb_are_measured() -> None:
    from benchmarks.clients import CLIENTS, IN_FLIGHT, OPERATIONS, measure_clients

    found = measure_clients(40, 2)
    assert {(c.operation, c.in_flight, c.client) for c in found} == {*product(OPERATIONS, IN_FLIGHT, CLIENTS)}
    assert all(len(c.cpu) == len(c.rate) == 2 and min(c.cpu) > 0 for c in found)


def test_the_report_shows_the_median_and_the_growth_since_the_first_pass() -> None:
    from benchmarks.backlog import OpenChangeCost
    from benchmarks.clients import ClientCost
    from benchmarks.fan_out import FanOutCost
    from benchmarks.freshness import FreshnessCost
    from benchmarks.micro_batch import MicroBatchCost
    from benchmarks.products import PlanningCost, ProductCost
    from benchmarks.report import Measurements, format_report
    from benchmarks.run import QUICK
    from benchmarks.steps import MemoryUse, Speed

    job = {"store": "moto", "events": 10, "users": 2, "batch": 5, "wall": 2.0, "cpu": 1.0, "published": 4}
    speeds = [
        Speed(events=1_000, wall=wall, cpu=wall, settling=0.0, json=0.01, documents=9) for wall in (0.1, 0.2, 0.5)
    ]
    measured = Measurements(
        speeds=speeds,
        consistent_speeds=speeds,
        memory=[MemoryUse(events=10, blocks=100, resident=50.0), MemoryUse(events=20, blocks=101, resident=51.0)],
        open_changes=[
            OpenChangeCost(
                rate=1_000,
                entries=11_000,
                driver_cpu=3.5,
                driver_memory=1.8,
                sent=0.16,
                worker_write=81.2,
                worker_load=1.3,
                open_units=6.2,
                ledger_units=1_000.0,
                runs_units=1.0,
            )
        ],
        products=[ProductCost(products=100, readers="one", events=131, cpu=0.2421, documents=0.481)],
        planning=PlanningCost(products=1_000, load=3.76, plan=0.43),
        clients=[
            ClientCost(operation="Query", in_flight=16, client="lean", cpu=(0.1, 0.2, 0.15), rate=(4e3, 5e3, 4.5e3))
        ],
        fan_outs=[
            FanOutCost(
                store="memory",
                roots=1_000,
                seconds=0.114,
                settled=0.212,
                rounds=4,
                memory=2.41,
                documents=1_000,
                repeated=0,
                requests={"UpdateItem": 1_010, "Query": 6_000},
            ),
        ],
        jobs=[job],
        micro_batches=[MicroBatchCost(seconds=x, cpu=x / 2, settling=0.4, idle=0.1) for x in (0.5, 0.7, 1.1)],
        freshness=[
            FreshnessCost(
                rate=500,
                sent=499.6,
                events=(2.5, 5.25, 6.0),
                documents=(3.5, 5.5, 6.0),
                published=9_000,
                job=(3.25, 5.75),
                half=1_200,
                end=1_300,
                drained=4.26,
            )
        ],
    )
    text = format_report(QUICK, measured)
    assert "| events/s, by the clock | 2,000 | 5,000 | 10,000 |" in text
    assert "| 1,000 | 11,000 | 3.5 | 3.5 | 1.8 | 0.2 | 81.2 | 1.3 | 6 | 1,000 | 1 |" in text
    assert "| 20 | 101 | +1.0 % | 51 |" in text
    assert "| CPU fixed per micro-batch, s | 0.35 | 0.55 |" in text
    assert "| 100 | one | 0.242 | 0.48 |" in text
    assert "Planning 1,000 products: 3.8 CPU seconds to read and check their files, 0.4 to plan them." in text
    assert "| Query | 16 | lean | 0.100 / 0.150 / 0.200 | 4,000 / 4,500 / 5,000 |" in text
    assert "| memory | 1,000 | 0.1 | 0.2 | 4 | 2.4 | 1,000 | 0 | 1.01 | 6.00 | 0.00 |" in text
    assert "| 500 | 500 | 2.50 / 5.25 / 6.00 | 9,000 | 3.50 / 5.50 / 6.00 | 3.25 / 5.75 | 1,200 | 1,300 | 4.3 |" in text
    assert "| moto | 10 / 2 | 5 | 5 | 100.0 | 0.00 | 0.00 | 0.00 | 0.40 |" in text


def test_a_document_is_as_old_as_the_oldest_event_that_it_is_the_first_to_show() -> None:
    from benchmarks.freshness import USERS, Reader

    reader = Reader()
    reader.waiting[1] = {1: 10.0, 1 + USERS: 11.0, 1 + 2 * USERS: 13.0}
    reader.waiting[2] = {2: 10.0}
    for now in (14.0, 15.0):
        reader.arrived({"pull_requests": [{"title": f"{1 + USERS}"}]}, now)
    reader.arrived({"pull_requests": []}, 16.0)
    assert sorted(reader.events) == [3.0, 4.0]
    assert reader.documents == [4.0]
    assert reader.lag() == 2


def test_the_cost_of_an_event_has_every_purpose_and_no_correction() -> None:
    from benchmarks.event_cost import cost_records, format_event_cost, measure_event_cost

    cost = measure_event_cost(cost_records(600, 40))
    purposes = {"row", "its index copies", "ledger", "open changes", "find roots", "assemble", "settle"}
    assert purposes <= cost.units.keys()
    assert cost.asked.total() == cost.requests.total()
    assert cost.corrections == 0
    assert "| all |" in format_event_cost(cost)


def test_over_a_consistent_store_an_event_costs_its_rows_its_queries_and_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from benchmarks.event_cost import cost_records, measure_event_cost

    monkeypatch.setattr(round_counts, "READ_COST", 9)  # over such a store no task reads a row before its write
    records = cost_records(600, 40)
    late, consistent = measure_event_cost(records), measure_event_cost(records, consistent=True)
    reads = {"find roots", "assemble"}  # where an index may be late, the way up asks for rows that the documents show
    writes = late.asked.keys() - {*reads, "open changes", "settle"}
    assert {p: consistent.asked[p] for p in writes} == {p: late.asked[p] for p in writes}
    assert consistent.asked.keys() == writes | reads
    assert sum(late.units[p] for p in reads) < sum(consistent.units[p] for p in reads)
    assert consistent.documents == late.documents


@pytest.mark.rest
def test_what_no_product_reads_weighs_in_the_row_alone_and_its_updates_write_no_index() -> None:
    from benchmarks.event_cost import cost_records, measure_event_cost

    plain, wide, unread, both = (
        measure_event_cost(cost_records(2_000, 100, wide=wide, unread=unread))
        for unread in (False, True)
        for wide in (False, True)
    )
    assert wide.units["its index copies"] == plain.units["its index copies"]
    assert both.units["its index copies"] == unread.units["its index copies"]
    assert unread.units["its index copies"] < 0.75 * plain.units["its index copies"]
    assert wide.units["row"] < 2.2 * plain.units["row"]  # 2.5 KB more, compressed
    assert {cost.corrections for cost in (plain, wide, unread, both)} == {0}
    kept = measure_event_cost(cost_records(2_000, 100, wide=True), keep="declared")
    assert kept.units == plain.units


def test_a_batch_of_stars_costs_the_same_for_a_popular_repository() -> None:
    from benchmarks.event_cost import measure_group_cost

    small, popular = measure_group_cost(10), measure_group_cost(300)
    assert (small.written, small.read) == (popular.written, popular.read)


def test_the_rows_that_benchmarks_store_make_documents() -> None:
    from benchmarks.inputs.stored_users import PRODUCT, write_rows
    from benchmarks.steps import demo_plan
    from processor.engine.protocol.ledger import group_partition
    from processor.engine.rounds.publish_stage import encoded_document
    from processor.engine.rounds.step_runner import StepRunner
    from statestore.memory import MemoryStore

    plan, store = demo_plan(), MemoryStore()
    write_rows(store, plan, 10)
    step = encoded_document(plan, plan.products[PRODUCT], "user4@example.org", Counter())
    (document,) = StepRunner(store=store).run([step])
    assert b'"title":"before"' in (document.value or b"")
    assert len(store.partition(group_partition(plan.products[PRODUCT].ledger))) == 5
