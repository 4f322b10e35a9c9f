"""A job without batches has no trouble with the parts of a batch, unless its last batch failed."""

from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.events import Troubles, no_report
from processor.job.run.job import Job
from processor.job.run.outages import CALM_SECONDS, STORE, BatchTroubles


@pytest.mark.parametrize("failure", [None, ValueError("the store gave no answer")])
def test_a_failed_batch_is_no_calm(failure: Exception | None) -> None:
    troubles = Troubles(no_report)
    troubles.begin(STORE, "no answer", "wait")
    job: Any = SimpleNamespace(
        turn=Lock(),
        driver=SimpleNamespace(background_work=lambda: None),
        answer=lambda: None,
        take_version=lambda: None,
        take_requests=lambda: None,
        failure=failure,
        batch_troubles=BatchTroubles(troubles=troubles, calm_since=-CALM_SECONDS),
    )
    Job.idle(job)
    assert [one.part for one in troubles.now] == ([STORE] if failure else [])
