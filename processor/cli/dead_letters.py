"""`statestore dead-letters list`, `show`, `replay` and `drop`: shows the dead letters that wait, or one in full; decodes and
applies them again, or gives them up. The running job replays on request. Without a running job the verb is a run of its own.

No text of a record may begin a line of its own, or steer the terminal.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING

from processor.cli.options import KAFKA, REGISTRY, TABLE, reachable_settings, reason, user_name
from processor.cli.printing.output import warn
from processor.cli.stored_letters import follow, is_at, living_job, positions, read_stored_letters, withdraw
from processor.cli.verb import OPERATORS, WHY, FlagGroup, flag, natural, verb_with_actions
from processor.counts import Count
from processor.engine.protocol.replays import ReplayReport, letter_position
from processor.environment.settings.resolve import open_registry
from processor.errors import KafkaError, StatestoreError
from processor.job.metrics.status import request_lines, result_lines
from processor.job.run.dead_letters import LetterFate, age, readable_lines, record_position, settle_account
from processor.text import visible_line, visible_lines
from processor.values.dead_letters import column_of
from processor.values.reasons import REASONS
from processor.values.record import Rejected
from registry.edits.edit import Signature
from registry.errors import RegistryError
from registry.model import DROPPED

if TYPE_CHECKING:
    from processor.engine.plan.plan import Plan
    from processor.environment.settings.settings import Settings
    from processor.values.dead_letters import DeadLetter
    from processor.values.decimal_forms import Forms
    from registry.repository import Registry


def offset_range(text: str) -> range:
    """The offsets of `17` or `17-30`. Raises ArgumentTypeError for other texts."""
    found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text)
    if found is None:
        raise argparse.ArgumentTypeError("must be an offset, or a range like 17-30")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def moment(text: str) -> float:
    """The seconds since 1970 of a date or a time; without a zone in UTC. Raises ArgumentTypeError for other texts."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a date or a time like 2026-11-22T17:30, in UTC or with a zone"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


DEAD_LETTERS = verb_with_actions(
    "dead-letters", OPERATORS, "list dead letters, show, replay or drop them (formerly `rejects`)"
)
CHOICE = (
    flag(
        "position",
        "these dead letters: user/0/17, or `user/0 offset 17` as `list` and the log print it",
        "POSITION",
        nargs="*",
    ),
    FlagGroup(
        (
            flag("--topic", "those of this topic", "T"),
            flag("--partition", "those of this partition", "P", type=natural),
            flag("--offsets", "those from offset A to B, both included; or of one offset", "A-B", type=offset_range),
            flag("--code", "those whose reason has this code", "CODE", choices=tuple(REASONS)),
            flag("--column", "those whose reason names this column", "COLUMN"),
            flag("--reason", "those whose reason contains this text", "TEXT"),
            flag("--entity", "those whose letter names this entity", "ENTITY"),
            flag("--since", "those first seen at this time or later: 2026-11-22T17:30 (UTC)", "TIME", type=moment),
            flag("--until", "those first seen before this time", "TIME", type=moment),
        ),
        title="selection of dead letters (default: all)",
    ),
)
"""The flags that `is_chosen` reads."""
SETTINGS = (*REGISTRY, *TABLE, *KAFKA)


@DEAD_LETTERS.action(
    "list",
    flag("--each", "print a line for each dead letter: its position and reason"),
    flag("--json", "print a recorded line for each dead letter, with epoch, code and reason"),
    flag("--all", "show replayed and dropped dead letters too, with what became of them"),
    *CHOICE,
    settings=SETTINGS,
)
def list_letters(options: argparse.Namespace) -> int:
    """Show the dead letters that wait, counted by topic and code of the reason, with the age of the oldest."""
    with reachable_settings(options) as settings:
        began = time()
        stored = read_stored_letters(settings)
        with open_registry(settings) as registry:
            requests, ended = registry.replays.waiting(), registry.replays.recent()
            with suppress(RegistryError):  # a reader may not write
                settle_account(registry, stored, began)
    found = [(letter, outcome) for letter, outcome in stored if is_chosen(options, letter)]
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
    warn(*request_lines(requests), *result_lines(ended))
    warn(f"{outcomes['']} dead letters wait, {outcomes['replayed']} were replayed{dropped}")
    return 0


