"""The page of the night: what each voice said at each moment, as it was seen."""

import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tests.night.events import EVENTS, Moment
from tests.night.voices import RESTART_SCALE, SCALE, VOICES, Reading

MOST = 100
"""Characters of a voice in the table."""
WRONG = " (**wrong**)"
MARKS = {"green": "green", "amber": "**amber**", "red": "**red**", "silent": "silent"}
INTRODUCTION = """# The night

<!-- `make night` writes this page: what it says was seen. -->

An on-call engineer asks five voices about a job: `statestore status`, `/health`, the overview of the console, the alerts of
Prometheus, and the log. `make night` causes {events} events on a real job over real parts, and reads all five at each moment.
No voice may be green while a person should act, and none red while nothing is to be done. `status` and the console must name
the cure.

- **green**: nothing is to be done. **amber**: something waits or lasts. **red**: a person must act. **silent**: no answer,
  which calms nobody.
- **act** says what is right at the moment: yes, no, or well, where all voices must be green.
- **after** is how long all five needed to agree. A moment that lasts shows its worst reading.
- Each section is of the run that played its event last: not all sections are of one commit.
- Times of Prometheus are shorter than those that ship: its windows and limits in seconds by {scale}, the ten minutes in which
  it counts restarts by {restarts}. The lease lasts 6 s in place of 30 s, and `--outage-seconds` and
  the minutes in which bad records of a topic add up are a tenth of their defaults.

Of {moments} moments, {faults} have a voice that is wrong.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen at a moment. `seconds`: until the voices agreed, or until the limit; `faults`: what is wrong with them."""

    event: str
    moment: Moment
    readings: Mapping[str, Reading]
    seconds: float
    faults: tuple[str, ...]


def night_page(before: str, seen: Sequence[Seen], day: str, private: Sequence[str]) -> str:
    """The page, with the sections of the page before it for events that were not played. `day`: of the scene;
    `private`: texts of this machine that the page leaves out, such as the folder of the run."""
    sections = _sections(before)
    for event, moments in groupby(seen, lambda one: one.event):
        scaled = f" Here: {EVENTS[event].scaled}." if EVENTS[event].scaled else ""
        lines = [f"Seen on {day}.{scaled}", "", *_table(list(moments), private)]
        sections[_heading(event)] = "\n".join(lines)
    known = {heading: sections[heading] for heading in map(_heading, EVENTS) if heading in sections}
    head = INTRODUCTION.format(
        events=len(known),
        scale=SCALE,
        restarts=RESTART_SCALE,
        moments=sum(len(re.findall("^[|] (?!moment )", text, re.MULTILINE)) for text in known.values()),
        faults=sum(text.count(WRONG) for text in known.values()),
    )
    return head + "".join(f"\n## {heading}\n\n{text}\n" for heading, text in known.items())


def _heading(event: str) -> str:
    return f"{event[:1].upper()}{event[1:]}"


def _sections(page: str) -> dict[str, str]:
    """The texts of the sections by their headings."""
    found = re.split(r"^## (.*)$", page, flags=re.MULTILINE)[1:]
    return {heading: text.strip() for heading, text in zip(found[::2], found[1::2], strict=True)}


def _table(moments: Iterable[Seen], private: Sequence[str]) -> Iterator[str]:
    yield f"| moment | act | after | {' | '.join(VOICES)} |"
    yield "|---" * (len(VOICES) + 3) + "|"
    for one in moments:
        cells = [_cell(one, one.readings.get(voice), private) for voice in VOICES]
        name = f"{one.moment.name}{WRONG}" if one.faults else one.moment.name
        after = "lasts" if one.moment.lasts else f"{one.seconds:.0f} s"
        yield f"| {name} | {one.moment.act} | {after} | {' | '.join(cells)} |"


def _cell(seen: Seen, reading: Reading | None, private: Sequence[str]) -> str:
    if reading is None:
        return ""
    if reading.colour == "green" and not seen.faults:
        shown = [word for word in seen.moment.words if word in reading.whole]
        return f"{MARKS['green']}: … {' … '.join(shown)} …" if shown else MARKS["green"]
    return f"{MARKS[reading.colour]}: {shown_words(reading.words, private, seen.moment.words)}"


def shown_words(words: str, private: Sequence[str] = (), cure: Sequence[str] = ()) -> str:
    """The words as the page has them: without what is of this machine, and short. `cure`: what a short text must keep."""
    for text in private:
        words = words.replace(text, "")
    words = words.replace(f"{socket.gethostname()}:", "host:")
    words = re.sub(r"\b20\d\d-\d\d-\d\d (\d\d:\d\d:\d\d)", r"\1", words)
    words = " ".join(re.sub(r"([|<>*_\[\]])", r"\\\1", words.replace("`", "'")).split())
    if len(words) <= MOST:
        return words
    first = words[:MOST].rsplit(" ", 1)[0]
    return " … ".join([first, *(word for word in cure if word in words and word not in first)]) + " …"
