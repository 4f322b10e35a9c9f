"""Leases: one run of a job at a time, later generations fence earlier ones."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text

from registry.errors import LeaseHeld, LeaseLost, SnapshotOutdated
from registry.model import Lease, Requirements
from registry.repository import Registry


def take(
    registry: Registry, owner: str, *, lanes: int = 1, take_over: bool = False, expires_after: float = 60
) -> Lease:
    return registry.take_lease("job", owner, lanes, take_over=take_over, expires_after=expires_after)


def test_a_living_lease_is_refused_to_another_and_names_its_owner(registry: Registry) -> None:
    first = take(registry, "host-a")
    assert first == Lease(job="job", generation=1, owner="host-a", lanes=1)
    with pytest.raises(LeaseHeld, match=r"host-a \(generation 1\), alive at \d{4}-\d\d-\d\d .* expires 60 s after"):
        take(registry, "host-b")
    assert registry.holds(first)


def test_a_takeover_fences_the_run_before(registry: Registry) -> None:
    first = take(registry, "host-a")
    second = take(registry, "host-b", take_over=True)
    assert second.generation == 2
    assert not registry.holds(first)
    assert registry.holds(second)
    for use in (registry.renew, lambda lease: registry.applied(lease, 0)):
        with pytest.raises(LeaseLost, match="host-a no longer holds the lease"):
            use(first)
    registry.give_back(first)
    assert registry.holds(second)


def test_the_same_owner_may_start_again_and_fences_itself(registry: Registry) -> None:
    first, second = take(registry, "host-a"), take(registry, "host-a")
    assert second.generation == 2
    assert not registry.holds(first)


def test_a_lease_that_ran_out_may_be_taken_and_holds_until_it_is(registry: Registry) -> None:
    first = take(registry, "host-a", expires_after=0.2)
    time.sleep(0.3)
    assert registry.holds(first)
    registry.renew(first)
    with pytest.raises(LeaseHeld):
        take(registry, "host-b")
    time.sleep(0.3)
    assert take(registry, "host-b").generation == 2
    assert not registry.holds(first)


def test_a_released_lease_is_free_and_its_generation_is_not_used_again(registry: Registry) -> None:
    first = take(registry, "host-a")
    registry.give_back(first)
    assert not registry.holds(first)
    assert take(registry, "host-b").generation == 2


def test_a_lease_has_the_highest_number_of_lanes_of_any_run(registry: Registry) -> None:
    assert take(registry, "host-a", lanes=8).lanes == 8
    assert take(registry, "host-a", lanes=2).lanes == 8
    assert take(registry, "host-a", lanes=9).lanes == 9


def test_jobs_do_not_share_leases(registry: Registry) -> None:
    take(registry, "host-a")
    assert registry.take_lease("other", "host-b", 1, take_over=False, expires_after=60).generation == 1


def test_of_many_that_start_at_once_one_gets_the_lease(registry: Registry) -> None:
    start = threading.Barrier(4)

    def attempt(number: int) -> bool:
        start.wait()
        try:
            take(registry, f"host-{number}")
        except LeaseHeld:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == [False, False, False, True]


def test_a_job_does_not_start_by_a_registry_that_was_edited_after_it_read_it(
    registry: Registry, required: Requirements
) -> None:
    lease = take(registry, "host-a")
    version = registry.snapshot().version
    registry.apply(required, who="me", why="meanwhile")
    with pytest.raises(SnapshotOutdated, match="has read registry version 0, it is 1 now"):
        registry.applied(lease, version)
    registry.applied(lease, 1)


def test_a_job_that_starts_during_an_edit_waits_for_it(
    registry: Registry, required: Requirements, psql: Engine
) -> None:
    registry.apply(required, who="me", why="first")
    lease = take(registry, "host-a")
    with ThreadPoolExecutor(1) as pool:
        with psql.begin() as connection:
            connection.execute(text("SELECT edit_by_hand('a test')"))
            connection.execute(text("UPDATE products SET version = 2, topic = 'other'"))
            report = pool.submit(registry.applied, lease, 1)
            with pytest.raises(TimeoutError):
                report.result(timeout=0.3)
        with pytest.raises(SnapshotOutdated):
            report.result(timeout=300)


def test_attempts_of_a_round_are_counted_and_an_earlier_round_never_begins_again(registry: Registry) -> None:
    """A task that was given up would count from 0, and have the number of the acknowledged attempt."""
    first = take(registry, "host-a")
    assert [registry.begin_attempt(first, 0, round_) for round_ in (0, 0, 1, 0, 1)] == [0, 1, 0, None, 1]
    assert registry.begin_attempt(first, 1, 0) == 0
    second = take(registry, "host-b", take_over=True)
    assert registry.begin_attempt(first, 0, 2) is None
    assert registry.begin_attempt(second, 0, 0) == 0
