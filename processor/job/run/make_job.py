"""Makes the job of a run that has its lease and its table: the driver, the workers, the steward, and what they share."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from processor.engine.plan.dead_letter_topic import check_dead_letter_topic
from processor.engine.plan.plan import Plan
from processor.engine.protocol.ledger import Run
from processor.engine.rounds.clock import SystemClock
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.job_event import Report
from processor.engine.rounds.make_driver import make_driver
from processor.engine.rounds.round import PublishSetup
from processor.engine.rounds.steward import Steward
from processor.engine.rounds.troubles import Troubles
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.document_schemas import SchemaRegistration
from processor.job.kafka.open_schemas import open_schemas
from processor.job.run.dead_letter_topic import letter_bytes
from processor.job.run.entity_moves import EntityMoves
from processor.job.run.job import Job
from processor.job.run.lease import LeaseRenewal, lease_check
from processor.job.run.product_topics import ProductTopics
from processor.job.run.publish_preparation import PublishPreparation
from processor.job.run.spark_executor import SparkExecutor
from processor.job.run.transaction_feed import transaction_feed
from registry.model import Lease, Progress
from registry.repository import Registry
from statestore.store import FencingToken, Store


def make_job(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    store: Store,
    *,
    spark: SparkSession,
    lease: Lease,
    fence: FencingToken,
    renewal: LeaseRenewal,
    report: Report,
    stopping: threading.Event,
    troubles: Troubles,
) -> Job:
    """The job, which has yet to begin. Creates the topic of dead letters, and starts the workers."""
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    admin.ensure([settings.dead_letter_topic], partitions=1, compacted=False)
    preparation = PublishPreparation(
        settings=settings,
        store=store,
        configs=ProductTopics(admin=admin, store=store, report=report).look,
        registration=SchemaRegistration(access=settings.schema_registry),
        letter_bytes=letter_bytes(admin, settings),
        report=report,
    )
    executor = SparkExecutor(spark=spark, settings=settings, lease=lease, fence=fence)
    executor.start_workers(preparation.letter_bytes)
    driver = make_driver(
        settings=settings,
        plan=plan,
        store=store,
        executor=executor,
        clock=SystemClock(),
        run=Run(number=lease.generation),
        check_lease=lease_check(registry, lease, stopping),
        report=report,
        setup=PublishSetup(letter_bytes=preparation.letter_bytes),
        transactions=transaction_feed(settings, open_schemas(settings.schema_registry), report),
    )
    moves = EntityMoves(registry=registry, admin=admin, now=driver.clock.now, report=report)
    ready = _Readiness(settings=settings, registry=registry, admin=admin, driver=driver, preparation=preparation)
    return Job(
        driver=driver,
        spark=spark,
        registry=registry,
        admin=admin,
        lease=lease,
        renewal=renewal,
        steward=Steward(
            driver=driver,
            registry=registry,
            lease=lease,
            prepare=ready.prepare,
            fit=moves.fit,
            keep_progress=ready.keep_progress,
        ),
        moves=moves,
        stopping=stopping,
        troubles=troubles,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Readiness:
    """The parts of the job by which the steward gets it ready for a plan, and shows how far it is."""

    settings: Settings
    registry: Registry
    admin: Admin
    driver: Driver
    preparation: PublishPreparation

    def prepare(self, plan: Plan) -> PublishSetup:
        """Makes the topics and the schemas of the plan's products ready."""
        check_dead_letter_topic(plan, self.settings.dead_letter_topic)
        topics = [p.product.topic for p in plan.products.values()]
        self.admin.ensure(topics, partitions=self.settings.partitions, compacted=True)
        return self.preparation.setup(plan)

    def keep_progress(self, progress: Sequence[Progress]) -> None:
        """Shows how far the walks are, and how many rows the last statistics counted."""
        taken = self.registry.statistics.last()
        rows = {one.entity: one.rows for one in taken.entities} if taken else {}
        roots = {name: product.product.root for name, product in self.driver.plan.products.items()}
        entities = [(one, one.walk.split()[1]) for one in progress]
        self.registry.keep_progress(
            [replace(one, of=one.of * rows.get(roots.get(name, name), 0)) for one, name in entities]
        )
