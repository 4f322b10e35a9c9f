"""`statestore local up|status|produce|down` and `completion`. `local` starts embedded parts that run on between commands, shows
them, puts recorded topics into their Kafka, stops them. `completion` prints the script that completes verbs in bash or zsh.

Results go to stdout (with `--json` one object), progress goes to stderr.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from processor.cli.options import print_progress
from processor.cli.verb import JSON, MACHINE, flag, verb, verb_with_actions
from processor.environment.embedded import BROKER, CONSOLE, OPENSEARCH, SERVER, Addresses, PartsStatus, down, status, up
from processor.environment.programs.program import LOCAL_DIR
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import KINDS, embedded_kind
from processor.errors import PartError
from processor.text import table_lines
from processor.values.recorded_topics import NO_TIMESTAMP, read_records

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
)
def up_parts(args: argparse.Namespace) -> int:
    """Start the parts that do not run, and print their addresses."""
    try:
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
    """Stop the parts, and remove their data."""
    try:
        stopped = down(args.dir, print_progress)
    except PartError as error:
        return _fail(error)
    _print(args, {"stopped": stopped}, ["stopped" if stopped else "no part was running"])
    return DONE


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
