"""Publishes documents again that differ from the state, as a short run of the job: fenced, and through the ledger.

    1. take the lease (refused while a job lives)   2. fence every earlier producer   3. reload open changes, wait W
    4. for each chunk of roots, a round: invalidate the ledger entries, so that an equal hash does not suppress; publish
    5. give the lease back

Open changes stay open: the next run of the job takes them over.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from processor.engine.plan.plan import Plan
from processor.engine.protocol.ledger import Run
from processor.engine.rounds.driver import Driver, make_driver
from processor.engine.rounds.events import SystemClock, no_report
from processor.engine.rounds.follow_up_stages import RootToRepair
from processor.engine.rounds.round import Round
from processor.engine.rounds.round_runner import InProcessExecutor
from processor.environment.settings.resolve import resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.job.kafka.admin import Admin, ask_limit, product_partitions
from processor.job.kafka.outbox import BATCH_BYTES, TransactionalOutbox
from processor.job.kafka.schemas import SchemaRegistration, open_avro_writer
from processor.job.run.binding import Parts, fence_other_jobs, find_lost_writes
from processor.job.run.dead_letters import letter_bytes
from processor.job.run.lease import LeaseRenewal, lease_check, take_table
from processor.job.run.topics import PublishPreparation
from processor.job.run.worker import begin_attempt, transactional_id
from registry.model import Lease
from registry.repository import Registry
from statestore.store import Store

LANE = 0
"""The lane that sends. The run fences all lanes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One run that repairs. Raises LeaseHeld while a job lives, Fenced when a job takes over."""

    settings: Settings
    plan: Plan
    registry: Registry
    store: Store
    owner: str

    def publish(self, roots: Sequence[RootToRepair]) -> Counter[str]:
        """Publishes the documents of these roots, whatever the ledger has; returns the counts."""
        settings = self.settings
        lost = find_lost_writes(settings, self.plan, self.registry, self.store, no_report)
        Parts(settings=settings, registry=self.registry, store=self.store, lost=lost).check()
        lease = self.registry.take_lease(
            settings.job, self.owner, settings.lanes, take_over=False, expires_after=settings.lease_seconds
        )
        renewal = LeaseRenewal(settings, lease)
        renewal.start()
        try:
            self.registry.applied(lease, self.plan.version)
            take_table(self.registry, lease, self.store)
            fence_other_jobs(settings, self.registry)
            for lane in range(lease.lanes):
                self._outbox(lane)
            driver = self._driver(lease)
            for product in sorted({root.root[0] for root in roots} & driver.progress.setup.unready.keys()):
                raise StatestoreError(f"product {product} cannot be repaired: {driver.progress.setup.unready[product]}")
            driver.start()
            driver.repair(roots)
            for product, reason in driver.progress.backlog.stopped.items():
                raise StatestoreError(f"product {product} cannot be repaired: {reason}")
            for reason in driver.progress.unfit.values():
                raise StatestoreError(f"{reason}. Its dead letter names the root")
            return driver.tally
        finally:
            renewal.stop()
            self.registry.give_back(lease)

    def _driver(self, lease: Lease) -> Driver:
        def begin(round_: Round) -> tuple[int, TransactionalOutbox]:
            outbox = self._outbox(LANE, round_.setup.smallest_limit)
            return begin_attempt(self.registry, lease, LANE, round_.number), outbox

        admin = Admin(self.settings.bootstrap_servers, dict(self.settings.kafka))
        preparation = PublishPreparation(
            settings=self.settings,
            store=self.store,
            partitions=partial(product_partitions, admin),
            configs=lambda plan: admin.configs(product.product.topic for product in plan.products.values()),
            registration=SchemaRegistration(access=resolve_schema_registry(self.settings.schema_registry)),
            letter_bytes=letter_bytes(admin, self.settings),
        )
        executor = InProcessExecutor(
            store=self.store, begin=begin, ask_limit=partial(ask_limit, self.settings), open_writer=open_avro_writer
        )
        return make_driver(
            settings=self.settings,
            plan=self.plan,
            store=self.store,
            executor=executor,
            clock=SystemClock(),
            run=Run(number=lease.generation),
            check_lease=lease_check(self.registry, lease),
            setup=preparation.setup(self.plan),
        )

    def _outbox(self, lane: int, batch_bytes: int = BATCH_BYTES) -> TransactionalOutbox:
        settings = self.settings
        return TransactionalOutbox(
            settings.bootstrap_servers,
            dict(settings.kafka),
            transactional_id(settings, lane),
            seconds=settings.transaction_seconds,
            batch_bytes=batch_bytes,
        )
