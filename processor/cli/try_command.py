"""`statestore try`: reads recorded topics and writes the messages that a job would publish, in this process."""

import argparse
import sys

from processor.cli.options import add_definitions, load_definitions
from processor.cli.output import (
    check_outputs,
    rejects_path,
    report_stopped_products,
    summary,
    to_records,
    write_published,
    write_rejects,
)
from processor.plan.planning import plan_alone
from processor.records.dead_letters import rejected_record
from processor.records.recorded_topics import read_records
from processor.rounds.step_runner import tune_garbage_collector
from processor.settings import read_settings
from processor.trial.trial import Trial, batches


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("try", help="run recorded topics through the steps, in this process and in memory")
    add_definitions(parser)
    parser.add_argument(
        "--from", dest="source", metavar="FILE", required=True, help="recorded topics; - for standard input"
    )
    parser.add_argument("--to", metavar="FILE", help="file for published messages (default: standard output)")
    parser.add_argument("--rejects", metavar="FILE", help="file for dead letters (default: --to with .rejects.jsonl)")
    parser.add_argument("--batch", metavar="N", type=positive, help="records in a batch (default: all in one)")
    parser.add_argument(
        "--lag", metavar="K", type=seconds, default=0.0, help="delay of every index, in seconds (default 0)"
    )
    parser.set_defaults(run=run)


def positive(text: str) -> int:
    """A whole number, at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def seconds(text: str) -> float:
    """A finite number of seconds, at least 0."""
    number = float(text)
    if not 0 <= number < float("inf"):  # refuses nan too
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def run(options: argparse.Namespace) -> int:
    tune_garbage_collector()
    check_outputs(options.to, options.rejects)
    settings = read_settings({})
    trial = Trial(plan=plan_alone(load_definitions(options), settings.slots), settings=settings, lag=options.lag)
    try:
        for chunk in batches(read_records(options.source), options.batch):
            trial.batch(chunk)
            trial.background_work()
        trial.finish()
    finally:  # too many dead letters end the run, and the file says why
        write_rejects(map(rejected_record, trial.rejects.messages), rejects_path(options.rejects, options.to))
    write_published(to_records(trial.published.messages), options.to or "-")
    print(summary(trial.tally), file=sys.stderr)
    return report_stopped_products(trial.stopped)
