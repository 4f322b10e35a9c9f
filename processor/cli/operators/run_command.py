"""`statestore run`: runs the job on real addresses or on embedded parts; with --from and --to from file to file."""

import argparse
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.authors.try_command import positive
from processor.cli.operators.driver_page import shown_status
from processor.cli.operators.stop_signals import StopSignals
from processor.cli.options import (
    JOB,
    add_definitions,
    add_settings,
    load_definitions,
    print_progress,
    reachable_settings,
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
from processor.errors import AddressMissing, SettingError, StatestoreError, Stopped
from processor.plan.planning import check_after, plan_of, requirements_of
from processor.plan.rejects_topic import check_rejects_topic
from processor.progress.backlog import stopped_line
from processor.rounds.job_event import JobEvent
from processor.settings.open_registry import open_registry
from processor.settings.settings import Settings
from registry.errors import RegistryError
from statestore.errors import StoreError

if TYPE_CHECKING:
    from processor.job.feed import Feed
    from processor.job.job import Job
    from processor.plan.plan import Plan


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("run", help="run the job: read the topics, write the table, publish the documents")
    add_definitions(parser, required=False, otherwise="the definitions of the registry")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        help="recorded topics that the job produces first, in the order of the file",
    )
    parser.add_argument("--to", metavar="FILE", help="file for the published messages, written when the job has ended")
    parser.add_argument("--rejects", metavar="FILE", help="file for dead letters (default: --to with .rejects.jsonl)")
    parser.add_argument(
        "--once", action="store_true", help="end when the job has processed the records that the topics hold now"
    )
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
                from processor.job.feed import read_back

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
    settings: Settings, definitions: object, options: argparse.Namespace, log: JobLog
) -> "tuple[Job | None, int]":
    """Runs the job until it has ended, or until a signal stops it. Returns the job, None if it stopped before it was open, and
    how many records of the file no entity reads."""
    from processor.job.feed import read_feed
    from processor.job.run_end import noted_end

    with StopSignals(log).handled() as signals, shown_status(settings, signals):
        try:
            with noted_end(settings, owner_name(), signals.stopping, log):
                plan = prepare_plan(settings, definitions)
                feed = read_feed(settings, plan, options.source) if options.source else None
                flags = {name: getattr(options, name) for name in ("once", "take_over", "embedded", "adopt")}
                return run_to_end(settings, plan, signals, feed=feed, **flags), feed.others if feed else 0
        except Stopped:
            log(JobEvent(what="stopped", text="stopped"))
            return None, 0


def _report_end(job: "Job", others: int, log: JobLog) -> int:
    """Prints the counts of the run, and each stopped product. Returns the exit status: 1 if there is one."""
    job.driver.tally.update({"read": others, "ignored": others})
    tally, stopped = job.driver.tally, job.driver.backlog.stopped
    text = "\n".join(filter(None, [summary(tally), freshness_histogram(tally)]))
    if log.form == "json":
        log(JobEvent(what="end", text=text, fields=tally))
    elif not log.quiet:
        print(text, file=sys.stderr)
    for product, why in sorted(stopped.items()):
        log(JobEvent(what="product stopped", text=stopped_line(product, why), level="warning"))
    return 1 if stopped else 0


def prepare_plan(settings: Settings, definitions: object) -> "Plan":
    """Applies the definitions, if any, and returns the plan of the registry."""
    from processor.job.binding import check_new_registry
    from processor.product.product import Definitions

    with open_registry(settings) as registry:
        check_new_registry(settings, registry)
        registry.migrate(settings.slots)
        if isinstance(definitions, Definitions):
            required, check = requirements_of(definitions), check_after(definitions, settings.rejects_topic)
            registry.apply(required, who=owner_name(), why="run", check=check)
        plan = plan_of(registry.snapshot())
    check_rejects_topic(plan, settings.rejects_topic)
    return plan


def run_to_end(
    settings: Settings,
    plan: "Plan",
    signals: StopSignals,
    *,
    once: bool,
    take_over: bool,
    embedded: bool,
    adopt: bool = False,
    feed: "Feed | None" = None,
) -> "Job":
    """Runs the job until it has ended, or a signal stops it. Produces the records of `feed` once the job is open: a start that is
    refused leaves the topics as they are. Raises Stopped when the signal comes before the job is open."""
    from processor.job.open_job import prepare_job
    from processor.job.run_again import run_again
    from processor.local.jars import spark_kafka_jars
    from processor.local.java import find_java
    from processor.spark.source import is_local
    from processor.upkeep.run_backfill import keep_last_progress

    jars: list[Path] = []
    if embedded or is_local(settings):
        find_java()  # Spark's own message of a missing Java names no cure
        jars = sorted(spark_kafka_jars(print_progress).glob("*.jar"))
    waiting = [feed] if feed else []
    with open_registry(settings) as registry:
        starts = count()

        def open_() -> "Job":
            first = next(starts) == 0  # a later start takes over from nobody: another job may have taken over meanwhile
            signals.job = None
            signals.job = prepare_job(
                settings,
                plan,
                registry,
                owner=owner_name(),
                take_over=take_over and first,
                jars=jars,
                report=signals.log,
                adopt=adopt and first,
                stopping=signals.stopping,
                troubles=signals.troubles,
            )
            with suppress(RegistryError):  # the run itself waits for a registry that does not answer
                registry.begin_run(signals.job.lease)
            try:
                while waiting:
                    waiting.pop().produce()
            except BaseException:
                signals.job.end()
                raise
            return signals.job

        job = run_again(open_, once=once, stopping=signals.stopping)
        keep_last_progress(job)
    return job


def owner_name() -> str:
    """The name of this process in the lease and in the registry's history: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def require_settings(settings: Settings, *names: str) -> None:
    """Raises AddressMissing where some of these settings are empty."""
    missing = [name for name in names if not getattr(settings, name)]
    if missing:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in missing)
        variables = " and ".join(f"STATESTORE_{name.upper()}" for name in missing)
        verb, it = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise AddressMissing(f"{flags} {verb} missing: give {it}, or set {variables}")


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
