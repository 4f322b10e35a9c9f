"""Dead letters: grouped by topic, reason and column; those of a group, tried by the present definitions; one letter in full. A
person marks some, and replays or drops them, as `dead-letters replay` and `dead-letters drop` do.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any, Final, NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.protocol.decode import TopicEntities, compare_columns, decode
from processor.engine.protocol.replays import drop, letter_position, replay_key
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.kafka.reader import TopicPage, read_page
from processor.job.metrics.status import requests_json
from processor.job.run.binding import readable_store
from processor.job.run.dead_letters import LetterFate, dead_letter_outcomes, readable_lines, record_position
from processor.text import duration_text, shortened
from processor.tools.web.answers import Cached, LookUpProblem
from processor.tools.web.console.screen import ConsoleParts, Content, EditDone, LetterPage, Screen, Visit
from processor.tools.web.serve.reader import StateReader
from processor.values.dead_letters import DeadLetter, read_dead_letters
from processor.values.reasons import REASONS
from processor.values.record import Rejected
from registry.edits.edit import Signature

FRESH_SECONDS: Final = 5.0
"""For these seconds the console shows a page of dead letters without another look at the broker."""
OLD_SECONDS: Final = 60.0
"""The same of an earlier page, which changes only by what the topic deletes."""
MOST_MESSAGES: Final = 2_000
MOST_BYTES: Final = 32 * 1024 * 1024
MOST_PAGES: Final = 4
"""Pages of dead letters that the console keeps."""
MOST_TEXT: Final = 8_000
_PLACE: Final = re.compile(r"(\d{1,6})-(\d{1,19})", re.ASCII)
MOST_SHOWN: Final = 200
"""Letters of a group on a page."""
LONGEST: Final = 300
MOST_LINES: Final = 200
LONGEST_LINE: Final = 4_000
_COLUMN: Final = re.compile(r"(?:column|key part) '([^']{1,200})'")


def place_text(offsets: Mapping[int, int]) -> str:
    """The place before these offsets, by partition."""
    return ".".join(f"{partition}-{offset}" for partition, offset in sorted(offsets.items()))


def read_place(text: str) -> dict[int, int]:
    """The offsets of a place; none of the empty text, which names the end of the topic. Raises LookUpProblem."""
    places = [_PLACE.fullmatch(part) for part in text.split(".")] if text else []
    if len(text) > MOST_TEXT or not all(places):
        raise LookUpProblem(400, f"`before` must be a place that a page gave, such as 0-2000.1-1990, not {text[:40]!r}")
    return {int(one[1]): int(one[2]) for one in places if one}


class DeadLetterCache:
    """The dead letters of a job, a page of the topic at a time from its end, with what became of each. `open_reader`: of its
    table, which has the notes of replays. A page is bounded in messages and in bytes."""

    def __init__(self, settings: Settings, open_reader: Callable[[], StateReader]) -> None:
        self._settings, self._open_reader = settings, open_reader
        self._pages = Cached[tuple[TopicPage, list[DeadLetter]]](MOST_PAGES)

    def letters(self, before: str) -> LetterPage:
        """The page before a place. What became of each letter is as of now."""
        place, seconds = read_place(before), OLD_SECONDS if before else FRESH_SECONDS
        page, found = self._pages.get(seconds, lambda: self._read(place), before)
        keys = [replay_key(letter.rejected.record) for letter in found]
        fates = dead_letter_outcomes(found, self._open_reader().items(keys) if keys else ())
        return LetterPage(fates, page.messages, place_text(page.begins) if page.has_earlier else "")

    def _read(self, place: dict[int, int]) -> tuple[TopicPage, list[DeadLetter]]:
        servers, more, topic = (
            self._settings.bootstrap_servers,
            dict(self._settings.kafka),
            self._settings.dead_letter_topic,
        )
        if not servers:
            raise LookUpProblem(503, "dead letters are in Kafka: start the console with --bootstrap-servers")
        try:
            page = read_page(servers, more, topic, place, most=MOST_MESSAGES, most_bytes=MOST_BYTES)
        except KafkaError as error:
            raise LookUpProblem(503, f"{error}; this page works when the broker answers") from None
        return page, read_dead_letters(page.records, [])


class LetterGroup(NamedTuple):
    """The dead letters of one topic that one reason refused, at one column; the column is empty where the reason names none."""

    topic: str
    code: str
    column: str


def show_letters(parts: ConsoleParts, visit: Visit) -> Content:
    """The groups of the letters of a page that wait, the largest first."""
    groups: dict[LetterGroup, list[DeadLetter]] = {}
    before = visit.asked("before")
    page = parts.letters(before)
    for letter, _outcome in _waiting(page.letters):
        groups.setdefault(_group(letter.rejected), []).append(letter)
    ordered = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    return {
        "groups": [_group_object(group, found) for group, found in ordered],
        "ended": sum(bool(outcome) for _, outcome in page.letters),
        "messages": page.messages,
        "before": before,
        "earlier": page.earlier,
        "requests": requests_json(parts.registry.replays.waiting()),
    }


def show_group(parts: ConsoleParts, visit: Visit) -> Content:
    """The letters of a group that wait, with what the present definitions say to each."""
    group, before = (
        LetterGroup(visit.asked("topic"), visit.asked("code"), visit.written("column")),
        visit.asked("before"),
    )
    found = [letter for letter, _ in _waiting(parts.letters(before).letters) if _group(letter.rejected) == group]
    plan = parts.open_reader().plan()
    shown = _group_object(group, found) if found else {**group._asdict(), "count": 0}
    return shown | {
        "before": before,
        "letters": [_letter(letter, plan) for letter in found[:MOST_SHOWN]],
        "runs": any(job.alive for job in parts.registry.jobs()),
    }


def show_letter(parts: ConsoleParts, visit: Visit) -> Content:
    """One letter in full."""
    at, before = visit.asked("at"), visit.asked("before")
    for letter, outcome in parts.letters(before).letters:
        if replay_key(letter.rejected.record).sk == at:
            return _whole(letter, outcome, parts.open_reader().plan()) | {"before": before}
    raise LookUpProblem(
        404, f"no dead letter of {at} is on this page of the topic: `statestore dead-letters list --each` has all"
    )


def _waiting(letters: Iterable[LetterFate]) -> Iterator[LetterFate]:
    return ((letter, outcome) for letter, outcome in letters if not outcome)


def _group(rejected: Rejected) -> LetterGroup:
    column = _COLUMN.search(rejected.reason)
    return LetterGroup(rejected.record.topic, rejected.code, column[1] if column else "")


def _group_object(group: LetterGroup, found: list[DeadLetter]) -> dict[str, Any]:
    reason = REASONS[found[0].rejected.code]
    oldest = min(letter.kept_since for letter in found)
    return {
        **group._asdict(),
        "count": len(found),
        "oldest": _ago(oldest),
        "meaning": reason.meaning,
        "cure": reason.cure,
    }


def _letter(letter: DeadLetter, plan: Plan) -> dict[str, Any]:
    again = f"refused again {_ago(letter.last_seen)} ago: {letter.refused_again}" if letter.refused_again else ""
    return {
        "at": replay_key(letter.rejected.record).sk,
        "position": record_position(letter.rejected.record),
        "reason": shortened(letter.rejected.reason, LONGEST),
        "again": shortened(again, LONGEST),
        "age": _ago(letter.kept_since),
        "now": _tried(letter.rejected, plan),
    }


def _ago(at: float) -> str:
    return duration_text(time() - at)


def _tried(rejected: Rejected, plan: Plan) -> str:
    """What the present definitions say to the record; applies nothing."""
    if rejected.cut is not None:
        return "kept in part: a replay reads the whole record from its topic"
    if rejected.code.startswith("schema-"):
        return "a replay asks the schema registry"
    entity = TopicEntities(one.entity for one in plan.entities.values()).of_letter(rejected)
    decoded = decode(rejected.record, entity)
    if isinstance(decoded, Rejected):
        return f"refused: {shortened(decoded.reason, LONGEST)}"
    return "readable now: a replay applies it, or finds it superseded"


def _whole(letter: DeadLetter, outcome: str, plan: Plan) -> dict[str, Any]:
    rejected, record = letter.rejected, letter.rejected.record
    reason, by = REASONS[rejected.code], letter.refused_by
    return {
        **_letter(letter, plan),
        **_group(rejected)._asdict(),
        "meaning": reason.meaning,
        "cure": reason.cure,
        "state": outcome or "waits",
        "waits": not outcome,
        "first_seen": f"{datetime.fromtimestamp(letter.kept_since, UTC):%Y-%m-%d %H:%M:%S} UTC",
        "refused_by": f"statestore {by.release}, registry version {by.registry_version}" if by else "",
        "cut": f"{rejected.cut.parts}, of {rejected.cut.size:,} bytes" if rejected.cut else "",
        "headers": [{"name": name, "lines": _lines(value)} for name, value in record.headers[:50]],
        "key": _lines(record.key),
        "value": _lines(record.value),
        "columns": list(_columns(rejected, plan)),
    }


def _lines(data: bytes | None) -> list[str]:
    """Bytes as lines for people, cut where they are long."""
    cut = None if data is None else data[: MOST_LINES * LONGEST_LINE]
    lines = [shortened(line.removeprefix("    "), LONGEST_LINE) for line in readable_lines(cut)]
    more = len(lines) > MOST_LINES or (data is not None and cut != data)
    return lines[:MOST_LINES] + (["… and more: `statestore dead-letters show` prints all"] if more else [])


def _columns(rejected: Rejected, plan: Plan) -> Iterator[str]:
    """How the row differs from the declared columns."""
    entity = TopicEntities(one.entity for one in plan.entities.values()).of_letter(rejected)
    compared = compare_columns(rejected.record, entity) if entity and rejected.cut is None else None
    if compared is None:
        return
    yield from (shortened(line, LONGEST) for line in compared.refused)
    if compared.missing:
        yield f"declared, and not in the record: {', '.join(compared.missing)}"
    if compared.undeclared:
        yield f"in the record, and not declared: {', '.join(compared.undeclared)}"


DROP = "drop"


def act_on_letters(parts: ConsoleParts, visit: Visit) -> EditDone:
    """Asks the running job to replay the chosen letters, or drops them."""
    by = visit.signature()
    chosen = _chosen(parts, visit)
    match visit.asked("act"):
        case "replay":
            message = _replay(parts, by, chosen)
        case "drop" if visit.asked("typed") == DROP:
            message = _drop(parts, by, chosen)
        case "drop":
            raise LookUpProblem(400, f"type `{DROP}`, since no replay takes these letters any more")
        case _:
            raise LookUpProblem(400, "choose `replay` or `drop`")
    before = visit.asked("before")
    return EditDone(to=f"/letters?before={before}" if before else "/letters", message=message)


def _chosen(parts: ConsoleParts, visit: Visit) -> list[DeadLetter]:
    """The letters that the person marked, and that still wait."""
    marked = set(visit.form.get("letter", ()))
    waiting = {
        replay_key(one.rejected.record).sk: one
        for one, fate in parts.letters(visit.asked("before")).letters
        if not fate
    }
    chosen = [waiting[at] for at in sorted(marked & waiting.keys())]
    if not chosen:
        raise LookUpProblem(
            400, "no chosen dead letter waits any more: mark some" if marked else "mark some dead letters"
        )
    return chosen


def _replay(parts: ConsoleParts, by: Signature, letters: Sequence[DeadLetter]) -> str:
    job = next((one for one in parts.registry.jobs() if one.alive), None)
    if job is None:
        cure = "start it, or use `statestore dead-letters replay`"
        raise LookUpProblem(409, f"no job runs, and only a running job replays; {cure}")
    places = [letter_position(letter.rejected.record) for letter in letters]
    number = parts.registry.replays.ask(places, who=by.who, why=by.why)
    return f"Request {number}: job {job.job} replays {len(letters)} dead letters, in turn with its batches"


def _drop(parts: ConsoleParts, by: Signature, letters: Sequence[DeadLetter]) -> str:
    with readable_store(parts.settings, parts.registry) as store:
        for letter in letters:
            store.write(drop(letter.rejected.record, who=by.who, why=by.why, at=datetime.now(UTC)))
    return f"{len(letters)} dead letters are dropped: no replay takes them"


LETTERS = (
    Screen(path="/letters", menu="Dead letters", template="letters.html", show=show_letters),
    Screen(
        path="/letters/group", menu="Dead letters", template="letter_group.html", show=show_group, act=act_on_letters
    ),
    Screen(path="/letters/letter", menu="Dead letters", template="letter.html", show=show_letter),
)
