"""The report of a run with source transactions: which documents are broken, and how fresh the messages of each product are."""

from typing import Any

from processor.language.definitions.load import load, read_directory
from processor.values.record import Record
from tests.transactions.freshness import Commit, commits_of, freshness
from tests.transactions.gate_counts import INCOMPLETE, RELEASED, GateCounts
from tests.transactions.gate_report import GateReport
from tests.transactions.order_documents import broken
from tests.transactions.soak import EXAMPLE
from tests.transactions.topic_watch import Arrival

WHOLE: dict[str, Any] = {"revision": 2, "total": 7, "line_count": 2, "paid": 5, "parcels": 1}
WHOLE |= {"lines": [3, 4], "payments": [5], "shipments": [9], "receipt": 2}
BROKEN = {**WHOLE, "revision": 3, "lines": [3]}


def arrival(at: float, document: Any, product: str = "order_whole") -> Arrival:
    record = Record(topic=product, partition=0, offset=int(at), timestamp=int(at * 1000), key=b'{"id":1}', value=b"{}")
    return Arrival(order=1, document=document, at=at, record=record)


def report(*arrivals: Arrival) -> GateReport:
    products = load(read_directory(EXAMPLE)).products.values()
    commits = [Commit(10, 1, 2), Commit(20, 1, 3)]
    return GateReport(products=products, arrivals=arrivals, commits=commits, began=5, kills=15)


def test_a_document_is_broken_where_its_rows_contradict_its_order() -> None:
    assert broken(WHOLE) == []
    assert broken({**WHOLE, "lines": [3, 4, 1]}) == [
        "total: the order says 7, its rows 8",
        "line_count: the order says 2, its rows 3",
    ]
    assert broken({**WHOLE, "payments": [], "shipments": []}) == [
        "paid: the order says 5, its rows 0",
        "parcels: the order says 1, its rows 0",
    ]
    assert broken({**WHOLE, "receipt": None}) == ["revision: the order says 2, its rows None"]


def test_a_change_is_as_fresh_as_the_first_message_that_shows_it_or_a_later_one() -> None:
    commits = commits_of([{"at": 10, "orders": {"1": 2}}, {"at": 11, "orders": {"1": 3, "7": None}}])
    found = freshness(commits, [arrival(9, {**WHOLE, "revision": 1}), arrival(12.5, BROKEN)])
    assert found.seconds == [2.5, 1.5]
    assert found.unseen == 1
    assert (found.share(0.5), found.share(0.99)) == (1.5, 2.5)


def test_a_tombstone_shows_every_change_before_it() -> None:
    assert freshness([Commit(10, 1, 2), Commit(11, 1, None)], [arrival(12, None)]).seconds == [2, 1]


def test_a_broken_document_of_whole_transactions_counts_unless_it_had_to_go_out() -> None:
    early, late = arrival(21, BROKEN), arrival(85, BROKEN)
    assert report(arrival(11, WHOLE), early).torn() == [early]
    assert report(arrival(11, WHOLE), late).torn() == []
    assert report(arrival(4, BROKEN), arrival(21, BROKEN, "order_plain")).torn() == []


def test_a_gate_begins_to_wait_again_after_each_message_however_old_a_change_is() -> None:
    late, soon = arrival(85, BROKEN), arrival(100, {**BROKEN, "lines": [9]})
    assert report(arrival(11, WHOLE), late, soon).torn() == [soon]
    assert report(arrival(11, WHOLE), late, arrival(100, BROKEN)).torn() == []


def test_the_table_has_the_broken_messages_and_the_freshness_of_each_product() -> None:
    found = {line[0]: line[1:] for line in report(arrival(11, WHOLE), arrival(85, BROKEN)).table()}
    assert found["order_whole"][:4] == ("transactions: whole, at_most: 1 min", "2", "0", "1")
    assert found["order_whole"][4:] == ("", "", "1 min 5 s", "1 min 5 s")
    assert found["order_plain"] == ("", "0", "0", "0", "", "", "", "")


def test_the_line_of_a_broken_document_names_its_place_and_the_contradiction() -> None:
    torn = arrival(22, BROKEN)
    assert report(arrival(11, WHOLE), torn).describe(torn) == (
        "order_whole, partition 0, offset 22, at 22.000: order 1, waited 2 s: "
        "total: the order says 7, its rows 3; line_count: the order says 2, its rows 1; "
        "revision: the order says 3, its rows 2"
    )


def test_the_counts_of_a_job_go_on_over_its_runs() -> None:
    counts = GateCounts(0)
    for released in (3, 5, 2):
        counts.take(f"statestore_gate_released_total {released}\nstatestore_gate_released_incomplete_total 1\n")
    counts.take("")
    assert (counts.total(RELEASED), counts.total(INCOMPLETE)) == (7, 2)
