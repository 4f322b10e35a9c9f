"""`statestore rejects list` and `replay`: shows the dead letters that wait, and decodes and applies them again."""

import argparse
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

from processor.cli.chosen_plan import stored_state
from processor.cli.options import add_settings, reachable_settings
from processor.job.open_registry import open_registry
from processor.records.record import Record
from processor.records.recorded_topics import to_reject_line

if TYPE_CHECKING:
    from processor.records.dead_letters import DeadLetter
    from processor.settings import Settings


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    rejects = verbs.add_parser("rejects", help="list dead letters, or replay them")
    actions = rejects.add_subparsers(dest="action", required=True, metavar="list|replay")
    show = actions.add_parser("list", help="show the dead letters that wait, counted by topic and reason")
    show.add_argument("--each", action="store_true", help="print a line for each dead letter: its position and reason")
    show.add_argument(
        "--json", action="store_true", help="print a recorded line for each dead letter, with epoch and reason"
    )
    show.add_argument(
        "--all", action="store_true", help="show replayed dead letters too, with the outcome of the replay"
    )
    show.set_defaults(run=run_list)
    replay = actions.add_parser(
        "replay", help="decode dead letters again by the definitions in force now, and apply them"
    )
    replay.add_argument("--take-over", action="store_true", help="take over from a job that still holds the lease")
    replay.set_defaults(run=run_replay)
    for parser in (show, replay):
        choice = parser.add_argument_group("selection of dead letters (default: all)")
        choice.add_argument("--topic", metavar="T", help="those of this topic")
        choice.add_argument("--partition", metavar="P", type=int, help="those of this partition")
        choice.add_argument(
            "--offsets",
            metavar="A-B",
            type=offset_range,
            help="those from offset A to B, both included; or of one offset",
        )
        choice.add_argument("--reason", metavar="TEXT", help="those whose reason contains this text")
        add_settings(parser)


def offset_range(text: str) -> range:
    """The offsets of `17` or `17-30`. Raises ArgumentTypeError for other texts."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be an offset, or a range like 17-30")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def run_list(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings:
        found = [(letter, outcome) for letter, outcome in read_dead_letters(settings) if matches_flags(options, letter)]
    shown = [(letter.rejected, outcome) for letter, outcome in found if options.all or not outcome]
    if options.json:
        for rejected, outcome in shown:
            print(to_reject_line(rejected, **({"replayed": outcome} if outcome else {})))
    elif options.each:
        for rejected, outcome in shown:
            print(
                f"{record_position(rejected.record)}: {rejected.reason}"
                + (f" (kept in part, of {rejected.cut.size:,} bytes)" if rejected.cut else "")
                + (f" (replayed: {outcome})" if outcome else "")
            )
    else:
        counts = Counter(f"{rejected.record.topic}: {rejected.reason}" for rejected, _ in shown)
        for group, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            print(f"{count:8}  {group}")
    waiting = sum(not outcome for _, outcome in found)
    print(f"{waiting} dead letters wait, {len(found) - waiting} were replayed", file=sys.stderr)
    return 0


def run_replay(options: argparse.Namespace) -> int:
    from processor.cli.job_log import JobLog
    from processor.cli.run_command import owner_name, require_settings
    from processor.cli.stop_signals import StopSignals
    from processor.job.open_job import open_job
    from processor.job.run_job import run_replays
    from processor.plan.planning import plan_of

    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        waiting = [
            letter for letter, outcome in read_dead_letters(settings) if not outcome and matches_flags(options, letter)
        ]
        if not waiting:
            print("no dead letter of this selection waits", file=sys.stderr)
            return 0
        with open_registry(settings) as registry, StopSignals(JobLog()).handled() as signals:
            job = signals.job = open_job(
                settings,
                plan_of(registry.snapshot()),
                registry,
                owner=owner_name(),
                take_over=options.take_over,
                jars=[],
                report=signals.log,
                stopping=signals.stopping,
            )
            replayed = list(run_replays(job, waiting))
    refused = [replay for replay in replayed if replay.outcome == "refused"]
    for replay in refused:
        print(f"refused again: {record_position(replay.record)}: {replay.reason}", file=sys.stderr)
    outcomes = Counter(replay.outcome for replay in replayed)
    account = " + ".join(f"{outcomes[o]} {o}" for o in ("applied", "superseded", "ignored", "refused"))
    print(f"{len(replayed)} of {len(waiting)} dead letters replayed = {account}")
    print(f"{job.driver.tally['corrections']} documents published", file=sys.stderr)
    return 1 if refused or len(replayed) < len(waiting) else 0


def read_dead_letters(settings: "Settings") -> "list[tuple[DeadLetter, str]]":
    """The dead letters of the rejects topic, each with the outcome of its replay; the outcome is empty while it waits."""
    from processor.job.kafka.reader import read_topic
    from processor.progress.replays import PARTITION, ended_replays, replay_key
    from processor.records.dead_letters import read_dead_letters

    foreign: list[Record] = []
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.rejects_topic)
    found = read_dead_letters(records, foreign)
    if foreign:
        first = f"the first is {settings.rejects_topic}/{foreign[0].partition} offset {foreign[0].offset}"
        print(f"{len(foreign)} messages of {settings.rejects_topic} are no dead letters; {first}", file=sys.stderr)
    ended = ended_replays(stored_state(settings)[1].partition(PARTITION)) if found else {}
    return [(letter, ended.get(replay_key(letter.rejected.record), "")) for letter in found]


def matches_flags(options: argparse.Namespace, letter: "DeadLetter") -> bool:
    """Whether the flags select this dead letter."""
    record = letter.rejected.record
    return (
        (options.topic is None or record.topic == options.topic)
        and (options.partition is None or record.partition == options.partition)
        and (options.offsets is None or record.offset in options.offsets)
        and (options.reason is None or options.reason in letter.rejected.reason)
    )


def record_position(record: Record) -> str:
    """The topic, partition, offset and epoch of a record, for a person."""
    return f"{record.topic}/{record.partition} offset {record.offset} epoch {record.epoch}"
