"""Opens the job for a verb that is a run of its own (`backfill`, `erase`, `rejects replay`): it works under the job's lease."""

from typing import TYPE_CHECKING

from processor.cli.operators.stop_signals import StopSignals
from processor.engine.plan.planning import plan_of
from processor.environment.settings.owner_name import owner_name
from processor.environment.settings.settings import Settings

if TYPE_CHECKING:
    from processor.job.run.job import Job
    from registry.repository import Registry


def open_operator_run(settings: Settings, registry: "Registry", signals: StopSignals, *, take_over: bool) -> "Job":
    """The open job, by the definitions in force now. A signal stops it. Raises LeaseHeld while another run lives, unless
    `take_over`: before the start of Spark."""
    from processor.job.run.lease import refuse_living_run
    from processor.job.run.open_job import RunRequest, open_job

    if not take_over:
        refuse_living_run(registry.jobs, settings.job, owner_name(), signals.stopping)
    request = RunRequest(
        settings=settings,
        plan=plan_of(registry.snapshot()),
        registry=registry,
        take_over=take_over,
        report=signals.log,
        stopping=signals.stopping,
        troubles=signals.troubles,
    )
    signals.job = open_job(request)
    return signals.job
