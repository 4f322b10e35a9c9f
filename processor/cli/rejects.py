"""`statestore rejects list` and `replay`: the dead letters that wait, and how they become changes after all."""

import argparse
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

from processor.cli.options import add_settings, addressed
from processor.model.change import Record
from processor.recorded import to_reject_line

if TYPE_CHECKING:
    from processor.model.replays import Letter
    from processor.settings import Settings


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    rejects = verbs.add_parser("rejects", help="dead letters: list them, replay them")
    actions = rejects.add_subparsers(dest="action", required=True, metavar="list|replay")
    show = actions.add_parser("list", help="the dead letters that wait, counted by topic and reason")
    show.add_argument("--each", action="store_true", help="one line each instead: where it came from, and the reason")
    show.add_argument("--json", action="store_true", help="one recorded line each, with epoch and reason")
    show.add_argument("--all", action="store_true", help="those that were replayed as well, with how that ended")
    show.set_defaults(run=run_list)
    replay = actions.add_parser("replay", help="decode them again, by the definitions as they are now, and apply them")
    replay.add_argument("--take-over", action="store_true", help="take over from a job that still holds the lease")
    replay.set_defaults(run=run_replay)
    for parser in (show, replay):
        choice = parser.add_argument_group("which dead letters (without: all)")
        choice.add_argument("--topic", metavar="T", help="that came from this topic")
        choice.add_argument("--partition", metavar="P", type=int, help="... from this partition")
        choice.add_argument("--offsets", metavar="A-B", type=offsets, help="... from offset A to B, both included")
        choice.add_argument("--reason", metavar="TEXT", help="whose reason contains this text")
        add_settings(parser)


def offsets(text: str) -> range:
    """The offsets that `17` or `17-30` names."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be an offset, or a range like 17-30")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def run_list(options: argparse.Namespace) -> int:
    with addressed(options) as settings:
        found = [(letter, outcome) for letter, outcome in kept(settings) if chosen(options, letter)]
    shown = [(letter.rejected, outcome) for letter, outcome in found if options.all or not outcome]
    if options.json:
        for rejected, outcome in shown:
            print(to_reject_line(rejected, **({"replayed": outcome} if outcome else {})))
    elif options.each:
        for rejected, outcome in shown:
            print(f"{place(rejected.record)}: {rejected.reason}" + (f" (replayed: {outcome})" if outcome else ""))
    else:
        counts = Counter(f"{rejected.record.topic}: {rejected.reason}" for rejected, _ in shown)
        for what, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            print(f"{count:8}  {what}")
    waiting = sum(not outcome for _, outcome in found)
    print(f"{waiting} dead letters wait, {len(found) - waiting} were replayed", file=sys.stderr)
    return 0


def run_replay(options: argparse.Namespace) -> int:
    from processor.cli.job import need, owner_name, report, stopped_by_signals
    from processor.job import open_job, run_replays
    from processor.planning import plan_of
    from registry.repository import Registry

    with addressed(options) as settings:
        need(settings, "bootstrap_servers")
        waiting = [letter for letter, outcome in kept(settings) if not outcome and chosen(options, letter)]
        if not waiting:
            print("no dead letter waits that was asked for", file=sys.stderr)
            return 0
        with Registry(settings.registry, settings.registry_schema) as registry:
            job = open_job(
                settings,
                plan_of(registry.snapshot()),
                registry,
                owner=owner_name(),
                take_over=options.take_over,
                jars=[],
                report=report,
            )
            with stopped_by_signals(job):
                replayed = list(run_replays(job, waiting))
    refused = [one for one in replayed if one.outcome == "refused"]
    for one in refused:
        print(f"refused again: {place(one.record)}: {one.reason}", file=sys.stderr)
    counts = Counter(one.outcome for one in replayed)
    account = " + ".join(f"{counts[o]} {o}" for o in ("applied", "superseded", "ignored", "refused"))
    print(f"{len(replayed)} of {len(waiting)} dead letters replayed = {account}")
    print(f"{job.rounds.tally['corrections']} documents published", file=sys.stderr)
    return 1 if refused or len(replayed) < len(waiting) else 0


def kept(settings: "Settings") -> "list[tuple[Letter, str]]":
    """The dead letters of the topic, each with how its replay ended, empty while it waits."""
    from processor.kafka import read_topic
    from processor.model.replays import PARTITION, ended_replays, replay_key
    from processor.rejects import letters
    from processor.worker import open_store

    found = letters(read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.rejects_topic))
    ended = ended_replays(open_store(settings).partition(PARTITION)) if found else {}
    return [(letter, ended.get(replay_key(letter.rejected.record), "")) for letter in found]


def chosen(options: argparse.Namespace, letter: "Letter") -> bool:
    """Whether the flags name this dead letter."""
    record = letter.rejected.record
    return (
        (options.topic is None or record.topic == options.topic)
        and (options.partition is None or record.partition == options.partition)
        and (options.offsets is None or record.offset in options.offsets)
        and (options.reason is None or options.reason in letter.rejected.reason)
    )


def place(record: Record) -> str:
    """Where a record came from, for a person."""
    return f"{record.topic}/{record.partition} offset {record.offset} epoch {record.epoch}"
