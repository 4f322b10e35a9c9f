"""Over a store whose indexes are never late, a job keeps no open changes, settles nothing and waits for nothing."""

from collections import Counter
from typing import Any

import pytest

from benchmarks.steps import demo_plan, generate_records
from processor.engine.protocol.erasures import Erasure
from processor.engine.protocol.segments import open_items
from processor.engine.rounds.operators import Eraser
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.settings import Settings
from processor.values.record import Record
from statestore.items import encode_version
from statestore.memory import MemoryStore
from tests.unit.engine.rounds.logged_job import PLAN


def record(entity: str, offset: int, row: dict[str, Any] | None, key: int) -> Record:
    value = None if row is None else str({"id": key, **row}).replace("'", '"').encode()
    return Record(topic=entity, partition=0, offset=offset, epoch=1, key=f'{{"id": {key}}}'.encode(), value=value)


@pytest.fixture
def trial() -> Trial:
    """A job whose table has a user with a star."""
    made = Trial(plan=PLAN, settings=Settings(), other_store=MemoryStore(3, consistent=True))
    made.driver.start()
    made.driver.adopt(PLAN)
    made.batch([record("user", 0, {"name": "ada"}, 1), record("star", 0, {"who": "ada"}, 7)])
    return made


def test_a_batch_leaves_nothing_to_settle(trial: Trial) -> None:
    trial.batch([record("star", 1, {"who": "ada"}, 8), record("star", 2, None, 7)])
    assert not trial.driver.pending
    assert trial.driver.next_due() is None
    assert list(open_items(trial.store)) == []
    assert [message.value for message in trial.published.messages[-1:]] == [b'{"name":"ada","stars":[8]}']


def test_an_event_costs_its_row_its_queries_and_the_ledger(trial: Trial) -> None:
    before = trial.store.requests.copy()
    trial.batch([record("star", 1, {"who": "ada"}, 8)])
    trial.finish()
    assert trial.store.requests - before == Counter(
        UpdateItem=3,  # the row, the ledger's reservation, the end of the round
        Query=2,  # up to the user, down to the stars
        BatchGetItem=2,  # the ledger's entry, the user
    )


def test_a_later_run_does_not_wait(trial: Trial) -> None:
    later = Trial(plan=PLAN, settings=Settings(), other_store=trial.store, run=2)
    later.driver.start()
    assert later.clock.now() == 0


def test_an_erasure_is_published_at_once(trial: Trial) -> None:
    Eraser(trial.driver).erase("star", "7", Erasure({0: encode_version(1, 0, 1)}))
    now = trial.clock.now()
    trial.background_work()
    assert trial.clock.now() == now
    assert not trial.driver.pending
    assert list(open_items(trial.store)) == []
    assert trial.published.messages[-1].value == b'{"name":"ada","stars":[]}'


@pytest.mark.parametrize("batch", [50, 500])
def test_the_messages_are_those_over_a_store_that_may_be_late(batch: int) -> None:
    records, plan = generate_records(2_000, 150), demo_plan()
    late, consistent = (Trial(plan=plan, settings=Settings(), consistent=known) for known in (False, True))
    for chunk in batches(records, batch):
        late.batch(chunk)
        consistent.batch(chunk)
        assert late.driver.progress.open_changes.count > consistent.driver.progress.open_changes.count == 0
        late.background_work()
    late.finish()
    assert len(late.published.messages) > 300
    assert consistent.published.messages == late.published.messages
