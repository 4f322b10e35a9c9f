"""`statestore run`: runs the job on real addresses or on embedded parts; with --from and --to from file to file."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.arguments import positive
from processor.cli.operators.driver_page import shown_status
from processor.cli.operators.stop_signals import StopSignals
from processor.cli.options import (
    JOB,
    add_definitions,
    add_settings,
    load_definitions,
    print_progress,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.job_log import JobLog, add_log_flags
from processor.cli.printing.output import (
    check_outputs,
    freshness_histogram,
    rejects_path,
    summary,
    write_published,
    write_rejects,
)
from processor.counts import Count
from processor.engine.protocol.backlog import stopped_line
from processor.engine.rounds.job_event import JobEvent
from processor.environment.settings.open_registry import open_registry
from processor.environment.settings.owner_name import owner_name
from processor.environment.settings.settings import Settings
from processor.errors import SettingError, StatestoreError, Stopped
from registry.errors import RegistryError
from statestore.errors import StoreError

if TYPE_CHECKING:
    from processor.job.run.job import Job
    from processor.language.product.product import Definitions


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("run", help="run the job: read the topics, write the table, publish the documents")
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="recorded topics that the job produces first, in the order of the file",
    )
    parser.add_argument("--to", metavar="FILE", help="file for the published messages")
    parser.add_argument("--rejects", metavar="FILE", help="file for dead letters (default: --to with .rejects.jsonl)")
    parser.add_argument("--once", action="store_true", help="end after the records that the topics hold now")
    parser.add_argument("--batch", dest="batch_size", metavar="N", type=positive, help="most records in a micro-batch")
    parser.add_argument("--take-over", action="store_true", help="take over from a job that still holds the lease")
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="rename the registry's job to --job, or, with a new --checkpoint, build the state again in an empty --table, or go "
        "on with one that was restored or lacks its last writes",
    )
    add_log_flags(parser)
    add_settings(parser, *JOB, "checkpoint", "status_port", "status_host")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.to and not options.once:
        raise SettingError("--to writes the published messages when the job has ended: add --once")
    check_outputs(options.to, options.rejects)
    definitions = load_definitions(options) if options.definitions else None
    log = JobLog(form=options.log, quiet=options.quiet)
    try:
        with reachable_settings(options) as reachable, with_checkpoint(reachable, options) as settings:
            require_settings(settings, "bootstrap_servers", "checkpoint")
            job, others = _run_until_stopped(settings, definitions, options, log)
            if options.to and job is not None:
                from processor.job.run.feed import read_back

                published, rejected = read_back(settings, job.driver.plan)
                write_published(published, options.to)
                write_rejects(rejected, rejects_path(options.rejects, options.to))
    except (StatestoreError, RegistryError, StoreError) as error:
        if options.log == "text":
            raise
        log(JobEvent(what="failed", text=str(error), level="error"))
        return 1
    finally:
        log.end()
    return 0 if job is None else _report_end(job, others, log)


def _run_until_stopped(
    settings: Settings, definitions: "Definitions | None", options: argparse.Namespace, log: JobLog
) -> "tuple[Job | None, int]":
    """Runs the job until it has ended, or until a signal stops it. Returns the job, None if it stopped before it was open, and
    how many records of the file no entity reads."""
    from processor.job.run.feed import read_feed
    from processor.job.run.open_job import RunRequest, prepare_plan
    from processor.job.run.run_job import noted_end, run_to_end
    from processor.job.run.source import session_jars

    with StopSignals(log).handled() as signals, shown_status(settings, signals):
        try:
            with noted_end(settings, owner_name(), signals.stopping, log):
                plan = prepare_plan(settings, definitions)
                feed = read_feed(settings, plan, options.source) if options.source else None
                jars = session_jars(settings, print_progress, embedded=options.embedded)
                with open_registry(settings) as registry:
                    request = RunRequest(
                        settings=settings,
                        plan=plan,
                        registry=registry,
                        take_over=options.take_over,
                        adopt=options.adopt,
                        jars=jars,
                        report=signals.log,
                        stopping=signals.stopping,
                        troubles=signals.troubles,
                    )
                    job = run_to_end(request, once=options.once, opened=signals.watch, feed=feed)
                return job, feed.others if feed else 0
        except Stopped:
            log(JobEvent(what="stopped", text="stopped"))
            return None, 0


def _report_end(job: "Job", others: int, log: JobLog) -> int:
    """Prints the counts of the run, and each stopped product. Returns the exit status: 1 if there is one."""
    job.driver.tally.update({Count.READ: others, Count.IGNORED: others})
    tally, stopped = job.driver.tally, job.driver.progress.backlog.stopped
    text = "\n".join(filter(None, [summary(tally), freshness_histogram(tally)]))
    if log.form == "json":
        log(JobEvent(what="end", text=text, fields=tally))
    elif not log.quiet:
        print(text, file=sys.stderr)
    for product, why in sorted(stopped.items()):
        log(JobEvent(what="product stopped", text=stopped_line(product, why), level="warning"))
    return 1 if stopped else 0


@contextmanager
def with_checkpoint(settings: Settings, options: argparse.Namespace) -> Iterator[Settings]:
    """The settings with a checkpoint directory. An embedded job without one gets a directory that is removed after the block."""
    if settings.checkpoint:
        local = "://" not in settings.checkpoint
        yield replace(settings, checkpoint=str(Path(settings.checkpoint).absolute())) if local else settings
    elif options.embedded:
        with tempfile.TemporaryDirectory(prefix="statestore-checkpoint-", ignore_cleanup_errors=True) as directory:
            yield replace(settings, checkpoint=directory)
    else:
        yield settings
