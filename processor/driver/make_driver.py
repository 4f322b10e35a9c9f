"""Makes the driver of a run."""

from collections.abc import Callable

from processor.driver.clock import Clock
from processor.driver.driver import Driver
from processor.driver.executor import Executor
from processor.driver.round_runner import RoundRunner, no_lease
from processor.driver.run_progress import RunProgress
from processor.plan.plan import Plan
from processor.progress.ledger import Run
from processor.records.source_transaction import NoTransactionFeed, TransactionFeed
from processor.rounds.job_event import Report, no_report
from processor.rounds.round import PublishSetup
from processor.settings.settings import Settings
from statestore.store import Store


def make_driver(
    *,
    settings: Settings,
    plan: Plan,
    store: Store,
    executor: Executor,
    clock: Clock,
    run: Run,
    check_lease: Callable[[], None] = no_lease,
    report: Report = no_report,
    setup: PublishSetup | None = None,
    transactions: TransactionFeed | None = None,
) -> Driver:
    """The driver of a run, which begins by this plan. `check_lease`: raises Fenced when another run took over."""
    progress = RunProgress(
        settings=settings,
        plan=plan,
        store=store,
        clock=clock,
        run=run.number,
        report=report,
        setup=setup or PublishSetup(),
    )
    rounds = RoundRunner(executor=executor, progress=progress, run=run, check_lease=check_lease)
    return Driver(progress=progress, rounds=rounds, transactions=transactions or NoTransactionFeed())
