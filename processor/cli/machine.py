"""The verbs of this machine.

`demo` and `tour` show what statestore does. The demo runs the main job on embedded parts and real data, once with its table in
each kind of store, and compares the documents of each run with the answer of SQL. The tour shows a small sample, in this process
and in well under a second.

`local up|status|produce|down` starts embedded parts that run on between commands, shows them, puts recorded topics into their
Kafka, stops them. `local up --source` adds Debezium on a database of one's own, and runs the job. `completion` prints the script
that completes verbs in bash or zsh. Results go to stdout (with `--json` one object), progress goes to stderr.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from processor.cli.options import (
    print_progress,
    require_packages,
    set_embedded_credentials,
    source_address,
    with_addresses,
)
from processor.cli.printing.output import coloured, summary, warn
from processor.cli.verb import JSON, MACHINE, flag, one_of, source_flags, verb, verb_with_actions
from processor.counts import Count
from processor.environment.embedded import (
    BROKER,
    CONSOLE,
    DEBEZIUM,
    JOB,
    OPENSEARCH,
    SERVER,
    Addresses,
    PartsStatus,
    down,
    status,
    up,
)
from processor.environment.programs.connect import connector_problem, read_connector, write_connector
from processor.environment.programs.downloads import LINE_SECONDS, connect_jars, debezium_jars, spark_kafka_jars
from processor.environment.programs.program import LOCAL_DIR, Owner, Program, log_tail, log_text
from processor.environment.programs.servers import CONSOLE_CODE, CONSOLE_PACKAGES
from processor.environment.settings.settings import Settings, read_settings
from processor.environment.stores.kinds import KINDS, embedded_kind, kind_of
from processor.errors import PartError, SettingError, StatestoreError
from processor.language.definitions.load import load, load_directory, read_directory
from processor.text import table_lines, visible_line
from processor.values.recorded_topics import NO_TIMESTAMP, read_records

if TYPE_CHECKING:
    from processor.engine.plan.plan import Plan
    from processor.tools.demo.github import History
    from processor.tools.source.live_source import OwnSource
    from processor.tools.source.session import SourceSession

OF_DEMO: Final = {"batch_size": 200, "wait_seconds": 0.2, "settle_seconds": 0.2}
"""The settings of a demo: the indexes of embedded parts are never late."""
KEPT_DIR: Final = Path(".statestore/demo")
"""The directory of the parts that a demo keeps."""
OpenParts = Callable[[str], AbstractContextManager[tuple[Settings, Path]]]
"""Opens the parts of a demo with its table in this store: their settings, and a directory for the demo's files."""
EXAMPLE = Path(__file__).parents[2] / "examples" / "github"
EVENTS = 150
"""How many of the example's events the demo uses: moto copies its whole table for each query, so twice as many events take four
times as long."""
STEPS = 5
NEXT = (
    "next: docs/first-product.md makes a product of your own; `.venv/bin/statestore demo --console` leaves this demo running, "
    "with its screens in a browser; `.venv/bin/statestore --help` lists the verbs"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """What one run of the demo's job gave. `documents`: the last message of each root, as bytes; `wrong`: the keys of those that
    are not the SQL answer; `lines`: the counts of the run, for the screen."""

    documents: dict[bytes, bytes | None]
    wrong: list[str]
    lines: list[str]


@verb(
    "demo",
    MACHINE,
    one_of(
        flag(
            "--live",
            "let an application write to Postgres, and Debezium send the changes (`make demo-live` installs what this needs)",
        ),
        flag(
            "--console",
            "keep the parts of one run, with their screens in a browser, and print their address (with the extra `console`)",
        ),
    ),
    flag(
        "--store",
        f"run only with the table there (default: one run on each; with --live or --console: {embedded_kind().name})",
        choices=KINDS,
    ),
)
def demo(options: argparse.Namespace) -> int:
    """Run the main job on embedded parts and real data, and compare its documents with Postgres."""
    if options.live:
        return _run_live(options.store or embedded_kind().name)
    if options.console:
        return _run_kept(options.store or embedded_kind().name)
    ended = _run_recorded([options.store] if options.store else tuple(KINDS), demo_parts)
    print(f"\n{NEXT}")
    return ended


def _run_live(store: str) -> int:
    from processor.tools.demo.live import run_live_demo

    set_embedded_credentials()
    began = monotonic()
    count, wrong, dead = run_live_demo(store, print_progress)
    equal = f"{count - len(wrong)} documents equal the SELECT, {dead} dead letters ({monotonic() - began:.0f} s)"
    print(f"\n{coloured(equal, 'red' if wrong or dead else 'green')}\n")
    warn(*(f"the document {key} differs" for key in wrong[:10]))
    return 1 if wrong or dead else 0


def _run_kept(store: str) -> int:
    require_packages("console", *CONSOLE_PACKAGES)
    ended = _run_recorded([store], kept_parts)
    print(
        f"\nthe console over this run is at {start_kept_console(store)}/; `.venv/bin/statestore local down --dir {KEPT_DIR}` "
        f"removes all, and verbs look at it with `--embedded --local-dir {KEPT_DIR}`"
    )
    return ended


def _run_recorded(stores: Sequence[str], parts: OpenParts) -> int:
    from processor.tools.demo.github import build_history, load_events

    if not EXAMPLE.is_dir():
        raise StatestoreError(f"the demo's data is not at {EXAMPLE}; run it in a checkout of the repository")
    recorded = build_history(load_events(EXAMPLE / "events.ndjson.gz")[:EVENTS])
    runs: list[DemoRun] = []
    for store in stores:
        print_progress(f"the table is in {kind_of(store).embedded.title}")
        runs.append(_run_on(store, recorded, parts, follow=not runs))
        print("\n".join(["", *runs[-1].lines]), flush=True)
    roots = {key for made in runs for key in made.documents}
    differing = {key for key in roots if len({made.documents.get(key) for made in runs}) > 1}
    if len(runs) > 1:
        documents = "different documents" if differing else "the same documents, byte for byte"
        print(coloured(f"the runs published {documents}", "red" if differing else "green"))
    wrong = {key for made in runs for key in made.wrong} | {key.decode() for key in differing}
    warn(*(f"the document {key} differs" for key in sorted(wrong)[:10]))
    return 1 if wrong else 0


def _run_on(store: str, recorded: "History", parts: OpenParts, follow: bool) -> DemoRun:
    """Runs the job over the history, on these parts, with the table in this store. `follow`: prints the way of one event."""
    from processor.cli.printing.output import JobLog
    from processor.cli.process import StopSignals
    from processor.environment.settings.resolve import open_registry
    from processor.job.run.feed import read_back, read_feed
    from processor.job.run.open_job import RunRequest, prepare_plan
    from processor.job.run.run_job import run_to_end
    from processor.job.run.source import session_jars
    from processor.tools.demo.tour import differing_keys
    from processor.tools.inspect.oracle import oracle
    from processor.values import canonical_json

    began, definitions = monotonic(), load(read_directory(EXAMPLE))
    print_step(1, "starting the parts on this machine")
    with parts(store) as (settings, directory):
        file = directory / "topics.jsonl"
        file.write_text("".join(canonical_json.dumps(line) + "\n" for line in recorded.records), encoding="utf-8")
        print_step(2, "storing the definitions of examples/github in the registry")
        plan = prepare_plan(settings, definitions)
        print_step(3, f"producing {len(recorded.records)} records, made of public GitHub events of 2015-01-01")
        feed = read_feed(settings, plan, str(file))
        feed.produce()
        print_step(4, "running the job until no record is left (Spark starts first)")
        with StopSignals(JobLog(form="short")).handled() as signals:
            jars = session_jars(settings, print_progress, embedded=True)
            with open_registry(settings) as registry:
                request = RunRequest(
                    settings=settings,
                    plan=plan,
                    registry=registry,
                    jars=jars,
                    report=signals.log,
                    stopping=signals.stopping,
                    troubles=signals.troubles,
                )
                job = run_to_end(request, once=True, opened=signals.watch)
        tally = job.driver.tally
        tally.update({Count.READ: feed.others, Count.IGNORED: feed.others})
        published = list(read_back(settings, plan)[0])
        print_step(5, "asking Postgres for the same documents")
        with oracle(settings.registry, "demo", definitions.entities) as tables:
            tables.load({name: rows.values() for name, rows in recorded.tables.items()})
            truth = tables.documents(definitions.products["user_profile"])
        if follow:
            print_progress("following one event from its change to its document")
            _follow_event(settings, plan, file, recorded)
    wrong = differing_keys(published, truth)
    where = kind_of(store).embedded.title
    right = f"{where}: {len(truth) - len(wrong)} documents equal the SQL answer ({monotonic() - began:.0f} s)"
    dead = f"{tally[Count.DEAD_LETTERS]} dead letters: these records are wrong on purpose, to show what the job does with them"
    return DemoRun(
        documents={r.key or b"": r.value for r in published},
        wrong=wrong,
        lines=[summary(tally), dead, coloured(right, "red" if wrong else "green")],
    )


def _follow_event(settings: Settings, plan: "Plan", file: Path, recorded: "History") -> None:
    """Prints one event, its row, its query and its document, from the table of the run."""
    from processor.environment.stores.kinds import open_store
    from processor.tools.demo.tour import choose_star, describe_event
    from processor.values.recorded_topics import read_records

    record = choose_star(read_records(str(file)), recorded.tables)
    with closing(open_store(settings)) as store:
        for line in describe_event(record, plan, store):
            print(line)


def print_step(number: int, text: str) -> None:
    """Prints which step of the demo begins."""
    print_progress(f"step {number} of {STEPS}: {text}")


@contextmanager
def demo_parts(store: str) -> Iterator[tuple[Settings, Path]]:
    """Parts of the demo's own. They and the directory are removed at the end of the block."""
    from processor.environment import embedded as parts

    set_embedded_credentials()
    with parts.embedded_parts(progress=print_progress, store=store) as addresses, _demo_on(addresses, store) as opened:
        yield opened


@contextmanager
def kept_parts(store: str) -> Iterator[tuple[Settings, Path]]:
    """Parts in KEPT_DIR that stay after the block, in place of those of an earlier demo. They go if the block fails."""
    from processor.environment import embedded as parts

    set_embedded_credentials()
    parts.down(KEPT_DIR, print_progress)
    addresses = parts.up(KEPT_DIR, print_progress, store)
    try:
        with _demo_on(addresses, store) as opened:
            yield opened
    except BaseException:
        parts.down(KEPT_DIR, print_progress)
        raise


def start_kept_console(store: str) -> str:
    """Starts the console over the kept parts. Returns its address."""
    from processor.environment import embedded as parts

    return parts.up(KEPT_DIR, print_progress, store, [parts.CONSOLE]).endpoints[parts.CONSOLE]


@contextmanager
def _demo_on(addresses: Addresses, store: str) -> Iterator[tuple[Settings, Path]]:
    with tempfile.TemporaryDirectory(prefix="statestore-demo-", ignore_cleanup_errors=True) as directory:
        settings = with_addresses(read_settings({**OF_DEMO, "store": store}), addresses)
        yield replace(settings, checkpoint=f"{directory}/checkpoint"), Path(directory)


@verb("tour", MACHINE, flag("--copy", "copy the files of the sample into a new directory", "DIR", type=Path))
def tour(options: argparse.Namespace) -> int:
    """Show on a small sample, in memory, how five topics become one document."""
    from processor.tools.demo.tour import SAMPLE, tour_lines

    if options.copy is not None and options.copy.exists():
        raise StatestoreError(f"{options.copy} exists already: give --copy the name of a new directory")
    print("\n".join(tour_lines()))
    if options.copy is None:
        warn("next: `statestore tour --copy DIR` copies the files, for you to change")
        return 0
    shutil.copytree(SAMPLE, options.copy)
    file = options.copy / "topics.jsonl"
    warn(f"next: `statestore try --definitions {options.copy} --from {file}`")
    return 0


DONE, FAILED = 0, 1
SHELLS = ("bash", "zsh")
INSTALL = 'eval "$(statestore completion bash)"'
LOCAL = verb_with_actions(
    "local",
    MACHINE,
    "start, show, feed or stop embedded parts on this machine: Kafka and Postgres, or also the part of another store",
)
SHARED = (flag("--dir", "directory of the parts and their data (%(default)s)", type=Path, default=LOCAL_DIR), JSON)


@LOCAL.action(
    "up",
    *SHARED,
    flag(
        "--store",
        f"where jobs keep their table ({embedded_kind().name} by default); a store with a part of its own also starts that",
        choices=KINDS,
        default=embedded_kind().name,
    ),
    flag(
        "--land",
        "also start what `land` needs for documents in it: Postgres runs in any case",
        choices=(SERVER, OPENSEARCH),
        default=SERVER,
    ),
    flag(
        "--console",
        "also start the screens of operators over these parts, and print their address",
        dest="more",
        action="append_const",
        const=CONSOLE,
        default=[],
    ),
    *source_flags(
        "your own database (postgresql:// or mysql://): draft definitions, start Debezium on it, run the job"
    ),
    flag("--definitions", "of --source (default: a directory with the name of the database)", "DIR", type=Path),
    flag("--schemas", "of --source: its schemas to draft", "A,B", default=""),
    flag("--print-connector", "of --source: only print the configuration for Kafka Connect"),
)
def up_parts(args: argparse.Namespace) -> int:
    """Start the parts that do not run, and print their addresses."""
    try:
        if args.source:
            return _up_source(args)
        if given := [flag for flag in OF_SOURCE if getattr(args, flag)]:
            raise SettingError(f"--{given[0].replace('_', '-')} goes with --source: give both")
        addresses = up(args.dir, print_progress, args.store, [args.land, *args.more])
    except PartError as error:
        return _fail(error)
    _print(args, addresses.named, _address_lines(addresses))
    return DONE


@LOCAL.action("status", *SHARED)
def parts_status(args: argparse.Namespace) -> int:
    """Print the addresses and which parts run; exit with 1 unless all run."""
    try:
        found = status(args.dir)
    except PartError as error:
        return _fail(error)
    if found is None:
        _print(args, {"up": False}, ["no part is running; start them with `statestore local up`"])
        return FAILED
    _print(args, {"up": found.all_alive, "alive": found.alive} | found.addresses.named, _status_lines(found))
    return DONE if found.all_alive else FAILED


@LOCAL.action("produce", *SHARED, flag("file", "recorded topics; - for standard input", "FILE"))
def produce(args: argparse.Namespace) -> int:
    """Put recorded topics into the Kafka that runs, and make the topics that it lacks.

    The records go behind what the topics hold; a line without a timestamp gets the time of now. The counts go to stdout.
    """
    from processor.job.run.feed import produce_records

    found = status(args.dir)
    if found is None or not found.alive[BROKER]:
        print_progress("Kafka does not run; start it with `statestore local up`")
        return FAILED
    records = list(read_records(args.file, untimed=NO_TIMESTAMP))
    partitions: dict[str, int] = {}
    for record in records:
        partitions[record.topic] = max(record.partition + 1, partitions.get(record.topic, 1))
    produce_records(Settings(bootstrap_servers=found.addresses.bootstrap_servers), records, partitions)
    counts = dict(sorted(Counter(record.topic for record in records).items()))
    _print(args, {"records": counts}, list(table_lines([(topic, f"{n:,}") for topic, n in counts.items()], right=(1,))))
    return DONE


@LOCAL.action("down", *SHARED)
def stop_parts(args: argparse.Namespace) -> int:
    """Stop the parts, and remove their data, and what Debezium made in the source."""
    try:
        connector = read_connector(args.dir / DEBEZIUM)
        stopped = down(args.dir, print_progress)
    except PartError as error:
        return _fail(error)
    if connector is not None:
        from processor.tools.source.live_source import release_source

        if released := release_source(*connector):
            print_progress(f"the source: removed {released}")
    _print(args, {"stopped": stopped}, ["stopped" if stopped else "no part was running"])
    return DONE


SOURCE_STEPS = 4
OF_SOURCE = ("password", "definitions", "schemas", "print_connector")
SOURCE_LINES = 10
"""Documents that one look shows."""
LOOK_SECONDS = 1.0


def _up_source(args: argparse.Namespace) -> int:
    """Drafts definitions, checks the source, starts the parts with Debezium, and runs the job until Ctrl-C."""
    from processor.tools.source.live_source import (
        database_name,
        draft_definitions,
        own_source,
        password_of,
        without_topic,
    )
    from processor.tools.source.session import source_session

    if args.json:
        raise SettingError("--json does not go with --source, which shows documents until Ctrl-C")
    began, address = monotonic(), source_address(args)

    def step(number: int, text: str) -> None:
        print_progress(visible_line(f"step {number} of {SOURCE_STEPS} ({monotonic() - began:.0f} s): {text}"))

    step(1, f"reading the tables of {args.source}")
    with source_session(address) as session:
        name = database_name(session)
        directory = args.definitions or Path(name)
        schemas = [word.strip() for word in args.schemas.split(",") if word.strip()]
        for line in draft_definitions(address, directory, name, schemas, without_topic(session)):
            print_progress(visible_line(line))
        source = own_source(session, address, directory)
        if args.print_connector:
            config = {key: value for key, value in source.properties.items() if key != "name"}
            print(json.dumps({"name": source.prefix, "config": config}, indent=2))
            return DONE
        step(2, f"checking the log, the rights of the user, and the tables of {len(source.plans)} entities")
        properties = _checked_properties(args.dir, session, source)
    if properties is None:
        print_progress("nothing was started: give these statements, then this command again")
        return FAILED
    step(3, "starting Kafka, Postgres and Debezium (the first start fetches 70 MB)")
    for fetch in (connect_jars, partial(debezium_jars, source.kind), spark_kafka_jars):
        fetch(print_progress)
    write_connector(args.dir / DEBEZIUM, properties, password_of(address))
    addresses = up(args.dir, print_progress, args.store, [args.land, *args.more, DEBEZIUM])
    step(4, f"running the job; Debezium first reads the tables ({source.size / 2**20:,.1f} MB)")
    return _follow(args, directory, addresses, source.prefix)


def _checked_properties(parts: Path, session: "SourceSession", source: "OwnSource") -> Mapping[str, str] | None:
    """The properties of the connector, those of an earlier run where there are some; None where the source lacks something that
    Debezium needs. Prints what it finds."""
    from processor.tools.doctor.source import check_before_debezium
    from processor.tools.source.live_source import AUTOCREATE, POSTGRESQL, source_name
    from processor.tools.source.session import read_postgres_rights

    properties, slot = source.properties, source_name(source.prefix)
    if (kept := read_connector(parts / DEBEZIUM)) is not None:
        if {**kept[0], AUTOCREATE: ""} != {**properties, AUTOCREATE: ""}:
            cure = "give `statestore local down` first"
            raise SettingError(f"--source: Debezium runs here with another source or other tables: {cure}")
        return kept[0]
    found = list(check_before_debezium(session, source.plans, slot))
    for one in found:
        print_progress(visible_line(f"  {one.state}: {one.text}"))
        print_progress(visible_line(f"    cure: {one.cure}"))
    if any(one.state == "failure" for one in found):
        return None
    made = source.kind == POSTGRESQL and read_postgres_rights(session, slot).publication
    return {**properties, AUTOCREATE: "disabled"} if made else properties


def _follow(args: argparse.Namespace, directory: Path, addresses: Addresses, connector: str) -> int:
    """Runs the job, and shows the documents, until Ctrl-C or an error."""
    from processor.tools.source.live_source import DocumentScreen, PublishedDocuments

    documents = PublishedDocuments(addresses.bootstrap_servers, load_directory(directory))
    documents.skip()
    screen = DocumentScreen(documents, lambda line: print(visible_line(line), flush=True), SOURCE_LINES)
    where = "" if args.dir == LOCAL_DIR else f" --local-dir {args.dir}"
    for line in (
        "give your own UPDATE: the documents that change come here",
        f"edit {directory}, then: statestore apply --embedded{where} --definitions {directory} --why REASON",
        f"compare with a SELECT: statestore verify --embedded{where} --source {args.source}",
        "Ctrl-C ends the job; `statestore local down` also ends Debezium, and removes its slot and publication",
    ):
        print_progress(visible_line(line))
    argv = (sys.executable, "-c", CONSOLE_CODE, "run", "--embedded", "--local-dir", str(args.dir.resolve()))
    flags = ("--definitions", str(directory.resolve()), "--checkpoint", str((args.dir / JOB / "checkpoint").resolve()))
    program = Program(name="the job", directory=args.dir / JOB, argv=(*argv, *flags))
    program.log.unlink(missing_ok=True)
    began, said, runs = monotonic(), 0.0, False
    with Owner() as owner:
        job = owner.launch(program)
        try:
            while job.alive():
                passed = monotonic() - began
                if not runs and " runs\n" in log_text(program.log):
                    runs = True
                    print_progress(f"the job runs after {passed:.0f} s; its log is {program.log}")
                elif not runs and passed - said >= LINE_SECONDS:
                    said = passed
                    print_progress(f"Spark starts: {passed:.0f} s")
                screen.show_documents()
                if problem := connector_problem(addresses.endpoints[DEBEZIUM], connector):
                    raise PartError("Debezium", f"it stopped: {problem}", f"read {args.dir / DEBEZIUM / 'log.txt'}")
                sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            print_progress("the job ends")
            os.kill(job.pid, signal.SIGTERM)
            while job.alive():
                sleep(LOOK_SECONDS)
            return DONE
    raise PartError("The job", f"it ended; its log ends with:\n{log_tail(program.log)}", "read these lines")


def _address_lines(addresses: Addresses) -> list[str]:
    return list(table_lines(list(addresses.named.items())))


def _status_lines(found: PartsStatus) -> list[str]:
    words = {True: "runs", False: "ended; `statestore local up` starts it again"}
    parts = [(name, words[alive]) for name, alive in found.alive.items()]
    return list(table_lines([*found.addresses.named.items(), *parts]))


def _print(args: argparse.Namespace, value: Mapping[str, object], lines: list[str]) -> None:
    print(json.dumps(value) if args.json else "\n".join(lines))


def _fail(error: PartError) -> int:
    print_progress(str(error))
    return FAILED


@verb("completion", MACHINE, flag("shell", choices=SHELLS))
def completion(options: argparse.Namespace) -> int:
    """Print the completion of a shell: put `eval "$(statestore completion bash)"` into ~/.bashrc."""
    if options.shell == "zsh":  # zsh runs the functions of bash
        print("autoload -U +X compinit && compinit && autoload -U +X bashcompinit && bashcompinit")
    print("\n".join(_script(options.parsers)))
    return 0


def _script(parsers: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    """The lines of the script. Where a verb takes a file, the shell completes the names of files."""
    yield "_statestore() {"
    yield '  local words word="${COMP_WORDS[COMP_CWORD]}"'
    yield "  case $COMP_CWORD in"
    yield f"    1) words='{' '.join(parsers)} --help --version' ;;"
    yield '    *) case "${COMP_WORDS[1]}" in'
    for name, parser in parsers.items():
        yield f"      {name}) words='{' '.join(_words(parser))}' ;;"
    yield "    esac ;;"
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$word"))'
    yield "}"
    yield "complete -o default -F _statestore statestore"


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """The flags of a verb, and its actions with their flags."""
    words: dict[str, None] = {}
    for action in parser._actions:
        words.update(dict.fromkeys(action.option_strings))
        for choice in action.choices or ():
            words[str(choice)] = None
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                words.update(dict.fromkeys(_words(below)))
    return list(words)