@DEAD_LETTERS.action(
    "show",
    flag("position", "such as user/0/17, or `user/0 offset 17` as `list` prints it", "POSITION", nargs="+"),
    settings=SETTINGS,
)
def show_letters(options: argparse.Namespace) -> int:
    """Show a dead letter in full: its record, the reason, the cure, and its columns."""
    from processor.job.run.dead_letters import with_whole_record

    wanted = positions(options.position)
    with reachable_settings(options) as settings:
        shown = [
            (letter, outcome)
            for letter, outcome in read_stored_letters(settings)
            if any(is_at(one, letter) for one in wanted)
        ]
        if not shown:
            cure = "`statestore dead-letters list --each --all` prints the positions that are there"
            raise StatestoreError(
                f"no dead letter of {settings.dead_letter_topic} is from {' '.join(options.position)}: {cure}"
            )
        plan, forms = _definitions(settings)
        for letter, outcome in shown:
            whole = letter
            try:
                whole = with_whole_record(settings, letter)
            except KafkaError as error:  # of a topic that is gone, or that this person may not read
                warn(f"the whole record is out of reach: {error}")
            print(full_text(letter, whole.rejected, outcome, plan, forms))
    return 0


@DEAD_LETTERS.action(
    "replay",
    flag("--preview", "print what the present definitions would do with the letters, and replay none"),
    flag("--take-over", "do not ask the running job: take over from it"),
    flag("--why", "for those who look at the request while it waits", "REASON", default=""),
    flag("--withdraw", "withdraw request N, which the running job has not done yet", "N", type=int),
    *CHOICE,
    settings=SETTINGS,
)
def replay(options: argparse.Namespace) -> int:
    """Decode dead letters again by the definitions in force now, and apply them, also by the running job."""
    from processor.tools.operate.letters import oldest_letter, preview, replay_letters

    with reachable_settings(options) as settings:
        if options.withdraw is not None:
            with open_registry(settings) as registry:
                return withdraw(registry, options.withdraw)
        waiting = list(waiting_letters(options, settings))
        if not waiting:
            warn("no dead letter of this selection waits")
            return 0
        if options.preview:
            print(visible_lines(preview(waiting, *_definitions(settings), oldest_letter(settings)).lines()))
            return 0
        by = Signature(user_name(), options.why)
        with open_registry(settings) as registry:
            places = [letter_position(letter.rejected.record) for letter in waiting]
            number = replay_letters(registry, places, by, selection_text(options))
            job = None if options.take_over else living_job(registry, settings.job)
            if job is not None:
                return _report(waiting, follow(registry, job, waiting, number))
            replayed, published = _replay_alone(settings, registry, waiting, number, take_over=options.take_over)
    status = _report(waiting, replayed)
    warn(f"{published} documents published")
    return status


@DEAD_LETTERS.action("drop", WHY, *CHOICE, settings=SETTINGS)
def drop(options: argparse.Namespace) -> int:
    """Give up dead letters: no replay takes them, and `list` shows them with --all only."""
    from processor.cli.choices import stored_state
    from processor.tools.operate.letters import drop_letters

    why = reason(options)
    with reachable_settings(options) as settings:
        places = [letter_position(letter.rejected.record) for letter in waiting_letters(options, settings)]
        if places:
            with stored_state(settings) as (_, store), open_registry(settings) as registry:
                drop_letters(registry, store, places, Signature(user_name(), why), selection_text(options))
    print(f"{len(places)} dead letters dropped")
    return 0


