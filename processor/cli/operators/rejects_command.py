"""`statestore rejects list`, `show`, `replay` and `drop`: shows the dead letters that wait, or one in full; decodes and applies
them again, or gives them up."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from processor.cli.arguments import add_why, reason
from processor.cli.chosen_plan import stored_state
from processor.cli.operators.dead_letter_choice import add_choice, is_at, is_chosen, positions
from processor.cli.options import KAFKA, REGISTRY, TABLE, add_settings, reachable_settings, require_settings
from processor.cli.printing.dead_letter_text import each_line, full_text, group_lines, json_line, record_position
from processor.cli.printing.edit_report import user_name
from processor.cli.printing.visible_text import visible_line
from processor.errors import KafkaError, StatestoreError
from processor.progress.form_notes import PARTITION as FORMS
from processor.progress.form_notes import read_form, with_notes
from processor.progress.replays import DROPPED, PARTITION, drop, ended_replays, refused_replays, replay_key
from processor.records.record import Record
from processor.settings.open_registry import open_registry
from statestore.store import Item

if TYPE_CHECKING:
    from processor.records.dead_letters import DeadLetter
    from processor.settings.settings import Settings


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    rejects = verbs.add_parser("rejects", help="list dead letters, show, replay or drop them")
    actions = rejects.add_subparsers(dest="action", required=True, metavar="list|show|replay|drop")
    listing = actions.add_parser(
        "list",
        help="show the dead letters that wait, counted by topic and code of the reason, with the age of the oldest",
    )
    listing.add_argument(
        "--each", action="store_true", help="print a line for each dead letter: its position and reason"
    )
    listing.add_argument(
        "--json", action="store_true", help="print a recorded line for each dead letter, with epoch, code and reason"
    )
    listing.add_argument(
        "--all", action="store_true", help="show replayed and dropped dead letters too, with what became of them"
    )
    listing.set_defaults(run=run_list)
    show = actions.add_parser(
        "show", help="show a dead letter in full: its record, the reason, the cure, and its columns"
    )
    show.add_argument(
        "position", metavar="POSITION", nargs="+", help="such as user/0/17, or `user/0 offset 17` as `list` prints it"
    )
    show.set_defaults(run=run_show)
    add_settings(show, *REGISTRY, *TABLE, *KAFKA)
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
    for parser in (listing, replay, given_up):
        add_choice(parser)
        add_settings(parser, *REGISTRY, *TABLE, *KAFKA)


def run_list(options: argparse.Namespace) -> int:
    with reachable_settings(options) as settings:
        found = [(letter, outcome) for letter, outcome in read_dead_letters(settings) if is_chosen(options, letter)]
    shown = [(letter, outcome) for letter, outcome in found if options.all or not outcome]
    if options.json or options.each:
        for letter, outcome in shown:
            print((json_line if options.json else each_line)(letter, outcome))
    else:
        for line in group_lines(shown):
            print(line)
    outcomes = Counter(
        DROPPED if outcome.startswith(DROPPED) else "replayed" if outcome else "" for _, outcome in found
    )
    dropped = f", {outcomes[DROPPED]} were dropped" if outcomes[DROPPED] else ""
    print(f"{outcomes['']} dead letters wait, {outcomes['replayed']} were replayed{dropped}", file=sys.stderr)
    return 0


def run_show(options: argparse.Namespace) -> int:
    from processor.topics.dead_letter_topic import with_whole_record

    wanted = positions(options.position)
    with reachable_settings(options) as settings:
        shown = [
            (letter, outcome)
            for letter, outcome in read_dead_letters(settings)
            if any(is_at(one, letter) for one in wanted)
        ]
        if not shown:
            cure = "`statestore rejects list --each --all` prints the positions that are there"
            raise StatestoreError(
                f"no dead letter of {settings.rejects_topic} is from {' '.join(options.position)}: {cure}"
            )
        with stored_state(settings) as (plan, store):
            forms = with_notes({}, map(read_form, store.partition(FORMS)))
        for letter, outcome in shown:
            whole = letter
            try:
                whole = with_whole_record(settings, letter)
            except KafkaError as error:  # of a topic that is gone, or that this person may not read
                print(visible_line(f"the whole record is out of reach: {error}"), file=sys.stderr)
            print(full_text(letter, whole.rejected, outcome, plan, forms))
    return 0


def run_drop(options: argparse.Namespace) -> int:
    why = reason(options)
    with reachable_settings(options) as settings:
        waiting = list(_waiting(options, settings))
        with stored_state(settings) as (_, store):
            for letter in waiting:
                store.write(drop(letter.rejected.record, who=user_name(), why=why, at=datetime.now(UTC)))
    print(f"{len(waiting)} dead letters dropped")
    return 0


def _waiting(options: argparse.Namespace, settings: "Settings") -> "Iterator[DeadLetter]":
    """The dead letters of the selection that wait."""
    for letter, outcome in read_dead_letters(settings):
        if not outcome and is_chosen(options, letter):
            yield letter


def run_replay(options: argparse.Namespace) -> int:
    from processor.cli.operators.operator_run import open_operator_run
    from processor.cli.operators.stop_signals import StopSignals
    from processor.cli.printing.job_log import JobLog
    from processor.job.run_job import run_replays

    with reachable_settings(options) as settings:
        waiting = list(_waiting(options, settings))
        if not waiting:
            print("no dead letter of this selection waits", file=sys.stderr)
            return 0
        with open_registry(settings) as registry, StopSignals(JobLog()).handled() as signals:
            job = open_operator_run(settings, registry, signals, take_over=options.take_over)
            replayed = list(run_replays(job, waiting))
    refused = [replay for replay in replayed if replay.outcome == "refused"]
    before = {
        (record_position(letter.rejected.record), why)
        for letter in waiting
        for why in (letter.rejected.reason, letter.refused_again)
    }
    failed = 0
    for replay in refused:
        position = record_position(replay.record)
        new = before.isdisjoint({(position, replay.reason), (position, replay.plain or replay.reason)})
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
    from processor.kafka.reader import read_topic
    from processor.records.dead_letters import read_dead_letters

    require_settings(settings, "bootstrap_servers")
    foreign: list[Record] = []
    records = read_topic(settings.bootstrap_servers, dict(settings.kafka), settings.rejects_topic)
    found = read_dead_letters(records, foreign)
    if foreign:
        first = f"the first is {settings.rejects_topic}/{foreign[0].partition} offset {foreign[0].offset}"
        print(f"{len(foreign)} messages of {settings.rejects_topic} are no dead letters; {first}", file=sys.stderr)
    items: list[Item] = []
    if found:
        with stored_state(settings) as (_, store):
            items = store.partition(PARTITION)
    ended, refused = ended_replays(items), refused_replays(items)
    letters = []
    for letter in found:
        key = replay_key(letter.rejected.record)
        if key in refused:
            at, why = refused[key]
            letter = replace(letter, last_seen=max(at.timestamp(), letter.last_seen), refused_again=why)
        letters.append((letter, ended.get(key, "")))
    return letters
