"""The lease of a job: taken at a start, checked before each round, renewed while the job lives. A run with a new lease takes over
from earlier runs: it fences their producers at the broker, takes what they left, and waits W.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from os import sysconf
from pathlib import Path
from socket import gethostname
from threading import Event, Thread
from time import monotonic, time

from processor.engine.plan.planning import plan_of
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent, Report
from processor.environment.programs.program import started_at
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.errors import Stopped
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.run.worker import lease_lost, transactional_id
from registry.errors import LeaseHeld, LeaseLost, SnapshotOutdated
from registry.model import JobStatus, Lease
from registry.repository import Registry
from statestore.store import FencingToken, Store

JOIN_SECONDS = 10
UPTIME = Path("/proc/uptime")
"""Seconds since the start of Linux, from which a process counts its own start."""


def take_lease(
    registry: Registry, settings: Settings, owner: str, *, take_over: bool, stopping: Event, report: Report
) -> Lease:
    """Takes the job's lease. Waits for the lease of a killed run to expire. When the owner renews it meanwhile, the
    owner lives: then raises LeaseHeld, which names it. Raises Stopped when `stopping` is set meanwhile."""
    first: LeaseHeld | None = None
    while True:
        try:
            return registry.take_lease(
                settings.job, owner, settings.lanes, take_over=take_over, expires_after=settings.lease_seconds
            )
        except LeaseHeld as held:
            if first is not None and str(held) != str(first):
                raise
            if first is None:
                report(JobEvent(what="waits", text=f"waits for the lease, until it expires: {held}"))
            first = held
            if stopping.wait(1):
                raise Stopped("stopped on request") from None


LOOK_SECONDS = 6.0
"""A living run reports its state every 5 s."""


def refuse_living_run(
    jobs: Callable[[], Iterable[JobStatus]], job: str, owner: str, stopping: Event, seconds: float = inf
) -> None:
    """Raises LeaseHeld if a run of the job lives: at once where its process is on this machine. The lease of a killed run looks
    the same until it expires, so this waits for a heartbeat from another machine, or for the end of the lease; at most for
    `seconds`."""
    first: JobStatus | None = None
    began = monotonic()
    while not stopping.is_set() and monotonic() - began < seconds:
        now = next((one for one in jobs() if one.job == job and one.alive and one.owner != owner), None)
        if now is None:
            return
        runs_here = _runs_here(now)
        if runs_here is False and seconds < inf:
            return  # it was killed: `take_lease` waits for the end of its lease
        if runs_here or (first is not None and _lives(first, now)):
            raise LeaseHeld(
                f"job {job} runs already: {now.owner} (generation {now.generation}): stop it, or give `--take-over`, which "
                "fences it"
            )
        first = now
        stopping.wait(0.5)


def _runs_here(run: JobStatus) -> bool | None:
    """Whether the process of a run is on this machine, and began before the run. None for another machine, or where this one does
    not say."""
    host, _, pid = (run.owner or "").rpartition(":")
    if host != gethostname() or not pid.isdigit() or not UPTIME.exists():
        return None
    if (started := started_at(int(pid))) is None:
        return False
    age = float(UPTIME.read_text().split()[0]) - int(started) / sysconf("SC_CLK_TCK")
    return True if run.acquired_at and time() - age <= run.acquired_at.timestamp() + 1 else None


def _lives(before: JobStatus, now: JobStatus) -> bool:
    """Whether a run renewed its lease, or reported its state, between two looks."""
    if (before.generation, before.renewed_at) != (now.generation, now.renewed_at):
        return True
    return now.report_age is not None and (before.report_age is None or now.report_age < before.report_age)


def lease_check(registry: Registry, lease: Lease, stopping: Event | None = None) -> Callable[[], None]:
    """The check of a driver before each round: raises Fenced when another run took the lease, Stopped when `stopping` is set."""

    def check() -> None:
        if stopping is not None and stopping.is_set():
            raise Stopped("stopped on request")
        if not registry.holds(lease):
            raise lease_lost(lease)

    return check


def take_table(registry: Registry, lease: Lease, store: Store) -> FencingToken:
    """Takes the table over from the earlier runs: a store that knows runs refuses their writes from now on. The registry's
    identity names the runs, since their generations rise with it, also when the job gets another name. Raises FencedWrite when a
    later run has taken the table."""
    fence = FencingToken(registry.binding().identity, lease.generation)
    store.take_over(fence)
    return fence


class LeaseRenewal:
    """Renews a lease from `start` to `stop`, in a thread and over a registry connection of its own. So a long round never makes
    a living job look dead."""

    def __init__(self, settings: Settings, lease: Lease) -> None:
        self._registry, self.lease = open_registry(settings), lease
        self._every = settings.lease_seconds / 3
        self._renewed = monotonic()
        self._lost, self._ending = Event(), Event()
        self._thread = Thread(target=self._renew_until_the_end, name="lease renewal", daemon=True)

    @property
    def age(self) -> float:
        """Seconds since the lease was taken or renewed."""
        return monotonic() - self._renewed

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. A renewal that waits for Postgres may go on for a moment, and is harmless."""
        self._ending.set()
        self._thread.join(JOIN_SECONDS)

    def check(self) -> None:
        """Raises Fenced when a renewal found that another run took the lease."""
        if self._lost.is_set():
            raise lease_lost(self.lease)

    def _renew_until_the_end(self) -> None:
        with self._registry:
            while not self._ending.wait(self._every):
                try:
                    self._registry.renew(self.lease)
                    self._renewed = monotonic()
                except LeaseLost:
                    self._lost.set()
                    return
                except (
                    Exception
                ):  # Postgres is out of reach: the next renewal tries again, and the checks of rounds report it
                    continue


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