def waiting_letters(options: argparse.Namespace, settings: "Settings") -> "Iterator[DeadLetter]":
    """The dead letters of the selection that wait."""
    for letter, outcome in read_stored_letters(settings):
        if not outcome and is_chosen(options, letter):
            yield letter


def _definitions(settings: "Settings") -> tuple["Plan", "Forms"]:
    """The definitions in force now, and the settled forms of decimals."""
    from processor.cli.choices import stored_state
    from processor.engine.rounds.decoding import settled_forms

    with stored_state(settings) as (plan, store):
        return plan, settled_forms(store)


def selection_text(options: argparse.Namespace) -> str:
    """The selection in words, for those who look at the request later; empty for all that wait."""
    words = [" ".join(options.position)] if options.position else []
    named = ("topic", "partition", "code", "column", "reason", "entity")
    words += [f"{name} {value}" for name in named if (value := getattr(options, name)) is not None]
    if options.offsets is not None:
        words.append(f"offsets {options.offsets.start}-{options.offsets.stop - 1}")
    words += [f"{name} {_time(at)}" for name in ("since", "until") if (at := getattr(options, name)) is not None]
    return ", ".join(words)


def _replay_alone(
    settings: "Settings", registry: "Registry", waiting: "Sequence[DeadLetter]", number: int, *, take_over: bool
) -> tuple[list[ReplayReport], int]:
    """Replays the letters of request `number` in a run of its own. Returns how many documents it published, too. Withdraws what
    remains of the request when it ends early."""
    from processor.cli.printing.output import JobLog
    from processor.cli.process import StopSignals, open_operator_run
    from processor.job.run.run_job import run_replays

    try:
        with StopSignals(JobLog()).handled() as signals:
            job = open_operator_run(settings, registry, signals, take_over=take_over)
            replayed = list(run_replays(job, waiting, number))
    finally:
        with suppress(RegistryError):  # it does nothing where the request is done
            registry.replays.withdraw(number)
    return replayed, job.driver.tally[Count.CORRECTIONS]


def _report(waiting: "Sequence[DeadLetter]", replayed: Sequence[ReplayReport]) -> int:
    """Prints the refused letters and the account. Returns the exit status: 1 where a letter was refused for a new reason, or not
    replayed."""
    before = {
        (record_position(letter.rejected.record), why)
        for letter in waiting
        for why in (letter.rejected.reason, letter.refused_again)
    }
    failed = 0
    for replay in (one for one in replayed if one.outcome == "refused"):
        position = record_position(replay.record)
        new = before.isdisjoint({(position, replay.reason), (position, replay.plain or replay.reason)})
        failed += new
        what = "refused for a new reason" if new else "still waits"
        warn(f"{what}: {position}: {replay.reason}")
    outcomes = Counter(replay.outcome for replay in replayed)
    account = " + ".join(f"{outcomes[o]} {o}" for o in ("applied", "superseded", "ignored", "refused"))
    print(f"{len(replayed)} of {len(waiting)} dead letters replayed = {account}")
    return 1 if failed or len(replayed) < len(waiting) else 0


def is_chosen(options: argparse.Namespace, letter: "DeadLetter") -> bool:
    """Whether the positions and the flags select this dead letter. Raises SettingError for a text that is no position."""
    rejected = letter.rejected
    record = rejected.record
    wanted = positions(options.position)
    return (
        (not wanted or any(is_at(one, letter) for one in wanted))
        and (options.topic is None or record.topic == options.topic)
        and (options.partition is None or record.partition == options.partition)
        and (options.offsets is None or record.offset in options.offsets)
        and (options.code is None or rejected.code == options.code)
        and (options.column is None or column_of(rejected.reason) == options.column)
        and (options.reason is None or options.reason in rejected.reason)
        and (options.entity is None or rejected.entity == options.entity)
        and (options.since is None or letter.kept_since >= options.since)
        and (options.until is None or letter.kept_since < options.until)
    )


