"""A run takes over from earlier ones: it fences their producers at the broker, takes what they left, and waits W."""

from concurrent.futures import ThreadPoolExecutor

from processor.engine.plan.planning import plan_of
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent
from processor.environment.settings.settings import Settings
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.run.worker import transactional_id
from registry.errors import SnapshotOutdated
from registry.model import Lease
from registry.repository import Registry

AT_ONCE = 8
"""The broker needs 0.15 s for each producer, so they go side by side."""


def take_over(driver: Driver, registry: Registry, lease: Lease) -> None:
    """Fences every producer of earlier runs, takes over what they left, and waits until the indexes show their writes."""
    fence_producers(driver.settings, lease.lanes)
    _apply_version(driver, registry, lease)
    if lease.generation > 1:
        wait = driver.progress.wait
        waits = f", then waits {wait:g} s until the indexes show it" if wait else ""
        driver.report(JobEvent(what="takes over", text=f"reads what earlier runs left{waits}"))
    driver.start()


def _apply_version(driver: Driver, registry: Registry, lease: Lease) -> None:
    """Records the version of the driver's plan. Operators may edit the registry while Spark starts, or while the job waits for
    the lease. Then the driver begins by the newer plan: by an older one it would drop the work of newer products."""
    while True:
        try:
            return registry.applied(lease, driver.plan.version)
        except SnapshotOutdated:
            driver.progress.replan(plan_of(registry.snapshot()))


def fence_producers(settings: Settings, lanes: int) -> None:
    """Fences every earlier producer of these lanes of the job. Raises SettingError, as `TransactionalOutbox`."""

    def fence(lane: int) -> None:
        TransactionalOutbox(
            settings.bootstrap_servers,
            dict(settings.kafka),
            transactional_id(settings, lane),
            seconds=settings.transaction_seconds,
        )

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for _ in threads.map(fence, range(lanes)):
            pass
