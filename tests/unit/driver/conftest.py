"""For the tests of the driver: a job and a store of its own for each test, as in the tests of the rounds."""

from tests.unit.rounds.conftest import job, store

__all__ = ["job", "store"]
