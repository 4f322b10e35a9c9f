"""Opens a job: takes the lease, binds table and checkpoint to the registry, creates the topics, makes driver and workers, and
fences earlier runs.

`prepare_job` does all but the last: a run whose store fails only then keeps its lease, and shows what it waits for.
"""

import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from processor.engine.plan.plan import Plan, check_dead_letter_topic, check_needs
from processor.engine.plan.planning import check_after, plan_of, requirements_of
from processor.engine.protocol.ledger import Run
from processor.engine.rounds.driver import Driver, make_driver
from processor.engine.rounds.events import JobEvent, Report, SystemClock, Troubles
from processor.engine.rounds.operators import RegistryFollower
from processor.engine.rounds.round import PublishSetup
from processor.engine.rounds.round_counts import LIMIT
from processor.environment.settings.resolve import open_registry, resolve_tables
from processor.environment.settings.settings import Settings, owner_name, statestore_version
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import open_loader, open_store
from processor.job.kafka.admin import Admin, product_partitions
from processor.job.kafka.client import check_access
from processor.job.kafka.schemas import SchemaRegistration, open_schemas
from processor.job.run.binding import Parts, check_new_registry, find_lost_writes
from processor.job.run.checkpoint import Checkpoint
from processor.job.run.dead_letters import letter_bytes
from processor.job.run.feed import transaction_feed
from processor.job.run.job import Job, SparkExecutor
from processor.job.run.lease import LeaseRenewal, lease_check, take_lease
from processor.job.run.outages import stops_cleanly
from processor.job.run.source import spark_session
from processor.job.run.topics import EntityMoves, ProductTopics, PublishPreparation
from processor.language.product.product import Definitions
from registry.errors import RegistryBusy, RegistryUnreachable
from registry.model import Progress
from registry.repository import Registry
from statestore.store import FencingToken, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a run is asked to do, and by what."""

    settings: Settings
    plan: Plan
    """Of the registry at the start. The run takes later versions itself."""
    registry: Registry
    report: Report
    owner: str = field(default_factory=owner_name)
    """The name of the run in its lease."""
    take_over: bool = False
    """Takes the lease of a run that still holds it."""
    adopt: bool = False
    """The operator means to rename the job, to build the state again in an empty table, or to go on with a restored one."""
    load: bool = False
    """Loads the records that the topics have now into an empty table, in bulk."""
    jars: Sequence[Path] = ()
    """Of a Spark session on this machine."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """An operator stops the job by setting it, before it is open or later."""
    troubles: Troubles | None = None
    """What the job waits for, of a process whose job opens again."""


def prepare_plan(settings: Settings, definitions: Definitions | None) -> Plan:
    """Applies the definitions, if any, and returns the plan of the registry."""
    with open_registry(settings) as registry:
        check_new_registry(settings, registry)
        registry.migrate(settings.slots)
        if definitions is not None:
            required, check = requirements_of(definitions), check_after(definitions, settings.dead_letter_topic)
            registry.apply(required, who=owner_name(), why="run", check=check)
        plan = plan_of(registry.snapshot())
    check_dead_letter_topic(plan, settings.dead_letter_topic)
    return plan


def open_job(request: RunRequest) -> Job:
    """Prepares a job, and begins it: the job is ready to stream. Raises what `prepare_job` raises, or what `Job.begin` raises."""
    job = prepare_job(request)
    try:
        with stops_cleanly(job.stopping):
            job.begin()
    except BaseException:
        job.end()
        raise
    return job


def prepare_job(request: RunRequest) -> Job:
    """Takes the lease and makes a job that has yet to begin (`Job.begin`). Creates the topics to publish to where they are
    missing, and the table at the first start of the registry's first job.

    Raises:
        OwnedByAnother: table, job name and checkpoint do not belong to this registry; nothing is written.
        Stopped: an operator stopped the job before it was open.
    """
    check_dead_letter_topic(request.plan, request.settings.dead_letter_topic)
    check_needs(request.plan, dict(request.settings.secrets))
    request = replace(request, settings=resolve_tables(request.settings))
    settings, registry, report = request.settings, request.registry, request.report
    open_schemas(settings.schema_registry)
    check_access(settings.bootstrap_servers, dict(settings.kafka))
    with stops_cleanly(request.stopping), ExitStack() as failing:
        store = open_store(settings, RetryBudget.JOB)
        failing.callback(store.close)
        lost = find_lost_writes(settings, request.plan, registry, store, report)
        parts = Parts(settings=settings, registry=registry, store=store, adopt=request.adopt, lost=lost)
        parts.check()  # before the start of Spark, which takes seconds
        report(start_event(settings, request.plan))
        spark = spark_session(settings, request.jars)
        if settings.checkpoint:
            parts = replace(parts, checkpoint=Checkpoint(spark=spark, path=settings.checkpoint))
            parts.check()  # before the first write
        if request.adopt:
            parts.adopt_name(take_over=request.take_over)
        lease = take_lease(
            registry, settings, request.owner, take_over=request.take_over, stopping=request.stopping, report=report
        )
        renewal = LeaseRenewal(settings, lease)
        renewal.start()
        try:
            job = _make_job(request, store, spark, renewal, parts.take(request.plan, lease, report))
            job.read_positions()
        except BaseException:
            renewal.stop()
            with suppress(RegistryUnreachable, RegistryBusy):
                registry.give_back(lease)
            raise
        job.monitor.start()
        failing.pop_all()
    return job


def _make_job(
    request: RunRequest, store: Store, spark: SparkSession, renewal: LeaseRenewal, fence: FencingToken
) -> Job:
    """The job, which has yet to begin. Creates the topic of dead letters, and starts the workers."""
    settings, registry, report, lease = request.settings, request.registry, request.report, renewal.lease
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    admin.ensure([settings.dead_letter_topic], partitions=1, compacted=False)
    preparation = PublishPreparation(
        settings=settings,
        store=store,
        configs=ProductTopics(admin=admin, store=store, report=report).look,
        partitions=partial(product_partitions, admin),
        registration=SchemaRegistration(access=settings.schema_registry),
        letter_bytes=letter_bytes(admin, settings),
        report=report,
    )
    executor = SparkExecutor(spark=spark, settings=settings, lease=replace(lease, charts=None), fence=fence)
    executor.start_workers(preparation.letter_bytes)
    driver = make_driver(
        settings=settings,
        plan=request.plan,
        store=store,
        executor=executor,
        clock=SystemClock(),
        run=Run(number=lease.generation),
        check_lease=lease_check(registry, lease, request.stopping),
        report=report,
        setup=PublishSetup(letter_bytes=preparation.letter_bytes),
        keep_letters=partial(registry.letters.keep, lease=lease),
        strict=lease.past is not None and lease.past.failed > 0 and LIMIT in lease.past.text,
        transactions=transaction_feed(settings, open_schemas(settings.schema_registry), report),
    )
    moves = EntityMoves(registry=registry, admin=admin, now=driver.clock.now, report=report)
    follower = RegistryFollower(
        driver=driver,
        registry=registry,
        lease=lease,
        prepare=partial(_prepare, settings, admin, preparation),
        check=partial(check_needs, secrets=dict(settings.secrets)),
        fit=moves.fit,
        keep_progress=partial(_keep_progress, registry, driver),
    )
    return Job(
        driver=driver,
        spark=spark,
        registry=registry,
        admin=admin,
        lease=lease,
        renewal=renewal,
        follower=follower,
        moves=moves,
        loader=open_loader(settings, fence) if request.load else None,
        stopping=request.stopping,
        troubles=request.troubles or Troubles(report),
    )


def _prepare(settings: Settings, admin: Admin, preparation: PublishPreparation, plan: Plan) -> PublishSetup:
    """Makes the topics and the schemas of a plan's products ready."""
    check_dead_letter_topic(plan, settings.dead_letter_topic)
    topics = [p.product.topic for p in plan.products.values()]
    admin.ensure(topics, partitions=settings.partitions, compacted=True)
    return preparation.setup(plan)


def _keep_progress(registry: Registry, driver: Driver, progress: Sequence[Progress]) -> None:
    """Shows how far the walks are, and how many rows the last statistics counted."""
    taken = registry.statistics.last()
    rows = {one.entity: one.rows for one in taken.entities} if taken else {}
    roots = {name: product.product.root for name, product in driver.plan.products.items()}
    entities = [(one, one.walk.split()[1]) for one in progress]
    registry.keep_progress([replace(one, of=one.of * rows.get(roots.get(name, name), 0)) for one, name in entities])


def start_event(settings: Settings, plan: Plan) -> JobEvent:
    """The event of a start: which job begins, by what, and that it waits for Spark first."""
    topics = sorted(entity.entity.topic for entity in plan.entities.values())
    version = statestore_version()
    text = (
        f"statestore {version}: job {settings.job} starts by registry version {plan.version}, with topics "
        f"{', '.join(topics) or 'none'}; waits for Spark"
    )
    fields = {"statestore": version, "job": settings.job, "registry_version": plan.version, "topics": topics}
    return JobEvent(what="start", text=text, fields=fields)
