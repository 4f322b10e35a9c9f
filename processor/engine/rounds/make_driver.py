"""Makes the driver of a run."""

from collections.abc import Callable

from processor.engine.plan.plan import Plan
from processor.engine.protocol.ledger import Run
from processor.engine.rounds.clock import Clock
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.executor import Executor
from processor.engine.rounds.job_event import Report, no_report
from processor.engine.rounds.round import PublishSetup
from processor.engine.rounds.round_runner import RoundRunner, no_lease
from processor.engine.rounds.run_progress import RunProgress
from processor.environment.settings.settings import Settings
from processor.values.source_transaction import NoTransactionFeed, TransactionFeed
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
