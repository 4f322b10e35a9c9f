"""Dead letters: how many wait, by topic, reason and column, which the registry counts; those of a group, tried by the present
definitions; one letter in full; what became of a request. A person replays or drops a whole group, or the letters that the person
marks, as `dead-letters replay` and `dead-letters drop` do. A preview says first what a replay would change.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import Any, Final, NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.protocol.replays import letter_position, note_key, replay_key
from processor.environment.settings.settings import Settings
from processor.job.kafka.reader import TopicPage, read_page
from processor.job.metrics.status import requests_json
from processor.job.run.binding import readable_store
from processor.job.run.dead_letters import (
    dead_letter_outcomes,
    note_keys,
    readable_lines,
    record_position,
)
from processor.text import duration_text, shortened
from processor.tools.operate.letters import (
    column_lines,
    drop_letters,
    oldest_letter,
    preview,
    preview_places,
    replay_letters,
)
from processor.tools.web.answers import LookUpProblem, Questions
from processor.tools.web.console.screen import (
    ANSWER_SECONDS,
    BROKER_SECONDS,
    ConsoleParts,
    Content,
    EditDone,
    LetterPage,
    Screen,
    Visit,
    matches,
)
from processor.tools.web.serve.reader import StateReader
from processor.values.dead_letters import DeadLetter, column_of, read_dead_letters
from processor.values.decimal_forms import Forms
from processor.values.reasons import REASONS, known_code
from registry.model import LetterFilter, LetterPosition, ReplayRequest, WaitingGroup

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
MOST_SHOWN: Final = 50
"""Letters of a group on a page."""
MOST_GROUPS: Final = 100
"""Groups, or outcomes, on a page."""
MOST_DROPPED: Final = 2_000
ANY: Final = "*"
"""In place of the column of a group: reasons with any column, and reasons without a column."""
LONGEST: Final = 300
LONGEST_KEY: Final = 120
MOST_LINES: Final = 200
LONGEST_LINE: Final = 4_000


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
        self._pages = Questions("the broker", most=MOST_PAGES, patience=BROKER_SECONDS, at_once=1)

    def letters(self, before: str) -> LetterPage:
        """The page before a place, as the broker showed it last. What became of each letter is as of now."""
        place, seconds = read_place(before), OLD_SECONDS if before else FRESH_SECONDS
        if not self._settings.bootstrap_servers:
            raise LookUpProblem(503, "dead letters are in Kafka: start the console with --bootstrap-servers")
        known = self._pages.ask(before, lambda: self._read(place), seconds)
        if known.value is None:
            return LetterPage([], 0, why=known.why)
        page, found = known.value
        keys = note_keys(found)
        fates = dead_letter_outcomes(found, self._open_reader().items(keys) if keys else ())
        earlier = place_text(page.begins) if page.has_earlier else ""
        return LetterPage(fates, page.messages, earlier, known.why, known.age)

    def _read(self, place: dict[int, int]) -> tuple[TopicPage, list[DeadLetter]]:
        where = self._settings.bootstrap_servers, dict(self._settings.kafka), self._settings.dead_letter_topic
        page = read_page(*where, place, most=MOST_MESSAGES, most_bytes=MOST_BYTES, seconds=ANSWER_SECONDS)
        return page, read_dead_letters(page.records, [])


def age_of(page: LetterPage) -> dict[str, str]:
    """Why a page is not the present one, and how old it is; both empty where the broker has just shown it."""
    age = "" if page.age is None else duration_text(page.age)
    return {"unknown": page.why, "known_age": age if page.why else ""}


class LetterGroup(NamedTuple):
    """The dead letters of one topic that one reason refused, at one column; the column is empty where the reason names none. An
    empty `code`, and ANY as the column: all of them. `since`, `until`: when they were refused first, as a browser writes it."""

    topic: str
    code: str
    column: str
    since: str = ""
    until: str = ""

    @property
    def chosen(self) -> LetterFilter:
        """The letters of the group in the account. Raises LookUpProblem for a text that is no time."""
        return LetterFilter(
            topic=self.topic,
            code=self.code or None,
            column=None if self.column == ANY or not self.code else self.column,
            since=_time(self.since),
            until=_time(self.until),
        )


def _time(text: str) -> float | None:
    """The seconds since 1970 of a time in UTC; None of the empty text."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise LookUpProblem(400, f"a time must be like 2026-11-27T04:20, in UTC, not {text[:40]!r}") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def show_letters(parts: ConsoleParts, visit: Visit) -> Content:
    """The groups of all letters that wait, the largest first, by the account of the registry: no broker is asked. And the
    requests of operators, those in progress and the last ones with their outcomes."""
    search, registry = visit.asked("q"), parts.registry
    waiting = registry.letters.waiting()
    found = [
        one
        for one in waiting
        if matches(search, one.topic, one.code, one.column, REASONS[known_code(one.code)].meaning)
    ]
    return {
        "waiting": sum(one.letters for one in waiting),
        "oldest": _ago(min((one.oldest for one in waiting), default=time())),
        "q": search,
        "of": len(waiting),
        "groups": [_group_object(one) for one in found[:MOST_GROUPS]],
        "more": len(found[MOST_GROUPS:]),
        "requests": requests_json(registry.replays.waiting()),
        "ended": [_ended(one) for one in registry.replays.recent()],
        "runs": any(job.alive for job in registry.jobs()),
    }


