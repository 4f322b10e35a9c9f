"""Statestore and the designs that it replaces end with the documents of the products' SQL, and send as many."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from processor.engine.plan.plan import Plan

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("from_the_root")


@pytest.fixture
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests import `benchmarks` from the root of the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.rest
def test_every_way_ends_with_the_documents_of_sql() -> None:
    from benchmarks.peers.old_ways.measure import WAYS, measure_ways

    costs = list(measure_ways(3, 9, 1_200, 60, batch=100))
    assert [(cost.way, cost.wrong) for cost in costs] == [(name, 0) for name in WAYS]
    assert len({cost.used.documents for cost in costs}) == 1
    assert costs[0].used.documents > 300


@pytest.mark.rest
def test_a_way_that_never_looks_above_a_changed_row_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.peers.old_ways import measure
    from benchmarks.peers.old_ways.look_up_tables import LookUpTables, shared_table

    @contextmanager
    def blind(plan: Plan) -> Iterator[LookUpTables]:
        monkeypatch.setattr(LookUpTables, "_ascend", lambda *_: None)
        yield LookUpTables(plan, shared_table)

    monkeypatch.setattr(measure, "WAYS", {"blind": blind})
    assert [cost.wrong > 0 for cost in measure.measure_ways(1, 4, 600, 40, batch=100)] == [True]
