"""For the tests of the driver and of the runner: a job and a store of its own for each test."""

import pytest

from tests.unit.engine.rounds.logged_job import Job
from tests.unit.engine.rounds.logging_store import LoggingStore


@pytest.fixture
def job() -> Job:
    return Job()


@pytest.fixture
def store() -> LoggingStore:
    return LoggingStore()
