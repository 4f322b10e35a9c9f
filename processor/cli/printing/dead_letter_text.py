"""Dead letters as text for people. No text of a record may begin a line of its own, or steer the terminal."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from processor.engine.plan.plan import Plan
from processor.engine.protocol.decode import compare_columns
from processor.engine.protocol.replays import DROPPED
from processor.job.run.dead_letters import LetterFate, age, readable_lines, record_position
from processor.text import visible_line, visible_lines
from processor.values.record import Rejected
from processor.values.recorded_line import to_reject_line
from processor.values.reject_reasons import REASONS
from processor.values.settled_form import NO_FORMS

if TYPE_CHECKING:
    from processor.engine.protocol.form_notes import Forms
    from processor.values.dead_letters import DeadLetter


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
    return visible_line(to_reject_line(letter.rejected, **more))


def full_text(letter: "DeadLetter", whole: Rejected, outcome: str, plan: Plan, forms: "Forms") -> str:
    """All that a dead letter holds, and how its row differs from the declared columns of `plan`. `whole`: with the record of the
    source topic, if the letter keeps a part and that topic still holds the record. `forms`: of decimals, as they are settled."""
    rejected, record = letter.rejected, whole.record
    reason, by = REASONS[rejected.code], letter.refused_by
    below = "here is this part" if whole.cut else "here is the whole record, from its source topic"
    facts = {
        "code": f"{rejected.code}: {reason.meaning}",
        "reason": rejected.reason,
        "cure": reason.cure,
        "state": fate(outcome) if outcome else "waits",
        "refused again": letter.refused_again,
        "first seen": f"{_time(letter.kept_since)} ({age(letter.kept_since)} ago)",
        "last seen": f"{_time(letter.last_seen)} ({age(letter.last_seen)} ago)",
        "refused by": f"statestore {by.release}, registry version {by.registry_version}" if by else "",
        "entity": rejected.entity,
        "record time": _time(record.timestamp / 1000) if record.timestamp > 0 else "",
        "kept in part": f"{rejected.cut.parts}, of {rejected.cut.size:,} bytes; {below}" if rejected.cut else "",
    }
    lines = [record_position(record), *(f"  {name:<14}{text}" for name, text in facts.items() if text)]
    for number, (name, value) in enumerate(record.headers, start=1):
        lines += [f"  header {number} {name!r}", *readable_lines(value)]
    lines += [
        "  key",
        *readable_lines(record.key),
        "  value",
        *readable_lines(record.value),
        *_columns(whole, plan, forms),
    ]
    return visible_lines(lines)


def _columns(rejected: Rejected, plan: Plan, forms: "Forms") -> Sequence[str]:
    """How the row differs from the declared columns; nothing where no entity reads the topic, or no row can be read."""
    record = rejected.record
    entity = next((one.entity for one in plan.entities.values() if one.entity.topic == record.topic), None)
    if entity is None or rejected.cut is not None:
        return []
    compared = compare_columns(record, entity, forms.get(entity.name, NO_FORMS))
    if compared is None:
        return []
    lines = list(compared.refused)
    if compared.missing:
        lines.append(f"declared, and not in the record: {', '.join(compared.missing)}")
    if compared.undeclared:
        lines.append(f"in the record, and not declared: {', '.join(compared.undeclared)}")
    return ["  columns", *(f"    {line}" for line in lines or ["all are as declared"])]


def fate(outcome: str) -> str:
    """What became of a dead letter that does not wait, for a person."""
    return outcome if outcome.startswith(DROPPED) else f"replayed: {outcome}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