def show_group(parts: ConsoleParts, visit: Visit) -> Content:
    """The letters of a group that wait: how many in all, and a page of them, with what the present definitions say to each."""
    group, before = _group_of(visit), visit.asked("before")
    registry = parts.registry
    places = frozenset(registry.letters.places(group.chosen))
    page, trial = parts.letters(before), _trial(parts)
    mine = [one for one, fate in page.letters if not fate and letter_position(one.rejected.record) in places]
    first = visit.number("from") if visit.asked("from") else 0
    named = " ".join(filter(None, (group.code, "" if group.column == ANY else group.column)))
    meaning = REASONS[known_code(group.code)] if group.code else None
    return {
        **group._asdict(),
        "title": f"{group.topic}: {named or 'all'}",
        "any": ANY,
        "meaning": meaning.meaning if meaning else "",
        "cure": meaning.cure if meaning else "",
        "count": len(places),
        "before": before,
        "first": first,
        "of_page": len(mine),
        "next": first + MOST_SHOWN if first + MOST_SHOWN < len(mine) else None,
        "earlier": page.earlier,
        "letters": [_letter(letter, trial) for letter in mine[first : first + MOST_SHOWN]],
        "preview": _preview(parts, places, trial.plan) if visit.asked("preview") else None,
        "most_dropped": MOST_DROPPED,
        "runs": any(job.alive for job in registry.jobs()),
    } | age_of(page)


def _preview(parts: ConsoleParts, places: frozenset[LetterPosition], plan: Plan) -> dict[str, Any]:
    """What a replay of the group would change, in lines. `waits`: why there are none yet; the page asks again."""
    ordered = sorted(places)
    known = parts.broker.ask(
        ("preview", plan.version, len(ordered), hash(places)),
        lambda: list(preview_places(parts.settings, parts.registry, ordered, plan).lines()),
        OLD_SECONDS,
    )
    return {"lines": known.value or [], "waits": "" if known.value else known.why}


def show_letter(parts: ConsoleParts, visit: Visit) -> Content:
    """One letter in full."""
    at, before = visit.asked("at"), visit.asked("before")
    page = parts.letters(before)
    for letter, outcome in page.letters:
        if replay_key(letter.rejected.record).sk == at:
            return _whole(letter, outcome, _trial(parts)) | {"before": before} | age_of(page)
    if page.why:
        raise LookUpProblem(503, f"{page.why}; this page works when the broker answers")
    raise LookUpProblem(
        404, f"no dead letter of {at} is on this page of the topic: `statestore dead-letters list --each` has all"
    )


def show_request(parts: ConsoleParts, visit: Visit) -> Content:
    """What became of a request of an operator: how many letters have which outcome, and why some were refused."""
    number = visit.number("of")
    request = parts.registry.replays.find(number)
    if request is None:
        raise LookUpProblem(404, f"no operator made request {number}")
    outcomes = parts.registry.replays.outcomes(number)
    counted = Counter((one.outcome, one.reason) for one in outcomes)
    return {
        **_ended(request),
        "ended": request.ended,
        "state": request.state,
        "outcomes": [
            {"outcome": outcome, "reason": shortened(reason, LONGEST), "letters": count}
            for (outcome, reason), count in counted.most_common(MOST_GROUPS)
        ],
    }


def _ended(one: ReplayRequest) -> dict[str, Any]:
    """A request that ended, in words."""
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(one.outcomes.items(), key=lambda pair: -pair[1]))
    return {
        "request": one.number,
        "who": one.who,
        "why": one.why,
        "act": one.act,
        "selection": one.selection,
        "letters": one.letters,
        "text": outcomes or one.state,
        "at": f"{_ago(one.ended_at.timestamp())} ago" if one.ended_at else "",
    }


def _group_of(visit: Visit) -> LetterGroup:
    """The group that the address names."""
    return LetterGroup(
        visit.asked("topic"), visit.asked("code"), visit.written("column"), visit.asked("since"), visit.asked("until")
    )


def _group_object(group: WaitingGroup) -> dict[str, Any]:
    reason = REASONS[known_code(group.code)]
    return {
        "topic": group.topic,
        "code": group.code,
        "column": group.column,
        "count": group.letters,
        "oldest": _ago(group.oldest),
        "newest": _ago(group.newest),
        "meaning": reason.meaning,
        "cure": reason.cure,
    }


class _Trial(NamedTuple):
    """Tries letters by the present definitions; applies nothing."""

    plan: Plan
    forms: Forms
    oldest: float

    def of(self, letter: DeadLetter) -> tuple[str, bool]:
        """What the definitions say, and whether a replay may take the letter."""
        found = preview([letter], self.plan, self.forms, self.oldest)
        for again in found.refused:
            return f"refused: {shortened(again.reason, LONGEST)}", False
        for why in found.unknown:
            return why, True
        return "readable now: a replay applies it, or finds it superseded", True


