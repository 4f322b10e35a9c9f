"""`statestore rejects list`, `show`, `replay` and `drop`: shows the dead letters that wait, or one in full; decodes and applies
them again, or gives them up."""

import argparse
import sys
from collections import Counter
from datetime import UTC, datetime

from processor.cli.arguments import add_why, reason
from processor.cli.chosen_plan import stored_state
from processor.cli.operators.ask_for_replay import request_lines
from processor.cli.operators.dead_letter_choice import add_choice, is_at, is_chosen, positions
from processor.cli.operators.replay_letters import add_flags
from processor.cli.operators.stored_letters import read_stored_letters, waiting_letters
from processor.cli.options import KAFKA, REGISTRY, TABLE, add_settings, reachable_settings
from processor.cli.printing.dead_letter_text import each_line, full_text, group_lines, json_line
from processor.cli.printing.edit_report import user_name
from processor.engine.protocol.form_notes import PARTITION as FORMS
from processor.engine.protocol.form_notes import read_form, with_notes
from processor.engine.protocol.replays import DROPPED, drop
from processor.environment.settings.open_registry import open_registry
from processor.errors import KafkaError, StatestoreError
from processor.text import visible_line


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
        "replay",
        help="decode dead letters again by the definitions in force now, and apply them, also by the running job",
    )
    add_flags(replay)
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
        found = [(letter, outcome) for letter, outcome in read_stored_letters(settings) if is_chosen(options, letter)]
        with open_registry(settings) as registry:
            requests = registry.replays.waiting()
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
    for line in request_lines(requests):
        print(line, file=sys.stderr)
    print(f"{outcomes['']} dead letters wait, {outcomes['replayed']} were replayed{dropped}", file=sys.stderr)
    return 0


def run_show(options: argparse.Namespace) -> int:
    from processor.job.run.dead_letters import with_whole_record

    wanted = positions(options.position)
    with reachable_settings(options) as settings:
        shown = [
            (letter, outcome)
            for letter, outcome in read_stored_letters(settings)
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
        waiting = list(waiting_letters(options, settings))
        with stored_state(settings) as (_, store):
            for letter in waiting:
                store.write(drop(letter.rejected.record, who=user_name(), why=why, at=datetime.now(UTC)))
    print(f"{len(waiting)} dead letters dropped")
    return 0
