"""`statestore rejects list`, `replay` and `drop`: shows the dead letters that wait, decodes and applies them again, or gives them
up."""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from processor.cli.chosen_plan import stored_state
from processor.cli.edit_report import user_name
from processor.cli.operator_command import add_why, reason
from processor.cli.options import KAFKA, REGISTRY, TABLE, add_settings, reachable_settings
from processor.cli.run_command import require_settings
from processor.cli.visible_text import visible_line
from processor.job.open_registry import open_registry
from processor.progress.replays import DROPPED, PARTITION, drop, ended_replays, replay_key
from processor.records.record import Record
from processor.records.recorded_topics import to_reject_line

if TYPE_CHECKING:
    from processor.records.dead_letters import DeadLetter
    from processor.settings import Settings


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    rejects = verbs.add_parser("rejects", help="list dead letters, replay them, or drop them")
    actions = rejects.add_subparsers(dest="action", required=True, metavar="list|replay|drop")
    show = actions.add_parser(
        "list", help="show the dead letters that wait, counted by topic and reason, with the age of the oldest"
    )
    show.add_argument("--each", action="store_true", help="print a line for each dead letter: its position and reason")
    show.add_argument(
        "--json", action="store_true", help="print a recorded line for each dead letter, with epoch and reason"
    )
    show.add_argument(
        "--all", action="store_true", help="show replayed and dropped dead letters too, with what became of them"
    )
    show.set_defaults(run=run_list)
    replay = actions.add_parser(
        "replay", help="decode dead letters again by the definitions in force now, and apply them"
    )
    replay.add_argument("--take-over", action="store_true", help="take over from a job that still holds the lease")
    replay.set_defaults(run=run_replay)
    given_up = actions.add_parser(
        "drop", help="give up dead letters: no replay takes them, and `list` shows them with --all only"
    )
    add_why(given_up)
    given_up.set_defaults(run=run_drop)
    for parser in (show, replay, given_up):
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
        add_settings(parser, *REGISTRY, *TABLE, *KAFKA)


def offset_range(text: str) -> range:
    """The offsets of `17` or `17-30`. Raises ArgumentTypeError for other texts."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be an offset, or a range like 17-30")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def run_list(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings:
        found = [(letter, outcome) for letter, outcome in read_dead_letters(settings) if matches_flags(options, letter)]
    shown = [(letter.rejected, outcome, letter.kept_since) for letter, outcome in found if options.all or not outcome]
    if options.json:
        for rejected, outcome, since in shown:
            print(visible_line(to_reject_line(rejected, **_facts(outcome, since))))
    elif options.each:
        for rejected, outcome, since in shown:
            kept = f" (kept in part, of {rejected.cut.size:,} bytes)" if rejected.cut else ""
            ending = f" (kept for {age(since)}{_ending(outcome)})"
            print(visible_line(f"{record_position(rejected.record)}: {rejected.reason}{kept}{ending}"))
    else:
        groups: dict[str, list[float]] = {}
        for rejected, _, since in shown:
            groups.setdefault(f"{rejected.record.topic}: {rejected.reason}", []).append(since)
        for group, times in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
            print(visible_line(f"{len(times):8}  {age(min(times)):>8}  {group}"))
    outcomes = Counter(
        DROPPED if outcome.startswith(DROPPED) else "replayed" if outcome else "" for _, outcome in found
    )
    dropped = f", {outcomes[DROPPED]} were dropped" if outcomes[DROPPED] else ""
    print(f"{outcomes['']} dead letters wait, {outcomes['replayed']} were replayed{dropped}", file=sys.stderr)
    return 0


def age(since: float) -> str:
    """How long ago a time (in seconds since 1970) is, in its largest unit."""
    seconds = max(0, int(datetime.now(UTC).timestamp() - since))
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _ending(outcome: str) -> str:
    """What became of a dead letter, as the end of a sentence; empty while it waits."""
    return f"; {outcome}" if outcome.startswith(DROPPED) else f"; replayed: {outcome}" if outcome else ""


def _facts(outcome: str, since: float) -> dict[str, str]:
    kept = {"kept_since": datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")}
    if outcome.startswith(DROPPED):
        return kept | {DROPPED: outcome.removeprefix(f"{DROPPED} ")}
    return kept | ({"replayed": outcome} if outcome else {})


def run_drop(options: argparse.Namespace) -> int:
    why = reason(options)
    with reachable_settings(options) as settings:
        waiting = list(_waiting(options, settings))
        store = stored_state(settings)[1]
        for letter in waiting:
            store.write(drop(letter.rejected.record, who=user_name(), why=why, at=datetime.now(UTC)))
    print(f"{len(waiting)} dead letters dropped")
    return 0


def _waiting(options: argparse.Namespace, settings: "Settings") -> "Iterator[DeadLetter]":
    """The dead letters of the selection that wait."""
    for letter, outcome in read_dead_letters(settings):
        if not outcome and matches_flags(options, letter):
            yield letter


def run_replay(options: argparse.Namespace) -> int:
    from processor.cli.job_log import JobLog
    from processor.cli.run_command import owner_name
    from processor.cli.stop_signals import StopSignals
    from processor.job.open_job import open_job
    from processor.job.run_job import run_replays
    from processor.plan.planning import plan_of

    with reachable_settings(options) as settings:
        waiting = list(_waiting(options, settings))
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
    before = {(record_position(letter.rejected.record), letter.rejected.reason) for letter in waiting}
    failed = 0
    for replay in refused:
        position = record_position(replay.record)
        new = (position, replay.reason) not in before
        failed += new
        what = "refused for a new reason" if new else "still waits"
        print(visible_line(f"{what}: {position}: {replay.reason}"), file=sys.stderr)
    outcomes = Counter(replay.outcome for replay in replayed)
    account = " + ".join(f"{outcomes[o]} {o}" for o in ("applied", "superseded", "ignored", "refused"))
    print(f"{len(replayed)} of {len(waiting)} dead letters replayed = {account}")
    print(f"{job.driver.tally['corrections']} documents published", file=sys.stderr)
    return 1 if failed or len(replayed) < len(waiting) else 0


def read_dead_letters(settings: "Settings") -> "list[tuple[DeadLetter, str]]":
    """The dead letters of the rejects topic, each with the outcome of its replay or drop; the outcome is empty while it waits."""
    from processor.job.kafka.reader import read_topic
    from processor.records.dead_letters import read_dead_letters

    require_settings(settings, "bootstrap_servers")
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
