"""A job with a new checkpoint over stored rows writes rows first."""

from typing import Any

import pytest

from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.job.run.job import CatchUp
from processor.job.run.source import OffsetRanges
from processor.values.record import Record
from tests.unit.engine.rounds.logged_job import PLAN

BATCH = OffsetRanges(ranges={("user", 0): (0, 20)})


class Ends:
    """The ends of the partitions of each topic."""

    def __init__(self, end: int) -> None:
        self.end = end

    def ends(self, _: str) -> dict[int, int]:
        return {0: self.end}


def catch_up(*, rows: int = 1, end: int = 5, **settings: Any) -> CatchUp:
    """A job over this many stored rows, whose topics have records up to this offset."""
    trial = Trial(plan=PLAN, settings=Settings(**settings))
    trial.driver.start()
    trial.driver.adopt(PLAN)
    for n in range(rows):
        key, value = b'{"id": %d}' % n, b'{"id": %d, "name": "ada"}' % n
        trial.batch([Record(topic="user", partition=0, offset=n, epoch=1, key=key, value=value)])
    made = CatchUp(driver=trial.driver, admin=Ends(end))  # type: ignore[arg-type]
    made.begin_again(["user"])
    return made


def test_a_new_checkpoint_over_stored_rows_holds_the_products_until_the_last_batch() -> None:
    job = catch_up()
    assert job.driver.progress.walks.held == {"profile"}
    job.look(OffsetRanges(ranges={("user", 0): (0, 4)}))
    assert job.driver.progress.walks.held == {"profile"}
    job.look(OffsetRanges(ranges={("user", 0): (4, 5)}))
    assert job.driver.progress.walks.held == frozenset()
    assert job.driver.pending


@pytest.mark.parametrize("changes", [{"rows": 0}, {"end": 0}, {"catch_up_records": 0}], ids=str)
def test_a_job_without_rows_or_records_publishes_at_once(changes: dict[str, int]) -> None:
    assert catch_up(**changes).driver.progress.walks.held == frozenset()


def test_a_job_that_falls_behind_again_and_again_still_publishes_every_root() -> None:
    job = catch_up(rows=5, walk_page=1, walk_rate=0, catch_up_records=10, batch_size=20)
    job.look(BATCH)
    published = []
    for _ in range(20):
        job.admin.end = 1_000  # type: ignore[attr-defined]
        job.look(BATCH)
        job.admin.end = 20  # type: ignore[attr-defined]
        job.look(BATCH)
        job.driver.background_work()
        published.append(job.driver.progress.walks.published(PLAN))
    assert {"profile"} in published


def test_a_job_that_has_published_every_root_holds_the_products_when_it_falls_behind_again() -> None:
    job = catch_up(end=20, walk_rate=0, catch_up_records=10, batch_size=20)
    job.look(BATCH)
    while job.driver.publishes:
        job.driver.background_work()
    job.admin.end = 1_000  # type: ignore[attr-defined]
    job.look(BATCH)
    assert job.driver.progress.walks.held == {"profile"}
