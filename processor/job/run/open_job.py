"""Opens a job: takes the lease, binds table and checkpoint to the registry, creates the topics, and fences earlier runs.

`prepare_job` does all but the last: a run whose store fails only then keeps its lease, and shows what it waits for.
"""

import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from processor.engine.plan.dead_letter_topic import check_dead_letter_topic
from processor.engine.plan.plan import Plan
from processor.engine.rounds.job_event import JobEvent, Report
from processor.engine.rounds.troubles import Troubles
from processor.environment.settings.resolve import resolve_tables
from processor.environment.settings.settings import Settings, statestore_version
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import open_store
from processor.job.kafka.check_access import check_access
from processor.job.kafka.open_schemas import open_schemas
from processor.job.run.binding import (
    adopt_name,
    adopt_table,
    bind_parts,
    check_parts,
    fence_other_jobs,
)
from processor.job.run.checkpoint import Checkpoint
from processor.job.run.failures import stops_cleanly
from processor.job.run.find_lost_writes import find_lost_writes
from processor.job.run.job import Job
from processor.job.run.lease import LeaseRenewal, take_lease, take_table
from processor.job.run.make_job import make_job
from processor.job.run.source import spark_session
from registry.errors import RegistryBusy, RegistryUnreachable
from registry.model import Lease
from registry.repository import Registry
from statestore.store import FencingToken, Store


def open_job(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    *,
    owner: str,
    take_over: bool,
    jars: list[Path],
    report: Report,
    adopt: bool = False,
    stopping: threading.Event | None = None,
    troubles: Troubles | None = None,
) -> Job:
    """Prepares a job, and begins it: the job is ready to stream. Raises as `prepare_job`, and for what fails at the begin."""
    job = prepare_job(
        settings,
        plan,
        registry,
        owner=owner,
        take_over=take_over,
        jars=jars,
        report=report,
        adopt=adopt,
        stopping=stopping,
        troubles=troubles,
    )
    try:
        with stops_cleanly(job.stopping):
            job.begin()
    except BaseException:
        job.end()
        raise
    return job


def prepare_job(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    *,
    owner: str,
    take_over: bool,
    jars: list[Path],
    report: Report,
    adopt: bool = False,
    stopping: threading.Event | None = None,
    troubles: Troubles | None = None,
) -> Job:
    """Takes the lease and makes a job that has yet to begin (`Job.begin`). Creates the topics to publish to where they are
    missing, and the table at the first start of the registry's first job. `adopt`: the operator means to rename the job, to build
    the state again in an empty table, or to go on with a restored one. An operator stops the job by setting `stopping`, here or
    later. `troubles`: what the job waits for, of a process whose job opens again.

    Raises:
        ForeignPart: table, job name and checkpoint do not belong to this registry; nothing is written.
        Stopped: an operator stopped the job before it was open.
    """
    check_dead_letter_topic(plan, settings.dead_letter_topic)
    stopping, troubles = stopping or threading.Event(), troubles or Troubles(report)
    settings = resolve_tables(settings)
    open_schemas(settings.schema_registry)
    check_access(settings.bootstrap_servers, dict(settings.kafka))
    with stops_cleanly(stopping), ExitStack() as failing:
        store = open_store(settings, RetryBudget.JOB)
        failing.callback(store.close)
        check_parts(settings, registry, store, None, adopt=adopt)
        lost = find_lost_writes(settings, plan, registry, store)
        check_parts(settings, registry, store, None, adopt=adopt, lost=lost)
        report(start_event(settings, plan))
        spark = spark_session(settings, jars)
        checkpoint = Checkpoint(spark=spark, path=settings.checkpoint) if settings.checkpoint else None
        check_parts(settings, registry, store, checkpoint, adopt=adopt, lost=lost)
        if adopt:
            adopt_name(settings, registry, take_over=take_over)
        lease = take_lease(registry, settings, owner, take_over=take_over, stopping=stopping, report=report)
        renewal = LeaseRenewal(settings, lease)
        renewal.start()
        try:
            fence = _take_parts(settings, plan, registry, store, checkpoint, lease, report, adopt=adopt, lost=lost)
            job = make_job(
                settings,
                plan,
                registry,
                store,
                spark=spark,
                lease=lease,
                fence=fence,
                renewal=renewal,
                report=report,
                stopping=stopping,
                troubles=troubles,
            )
            job.read_positions()
        except BaseException:
            renewal.stop()
            with suppress(RegistryUnreachable, RegistryBusy):
                registry.give_back(lease)
            raise
        job.monitor.start()
        failing.pop_all()
    return job


def _take_parts(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    store: Store,
    checkpoint: Checkpoint | None,
    lease: Lease,
    report: Report,
    *,
    adopt: bool,
    lost: str,
) -> FencingToken:
    """Binds table and checkpoint to the registry, and creates the table where it is missing. Returns the right to write."""
    if altered := store.create(registry.snapshot().slots):
        report(JobEvent(what="table", text=altered))
    check_parts(settings, registry, store, checkpoint, adopt=adopt, lost=lost)  # again, as the run before left them
    fence = take_table(registry, lease, store)  # before the first write
    if adopt:
        adopt_table(settings, plan, registry, store, lost=lost)
        fence = take_table(registry, lease, store)  # the registry may have a new identity
    check_parts(settings, registry, store, checkpoint)
    bind_parts(settings, registry, store, checkpoint)
    fence_other_jobs(settings, registry)
    return fence


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
