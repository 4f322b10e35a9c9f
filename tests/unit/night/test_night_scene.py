"""The scene of the night: when a voice is wrong, the shorter rules of Prometheus, and the page."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.night.events import EVENTS, Act, Moment
from tests.night.page import Seen, night_page, shown_words
from tests.night.scene import faults
from tests.night.voices import RULES_FILE, VOICES, Colour, Reading, plain_text, read_page, scaled_rules


def _readings(colour: Colour) -> dict[str, Reading]:
    return {voice: Reading(colour=colour, words="start it again") for voice in VOICES}


@pytest.mark.parametrize(
    ("act", "wrong"),
    [("yes", {"green"}), ("no", {"red"}), ("well", {"amber", "red", "silent"})],
)
def test_a_voice_is_wrong_where_it_calms_or_alarms_without_reason(act: Act, wrong: set[Colour]) -> None:
    colours: tuple[Colour, ...] = ("green", "amber", "red", "silent")
    found = {colour for colour in colours if faults(Moment(name="a moment", act=act), _readings(colour))}
    assert found == wrong


def test_status_and_console_must_name_the_cure() -> None:
    moment = Moment(name="killed", act="yes", words=("start it again",))
    readings = _readings("red")
    assert not faults(moment, readings)
    readings["console"] = replace(readings["console"], words="something is wrong")
    assert faults(moment, readings) == ("console lacks the words 'start it again': something is wrong",)


def test_the_shorter_rules_have_the_alerts_that_ship_and_no_minute() -> None:
    alerts, shipped = (re.findall(r"alert: (\w+)", text) for text in (scaled_rules(), RULES_FILE.read_text()))
    assert alerts == shipped
    rules = [line for line in scaled_rules().splitlines() if line.strip().startswith(("expr:", "for:"))]
    assert not re.findall(r"\d+m\b", "\n".join(rules))
    assert {found for line in rules for found in re.findall(r"for: (\w+)", line)} == {"0s", "30s"}


def test_a_page_speaks_by_its_worst_line() -> None:
    good, wrong = '<p class="good">All is well.</p>', '<p class="wrong">It <code>died</code>.</p>'
    assert read_page(200, good) == Reading(colour="green", words="All is well.", text="All is well.")
    assert read_page(200, good + wrong).colour == "red"
    assert read_page(503, wrong).colour == "silent"
    assert plain_text("<style>p {}</style><p>a&amp;b</p>") == "a&b"


def test_the_page_has_each_moment_and_nothing_of_this_machine() -> None:
    event = next(iter(EVENTS))
    moment = Moment(name="away", act="no")
    seen = Seen(event=event, moment=moment, readings=_readings("red"), seconds=3.0, faults=("a fault",))
    page = night_page("", [seen], "2026-11-27", ["/tmp/folder"])
    assert "Of 1 moments, 1 have a voice that is wrong" in page
    assert "| away (**wrong**) | no | 3 s | **red**: start it again |" in page
    assert night_page(page, [], "another day", []) == page
    assert shown_words("at /tmp/folder: `a` | b", ["/tmp/folder"]) == r"at : 'a' \| b"
    assert shown_words(f"{'a ' * 60}start it again", cure=["start it again"]).endswith("a … start it again …")


def test_a_person_gives_letters_up_only_after_the_job_has_read_all_bad_records() -> None:
    done: list[Any] = []
    reports = iter([{}, {"user/0": 3, "user/1": 8}, {"user/0": 9, "user/1": 8}])

    def ends() -> dict[str, int]:
        assert night.source.bad == 0
        return {"user/0": 9, "user/1": 7, "star/0": 0}

    def positions() -> dict[str, int]:
        done.append(next(reports))
        return dict(done[-1])

    night: Any = SimpleNamespace(
        name="night0",
        source=SimpleNamespace(),
        job=SimpleNamespace(alive=lambda: True),
        ends=ends,
        positions=positions,
        give=lambda *words: done.append(words[:2]),
    )
    assert [moment.act for moment in EVENTS["poison at 1 %"].play(night)] == ["no", "well"]
    assert done == [{}, {"user/0": 3, "user/1": 8}, {"user/0": 9, "user/1": 8}, ("dead-letters", "drop")]