def group_lines(found: Iterable[LetterFate]) -> Iterator[str]:
    """A line for each topic and code: how many, the age of the oldest, and the meaning. The largest group comes first."""
    groups: dict[str, list[float]] = {}
    for letter, _ in found:
        rejected = letter.rejected
        group = f"{rejected.record.topic}: {rejected.code}: {REASONS[rejected.code].meaning}"
        groups.setdefault(group, []).append(letter.kept_since)
    for group, times in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield visible_line(f"{len(times):8}  {age(min(times)):>8}  {group}")


def each_line(letter: "DeadLetter", outcome: str) -> str:
    """The line of a dead letter: its position, its reason, and what became of it."""
    rejected = letter.rejected
    cut = f" (kept in part, of {rejected.cut.size:,} bytes)" if rejected.cut else ""
    again = f"; refused again {age(letter.last_seen)} ago: {letter.refused_again}" if letter.refused_again else ""
    ending = f" (kept for {age(letter.kept_since)}{again}{'; ' if outcome else ''}{fate(outcome) if outcome else ''})"
    return visible_line(f"{record_position(rejected.record)}: {rejected.code}: {rejected.reason}{cut}{ending}")


def json_line(letter: "DeadLetter", outcome: str) -> str:
    """The recorded line of a dead letter, with its times, the job that refused it, and what became of it."""
    more = {"kept_since": _time(letter.kept_since), "last_seen": _time(letter.last_seen)}
    if letter.refused_by:
        more |= {"statestore": letter.refused_by.release, "registry_version": str(letter.refused_by.registry_version)}
    if letter.refused_again:
        more |= {"refused_again": letter.refused_again}
    if outcome.startswith(DROPPED):
        more |= {DROPPED: outcome.removeprefix(f"{DROPPED} ")}
    elif outcome:
        more |= {"replayed": outcome}
    from processor.values.recorded_topics import to_reject_line

    return visible_line(to_reject_line(letter.rejected, **more))


def full_text(letter: "DeadLetter", whole: Rejected, outcome: str, plan: "Plan", forms: "Forms") -> str:
    """All that a dead letter holds, and how its row differs from the declared columns of `plan`. `whole`: with the record of the
    source topic, if the letter keeps a part and that topic still holds the record. `forms`: of decimals, as they are settled."""
    from processor.tools.operate.letters import column_lines

    rejected, record = letter.rejected, whole.record
    reason = REASONS[rejected.code]
    below = "here is this part" if whole.cut else "here is the whole record, from its source topic"
    facts = {
        "code": f"{rejected.code}: {reason.meaning}",
        "reason": rejected.reason,
        "cure": reason.cure,
        "state": fate(outcome) if outcome else "waits",
        "refused again": letter.refused_again,
        "first seen": f"{_time(letter.kept_since)} ({age(letter.kept_since)} ago)",
        "last seen": f"{_time(letter.last_seen)} ({age(letter.last_seen)} ago)",
        "refused by": str(letter.refused_by or ""),
        "entity": rejected.entity,
        "record time": _time(record.timestamp / 1000) if record.timestamp > 0 else "",
        "kept in part": f"{rejected.cut}; {below}" if rejected.cut else "",
    }
    lines = [record_position(record), *(f"  {name:<14}{text}" for name, text in facts.items() if text)]
    for number, (name, value) in enumerate(record.headers, start=1):
        lines += [f"  header {number} {name!r}", *readable_lines(value)]
    lines += [
        "  key",
        *readable_lines(record.key),
        "  value",
        *readable_lines(record.value),
    ]
    if columns := column_lines(whole, plan, forms):
        lines += ["  columns", *(f"    {line}" for line in columns)]
    return visible_lines(lines)


def fate(outcome: str) -> str:
    """What became of a dead letter that does not wait, for a person."""
    return outcome if outcome.startswith(DROPPED) else f"replayed: {outcome}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