def _trial(parts: ConsoleParts) -> _Trial:
    """The trial by the definitions in force now."""
    reader = parts.open_reader()
    return _Trial(reader.plan(), reader.forms(), oldest_letter(parts.settings))


def _letter(letter: DeadLetter, trial: _Trial) -> dict[str, Any]:
    again = f"refused again {_ago(letter.last_seen)} ago: {letter.refused_again}" if letter.refused_again else ""
    now, takes = trial.of(letter)
    return {
        "at": replay_key(letter.rejected.record).sk,
        "position": record_position(letter.rejected.record),
        "of_key": _key_text(letter.rejected.record.key),
        "reason": shortened(letter.rejected.reason, LONGEST),
        "again": shortened(again, LONGEST),
        "age": _ago(letter.kept_since),
        "now": now,
        "takes": takes,
    }


def _key_text(key: bytes | None) -> str:
    """The key of a record, in a line."""
    return "no key" if key is None else shortened(" ".join(line.strip() for line in readable_lines(key)), LONGEST_KEY)


def _ago(at: float) -> str:
    return duration_text(time() - at)


def _whole(letter: DeadLetter, outcome: str, trial: _Trial) -> dict[str, Any]:
    rejected, record = letter.rejected, letter.rejected.record
    reason = REASONS[rejected.code]
    return {
        **_letter(letter, trial),
        "topic": record.topic,
        "code": rejected.code,
        "column": column_of(rejected.reason),
        "meaning": reason.meaning,
        "cure": reason.cure,
        "state": outcome or "waits",
        "waits": not outcome,
        "first_seen": f"{datetime.fromtimestamp(letter.kept_since, UTC):%Y-%m-%d %H:%M:%S} UTC",
        "refused_by": str(letter.refused_by or ""),
        "cut": str(rejected.cut or ""),
        "headers": [{"name": name, "lines": _lines(value)} for name, value in record.headers[:50]],
        "key": _lines(record.key),
        "value": _lines(record.value),
        "columns": [shortened(line, LONGEST_LINE) for line in column_lines(rejected, trial.plan, trial.forms)],
    }


def _lines(data: bytes | None) -> list[str]:
    """Bytes as lines for people, cut where they are long."""
    cut = None if data is None else data[: MOST_LINES * LONGEST_LINE]
    lines = [shortened(line.removeprefix("    "), LONGEST_LINE) for line in readable_lines(cut)]
    more = len(lines) > MOST_LINES or (data is not None and cut != data)
    return lines[:MOST_LINES] + (["… and more: `statestore dead-letters show` prints all"] if more else [])


DROP = "drop"


def act_on_letters(parts: ConsoleParts, visit: Visit) -> EditDone:
    """Asks the running job, or the next one, to replay the letters of a group or those that the person marked; or drops them."""
    by, group = visit.signature(), _group_of(visit)
    places = parts.registry.letters.places(group.chosen)
    selection: object = group.chosen
    if visit.asked("of") == "marked":
        places, selection = _marked(visit, places), ""
    if not places:
        raise LookUpProblem(409, "none of these dead letters waits any more")
    match visit.asked("act"):
        case "replay":
            number = replay_letters(parts.registry, places, by, selection)
            when = next(
                (f"job {one.job} replays" for one in parts.registry.jobs() if one.alive), "the next run replays"
            )
            message = f"Request {number}: {when} {len(places):,} dead letters, in turn with its batches"
        case "drop" if visit.asked("typed") != DROP:
            raise LookUpProblem(400, f"type `{DROP}`, since no replay takes these letters any more")
        case "drop" if len(places) > MOST_DROPPED:
            raise LookUpProblem(
                400, f"a page drops at most {MOST_DROPPED:,} letters: `statestore dead-letters drop` drops more"
            )
        case "drop":
            with readable_store(parts.settings, parts.registry) as store:
                number = drop_letters(parts.registry, store, places, by, selection)
            message = f"Request {number}: {len(places):,} dead letters are dropped: no replay takes them"
        case _:
            raise LookUpProblem(400, "choose `replay` or `drop`")
    return EditDone(to="/letters", message=message)


def _marked(visit: Visit, waiting: Sequence[LetterPosition]) -> tuple[LetterPosition, ...]:
    """The letters that the person marked, and that still wait."""
    marked = set(visit.form.get("letter", ()))
    if not marked:
        raise LookUpProblem(400, "mark some dead letters, or choose the whole group")
    return tuple(place for place in waiting if note_key(place).sk in marked)


LETTERS = (
    Screen(path="/letters", menu="Dead letters", template="letters.html", show=show_letters),
    Screen(
        path="/letters/group", menu="Dead letters", template="letter_group.html", show=show_group, act=act_on_letters
    ),
    Screen(path="/letters/request", menu="Dead letters", template="letter_request.html", show=show_request),
    Screen(path="/letters/letter", menu="Dead letters", template="letter.html", show=show_letter),
)
