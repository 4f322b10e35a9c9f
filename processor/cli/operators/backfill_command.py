"""`statestore backfill`: does the work that edits of the registry left, while the job does not run."""

import argparse
import sys
from dataclasses import replace

from processor.cli.operators.operator_run import open_operator_run
from processor.cli.operators.stop_signals import StopSignals
from processor.cli.options import JOB, add_settings, reachable_settings, require_settings
from processor.cli.printing.job_log import JobLog, add_log_flags
from processor.counts import Count
from processor.environment.settings.resolve import open_registry
from processor.errors import StatestoreError
from registry.errors import LeaseHeld


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "backfill", help="fill slots and publish changed products while the job does not run; reads no topics"
    )
    add_log_flags(parser)
    add_settings(parser, *JOB)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.tools.operate.run_backfill import run_backfill

    with (
        reachable_settings(options) as given,
        open_registry(given) as registry,
        StopSignals(JobLog(form=options.log, quiet=options.quiet)).handled() as signals,
    ):
        require_settings(given, "bootstrap_servers")
        if not registry.binding().table:
            raise StatestoreError("no job has run with this registry, so no row is stored: start with `statestore run`")
        try:
            job = open_operator_run(replace(given, checkpoint=""), registry, signals, take_over=False)
        except LeaseHeld as held:
            raise StatestoreError(
                f"{held}. The job that runs does this work itself: `statestore slots --watch` shows it"
            ) from None
        left = run_backfill(job)
    tally = job.driver.tally
    published = tally[Count.PUBLISHED] + tally[Count.CORRECTIONS]
    print(f"{tally[Count.WALKED]} rows read, {tally[Count.FILLED]} filled, {published} documents published")
    for reason in left:
        print(f"work remains, and a later `backfill` or `run` continues it: {reason}", file=sys.stderr)
    return 1 if left else 0
