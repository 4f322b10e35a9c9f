"""A publish task that runs on after another run took the lease."""

from typing import Any

import pytest

from processor.errors import Fenced
from processor.job.run.worker import begin_attempt
from registry.model import Lease


class RegistryOfAnotherRun:
    """A registry whose lease another run took."""

    def begin_attempt(self, lease: Lease, lane: int, round_: int) -> None:
        return None


def test_a_publish_task_of_a_run_without_the_lease_begins_no_attempt() -> None:
    registry: Any = RegistryOfAnotherRun()
    lease = Lease(job="profiles", generation=3, owner="first", lanes=4)
    with pytest.raises(Fenced, match="job profiles: generation 3 lost its lease; another job took over"):
        begin_attempt(registry, lease, 0, 7)
