"""`statestore run`: the job, on real addresses or embedded parts; with --from and --to from file to file."""

import argparse
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.options import add_definitions, add_settings, addressed, definitions_of, say
from processor.cli.output import rejects_path, stopped_products, summary, write_published, write_rejects
from processor.cli.trial import positive
from processor.errors import SettingError
from processor.planning import plan_of, registry_plan
from processor.settings import Settings

if TYPE_CHECKING:
    from processor.job import Job
    from processor.model.plan import Plan


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("run", help="run the job: read the topics, keep the table, publish the documents")
    add_definitions(parser, required=False)
    parser.add_argument("--from", dest="source", metavar="FILE", help="recorded topics to produce first, in file order")
    parser.add_argument("--to", metavar="FILE", help="where to write what was published, once the job has ended")
    parser.add_argument(
        "--rejects", metavar="FILE", help="where to write dead letters (default: --to with .rejects.jsonl)"
    )
    parser.add_argument("--once", action="store_true", help="end when everything that is there now is worked off")
    parser.add_argument("--batch", dest="batch_size", metavar="N", type=positive, help="most records a micro-batch")
    parser.add_argument("--take-over", action="store_true", help="take over from a job that still holds the lease")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.to and not options.once:
        raise SettingError("--to writes what was published once the job has ended: add --once")
    definitions = definitions_of(options) if options.definitions else None
    with addressed(options) as found, checkpointed(found, options) as settings:
        need(settings, "bootstrap_servers", "checkpoint")
        plan = prepare(settings, definitions)
        from processor.feed import feed, read_back

        others = feed(settings, plan, options.source) if options.source else 0
        job = run_to_end(settings, plan, once=options.once, take_over=options.take_over, embedded=options.embedded)
        job.rounds.tally.update({"read": others, "ignored": others})
        if options.to:
            published, rejected = read_back(settings, plan)
            write_published(published, options.to)
            write_rejects(rejected, rejects_path(options.rejects, options.to))
    print(summary(job.rounds.tally), file=sys.stderr)
    return stopped_products(job.rounds.owed.stopped)


def prepare(settings: Settings, definitions: object) -> "Plan":
    """The plan to run: what the registry holds, after these definitions, if any, were applied."""
    from processor.model.product import Definitions
    from registry.repository import Registry

    with Registry(settings.registry, settings.registry_schema) as registry:
        registry.migrate(settings.slots)
        if isinstance(definitions, Definitions):
            registry.apply(registry_plan(definitions), who=owner_name(), why="run")
        return plan_of(registry.snapshot())


def run_to_end(settings: Settings, plan: "Plan", *, once: bool, take_over: bool, embedded: bool) -> "Job":
    """Runs the job until it has ended; SIGTERM and SIGINT end it within one batch, and nothing is lost."""
    from processor.job import open_job, run_job
    from processor.local.jars import spark_kafka_jars
    from processor.source import is_local
    from registry.repository import Registry

    jars = sorted(spark_kafka_jars(say).glob("*.jar")) if embedded or is_local(settings) else []
    with Registry(settings.registry, settings.registry_schema) as registry:
        job = open_job(settings, plan, registry, owner=owner_name(), take_over=take_over, jars=jars, report=report)
        with stopped_by_signals(job):
            run_job(job, once=once)
    return job


def report(what: str, tally: Mapping[str, int]) -> None:
    """One line a round, or of what happened beside them."""
    if not tally:
        print(what, file=sys.stderr, flush=True)
        return
    names: tuple[str, ...] = ("settled", "corrections") if "settled" in tally else ("published",)
    if "read" in tally:
        names = ("read", "applied", "dead letters", "published")
    print(f"{what}: " + ", ".join(f"{tally.get(name, 0)} {name}" for name in names), file=sys.stderr, flush=True)


def owner_name() -> str:
    """Who runs this job, as others are told."""
    return f"{socket.gethostname()}:{os.getpid()}"


def need(settings: Settings, *names: str) -> None:
    for name in names:
        if not getattr(settings, name):
            raise SettingError(
                f"--{name.replace('_', '-')} is missing (or STATESTORE_{name.upper()}); or run with --embedded"
            )


@contextmanager
def checkpointed(settings: Settings, options: argparse.Namespace) -> Iterator[Settings]:
    """The settings with a checkpoint; an embedded job that was given none gets one that goes with it."""
    if settings.checkpoint:
        local = "://" not in settings.checkpoint
        yield replace(settings, checkpoint=str(Path(settings.checkpoint).absolute())) if local else settings
    elif options.embedded:
        with tempfile.TemporaryDirectory(prefix="statestore-checkpoint-", ignore_cleanup_errors=True) as directory:
            yield replace(settings, checkpoint=directory)
    else:
        yield settings


@contextmanager
def stopped_by_signals(job: "Job") -> Iterator[None]:
    """SIGTERM and SIGINT ask the job to stop at the next batch."""

    def stop(number: int, frame: object) -> None:
        job.stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
