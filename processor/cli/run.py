"""`statestore run`, `load`, `backfill` and `copy`: run the job on real addresses or on embedded parts, with --from and --to from
file to file; fill an empty table in bulk; do the work that edits left; copy the state of a stopped job. AWS Glue starts the job
by `glue_arguments`."""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from processor.cli.options import (
    JOB,
    REGISTRY,
    TABLE,
    load_definitions,
    load_settings,
    print_progress,
    reachable_settings,
    require_settings,
)
from processor.cli.printing.output import (
    JobLog,
    ProgressBar,
    check_outputs,
    dead_letters_path,
    freshness_histogram,
    summary,
    warn,
    write_dead_letters,
    write_published,
)
from processor.cli.printing.plan import load_lines
from processor.cli.process import StopSignals, open_operator_run, shown_status
from processor.cli.verb import (
    DEAD_LETTER_FILE,
    KNOWN,
    LOG,
    OPERATORS,
    STORED_DEFINITIONS,
    TAKE_OVER,
    flag,
    positive,
    verb,
)
from processor.counts import Count
from processor.engine.protocol.pending import stopped_line
from processor.engine.rounds.events import JobEvent
from processor.environment.settings.resolve import address_forms, open_registry, settings_at
from processor.environment.settings.settings import PASSWORDS, Settings, owner_name
from processor.environment.stores.kinds import open_loader
from processor.errors import SettingError, StatestoreError, Stopped
from processor.values.recorded_topics import read_records
from registry.errors import LeaseHeld, RegistryError, RegistryMissing, UnknownRevision
from registry.model import PastRuns
from statestore.copy_items import CopyStep
from statestore.store import FencingToken, StoreError

if TYPE_CHECKING:
    from processor.job.run.job import Job
    from processor.language.product.product import Definitions


SOURCE = flag("--from", "recorded topics that the job produces first, in the order of the file", "FILE", dest="source")
ADOPT = flag(
    "--adopt",
    "rename the registry's job to --job, or, with a new --checkpoint, build the state again in an empty --table, or go on "
    "with one that was restored or lacks its last writes",
)


@verb(
    "run",
    OPERATORS,
    STORED_DEFINITIONS,
    SOURCE,
    flag("--to", "file for the published messages", "FILE"),
    DEAD_LETTER_FILE,
    flag("--once", "end after the records that the topics hold now"),
    flag("--batch", "most records in a micro-batch", "N", dest="batch_size", type=positive),
    TAKE_OVER,
    ADOPT,
    *LOG,
    settings=(*JOB, "checkpoint", "status_port", "status_host"),
)
def run(options: argparse.Namespace) -> int:
    """Run the job: read the topics, write the table, publish the documents."""
    if options.to and not options.once:
        raise SettingError("--to writes the published messages when the job has ended: add --once")
    check_outputs(options.to, options.dead_letters)
    return _run(options, load=False)


@verb(
    "load",
    OPERATORS,
    STORED_DEFINITIONS,
    SOURCE,
    flag("--to", "file for the published messages", "FILE"),
    DEAD_LETTER_FILE,
    TAKE_OVER,
    ADOPT,
    flag("--price", "load nothing: price rows like those of these topics", "FILE"),
    *LOG,
    settings=(*JOB, "checkpoint", "status_port", "status_host"),
)
def load(options: argparse.Namespace) -> int:
    """Fill an empty table in bulk from the topics, and publish each document once.

    Reads the records that the topics hold now. `run` with the same settings and checkpoint continues behind them. A load that
    broke off leaves the table empty: give `load` or `run` again.
    """
    if options.price:
        return _price_load(options)
    check_outputs(options.to, options.dead_letters)
    options.once = True
    return _run(options, load=True)


def _price_load(options: argparse.Namespace) -> int:
    """Prints the price of a first load of recorded topics over DynamoDB, both ways."""
    from processor.engine.plan.planning import plan_alone, plan_of
    from processor.tools.inspect.price import price_load
    from processor.tools.inspect.prices import DEFAULT

    records = list(read_records(options.price))
    with reachable_settings(options) as settings:
        if options.definitions:
            plan = plan_alone(load_definitions(options), settings.slots)
        else:
            with open_registry(settings) as registry:
                plan = plan_of(registry.snapshot())
    print("\n".join(load_lines(price_load(plan, replace(settings, max_reject_share=1.0), records), DEFAULT)))
    return 0


def _run(options: argparse.Namespace, *, load: bool) -> int:
    """Runs the job, on embedded parts where the options say so. `load`: it begins with a load."""
    definitions = load_definitions(options) if options.definitions else None
    log = JobLog(form=options.log, quiet=options.quiet)
    try:
        with reachable_settings(options) as reachable, with_checkpoint(reachable, options) as settings:
            require_settings(settings, "bootstrap_servers", "checkpoint")
            if load:
                open_loader(settings, FencingToken(settings.job, 0)).close()  # wrong settings end here
            job, others = _run_until_stopped(settings, definitions, options, log, load=load)
            if options.to and job is not None:
                from processor.job.run.feed import read_back

                published, rejected = read_back(settings, job.driver.plan)
                write_published(published, options.to)
                write_dead_letters(rejected, dead_letters_path(options.dead_letters, options.to))
    except (StatestoreError, RegistryError, StoreError) as error:
        if options.log == "text":
            raise
        log(JobEvent(what="failed", text=str(error), level="error"))
        return 1
    finally:
        log.end()
    return 0 if job is None else _report_end(job, others, log)


