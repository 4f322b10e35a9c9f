"""`statestore try`: recorded topics in, published messages out, in this process."""

import argparse
import sys

from processor.cli.options import add_definitions, definitions_of
from processor.cli.output import in_topics, rejects_path, stopped_products, summary, write_published, write_rejects
from processor.lockstep import calm_collector
from processor.planning import plan_alone
from processor.recorded import read_records
from processor.rejects import rejected_record
from processor.settings import read_settings
from processor.trial import Trial, batches


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("try", help="run recorded topics through the steps, in this process and in memory")
    add_definitions(parser)
    parser.add_argument(
        "--from", dest="source", metavar="FILE", required=True, help="recorded topics; - for standard input"
    )
    parser.add_argument("--to", metavar="FILE", help="where published messages go (default: standard output)")
    parser.add_argument("--rejects", metavar="FILE", help="where dead letters go (default: --to with .rejects.jsonl)")
    parser.add_argument("--batch", metavar="N", type=positive, help="records a batch (default: all at once)")
    parser.add_argument(
        "--lag", metavar="K", type=seconds, default=0.0, help="every index answers K seconds late (default 0)"
    )
    parser.set_defaults(run=run)


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def seconds(text: str) -> float:
    """A number of seconds from 0 on."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number


def run(options: argparse.Namespace) -> int:
    calm_collector()
    settings = read_settings({})
    trial = Trial(plan=plan_alone(definitions_of(options), settings.slots), settings=settings, lag=options.lag)
    for chunk in batches(read_records(options.source), options.batch):
        trial.batch(chunk)
        trial.settle()
    trial.finish()
    write_published(in_topics(trial.published.messages), options.to or "-")
    write_rejects(map(rejected_record, trial.rejects.messages), rejects_path(options.rejects, options.to))
    print(summary(trial.tally), file=sys.stderr)
    return stopped_products(trial.owed.stopped)
