"""For the tests of the driver: a job of its own for each test."""

import pytest

from tests.unit.rounds.logged_job import Job


@pytest.fixture
def job() -> Job:
    return Job()