def _run_until_stopped(
    settings: Settings, definitions: "Definitions | None", options: argparse.Namespace, log: JobLog, *, load: bool
) -> "tuple[Job | None, int]":
    """Runs the job until it has ended, or until a signal stops it. Returns the job, None if it stopped before it was open, and
    how many records of the file no entity reads."""
    with StopSignals(log).handled() as signals, shown_status(settings, signals):
        try:
            if not options.take_over:
                _refuse_next_to_living_run(settings, signals)
            from processor.job.run.feed import read_feed
            from processor.job.run.open_job import RunRequest, prepare_plan
            from processor.job.run.run_job import noted_end, run_to_end
            from processor.job.run.source import session_jars

            with noted_end(settings, owner_name(), signals.stopping, log):
                plan = prepare_plan(settings, definitions)
                feed = read_feed(settings, plan, options.source) if options.source else None
                jars = session_jars(settings, print_progress, embedded=options.embedded)
                with open_registry(settings) as registry:
                    signals.past = next((job.past for job in registry.jobs() if job.job == settings.job), PastRuns())
                    request = RunRequest(
                        settings=settings,
                        plan=plan,
                        registry=registry,
                        take_over=options.take_over,
                        adopt=options.adopt,
                        load=load,
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


def _refuse_next_to_living_run(settings: Settings, signals: StopSignals) -> None:
    """Raises LeaseHeld where the job runs already: before the import of Spark, and before the definitions change the registry."""
    from processor.job.run.lease import LOOK_SECONDS, refuse_living_run

    with suppress(RegistryMissing, UnknownRevision), open_registry(settings) as registry:
        refuse_living_run(registry.jobs, settings.job, owner_name(), signals.stopping, LOOK_SECONDS)


def _report_end(job: "Job", others: int, log: JobLog) -> int:
    """Prints the counts of the run, and each stopped product. Returns the exit status: 1 if there is one."""
    job.driver.tally.update({Count.READ: others, Count.IGNORED: others})
    tally, stopped = job.driver.tally, job.driver.progress.backlog.stopped
    text = "\n".join(filter(None, [summary(tally), freshness_histogram(tally)]))
    if log.form == "json":
        log(JobEvent(what="end", text=text, fields=tally))
    elif not log.quiet:
        print_progress(text)
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


@verb("backfill", OPERATORS, *LOG, settings=JOB)
def backfill(options: argparse.Namespace) -> int:
    """Fill slots and publish changed products while the job does not run; reads no topics."""
    from processor.tools.operate.erase import run_backfill

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
    warn(*(f"work remains, and a later `backfill` or `run` continues it: {reason}" for reason in left))
    return 1 if left else 0


@verb(
    "copy",
    OPERATORS,
    flag("--from", f"the table of the job: {address_forms()}", "ADDRESS", dest="source", required=True),
    flag("--to", "an empty or a new table, in one of these forms too", "ADDRESS", dest="target", required=True),
    settings=(*REGISTRY, *TABLE, "job"),
)
def copy(options: argparse.Namespace) -> int:
    """Copy the state of a stopped job into another store, and go on there."""
    from processor.tools.operate.registry import copy_state

    given = load_settings(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        passwords = {name: getattr(given, name) for name in PASSWORDS.values()}
        with_passwords = replace(settings, **passwords | {"registry_password": ""})
        source = settings_at("--from", options.source, with_passwords)
        target = settings_at("--to", options.target, with_passwords)
        with closing(ProgressBar(sys.stderr)) as bar:
            counts = copy_state(source, target, registry, owner=owner_name(), report=lambda step: _show(bar, step))
    print(f"{target.place} holds the state of {source.place}: {counts}")
    print(f"start the job with --store {target.store} --table {target.table}, and with its former checkpoint")
    return 0


def _show(bar: ProgressBar, step: CopyStep) -> None:
    note = f", waits for {step.late:,} entries of indexes" if step.late else ""
    bar.show(step.phase, step.done, step.total, about=step.about, note=note)


OF_GLUE = (
    *("*[A-Z]*", "additional-*", "auto-scale-*", "class", "conf", "continuation-*", "continuous-*", "customer-*"),
    *("datalake-*", "debug", "disable-*", "enable-*", "encryption-*", "endpoint", "executor-cores", "extra-*", "job-*"),
    *("mode", "python-*", "spark-event-*", "use-postgres-driver", "user-jars-first", "write-shuffle-*"),
)
"""Patterns of Glue's own keys: "Using job parameters in AWS Glue jobs", and JOB_NAME, JOB_RUN_ID, TempDir and the like."""


def glue_arguments(given: Sequence[str]) -> list[str]:
    """The arguments of `run` among those that AWS Glue gives a script. Raises SystemExit, with one line, for an unknown key.

    Glue gives the script each argument as `--KEY value`: those of the job, and its own. Its own are left out, by the list that
    AWS documents. A flag without a value, such as `--take-over`, has the value "true" there. A key that neither Glue nor `run`
    knows is an error: it is a misspelt setting. `--endpoint` and `--debug` are Glue's own too, so the setting `endpoint` comes
    from the settings file.
    """
    verbs = argparse.ArgumentParser().add_subparsers()
    KNOWN["run"].add_to(verbs)
    actions = verbs.choices["run"]._option_string_actions
    arguments: list[str] = []
    for key, value in _pairs(given):
        action = actions.get(f"--{key}")
        if any(fnmatchcase(key, pattern) for pattern in OF_GLUE):
            continue
        if action is None:
            raise SystemExit(f"statestore run: there is no setting --{key}; `statestore run --help-all` lists them")
        if action.nargs != 0:
            arguments += [f"--{key}", value]
        elif value != "false":
            arguments.append(f"--{key}")
    return arguments


def _pairs(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The keys and their values; the value of a key without one is empty."""
    for word, after in zip(given, [*given[1:], "--"], strict=True):
        if word.startswith("--"):
            key, equals, value = word[2:].partition("=")
            yield key, value if equals or after.startswith("--") else after
