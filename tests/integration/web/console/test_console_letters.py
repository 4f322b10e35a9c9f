"""Pages of the dead letter topic in the console, each with an address of its own."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.testclient import TestClient

from processor.engine.protocol.replays import kept_letter, letter_position
from processor.environment.settings.settings import Settings
from processor.job.kafka.reader import TopicPage
from processor.tools.operate.letters import preview
from processor.tools.web.console import letters
from processor.tools.web.console.app import SCREENS, OwnUser, console_app, console_parts
from processor.tools.web.console.letters import MOST_SHOWN, DeadLetterCache
from processor.tools.web.server import GuardRules
from processor.values.dead_letters import DeadLetter
from tests.integration.web.console.conftest import LOCAL, Browser, ConsoleScene, at, record_of
from tests.integration.web.console.test_console_edits import WHY

GROUP = at("/letters/group", topic="star", code="column-type", column="note")


def letters_of(console: ConsoleScene, count: int, note: Any) -> None:
    """More letters of the star's note, from offset 20 on, in the topic and in the account."""
    for offset in range(20, 20 + count):
        key = {"who": "ada", "repo": f"r{offset}"}
        record = replace(record_of("star", offset, key | {"note": note}), key=json.dumps(key).encode())
        refused = replace(console.kept[0].rejected, record=record)
        since = console.kept[0].kept_since + 60 * (offset - 19)
        console.kept.append(DeadLetter(rejected=refused, kept_since=since))
        console.registry.letters.keep([kept_letter(refused, since)])


def test_the_page_of_a_group_is_bounded_and_its_totals_are_those_of_all_letters(console: ConsoleScene) -> None:
    letters_of(console, 120, "now a text")
    browser = console.browser()
    assert "<strong>121</strong> wait" in browser.page("/letters")
    page = browser.page(GROUP)
    assert page.count('type="checkbox"') == MOST_SHOWN == 50
    assert page.index('value="replay"') < page.index("<table>")  # the buttons are above the letters
    assert "<strong>121</strong> wait" in page
    assert "1 to 50 of 121 among these messages" in page
    assert 'from=50">The next 50</a>' in page
    last = browser.page(f"{GROUP}&from=100")
    assert (last.count('type="checkbox"'), "The next 50" in last) == (21, False)
    assert 'before=0-3">Earlier messages' not in page  # all are here
    assert "r25&#34;}</code>" in page  # the key of the record


def test_no_box_is_ticked_for_a_letter_that_the_present_definitions_refuse(console: ConsoleScene) -> None:
    letters_of(console, 1, "now a text")
    refused, readable = sorted(console.browser().data(GROUP)["letters"], key=lambda one: str(one["takes"]))
    assert (refused["at"], refused["takes"], refused["now"][:16]) == ("star/0/7/1", False, "refused: column ")
    assert (readable["at"], readable["takes"]) == ("star/0/20/1", True)
    page = console.browser().page(GROUP)
    assert 'aria-label="choose star/0 offset 20 epoch 1" checked>' in page
    assert 'aria-label="choose star/0 offset 7 epoch 1">' in page


def test_a_group_is_chosen_by_reason_by_topic_and_by_time_and_acted_on_as_one(console: ConsoleScene) -> None:
    letters_of(console, 9, "now a text")
    browser = console.browser()
    first = console.kept[0].kept_since
    later, soon = (f"{datetime.fromtimestamp(first + seconds, UTC):%Y-%m-%dT%H:%M:%S}" for seconds in (30, 90))
    counts = {
        at("/letters/group", topic="star"): 10,
        at("/letters/group", topic="star", code="column-type", column="*"): 10,
        at("/letters/group", topic="star", code="not-json"): 0,
        f"{GROUP}&since={later}": 9,
        f"{GROUP}&until={soon}": 2,
    }
    for path, count in counts.items():
        assert browser.data(path)["count"] == count, path
    assert "a time must be like 2026-11-27T04:20" in browser.page(GROUP + "&since=noon", 400)
    some = f"{GROUP}&until={soon}"
    said = browser.send(some, browser.page(some), 303, act="replay", of="group", **WHY)
    assert "Request 2: the next run replays 2 dead letters" in said
    assert f"until {soon[:10]}" in said


def test_a_preview_says_what_a_replay_of_the_whole_group_would_change(
    console: ConsoleScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters_of(console, 9, "now a text")
    seen = []

    def tried(_settings: Any, _registry: Any, places: Any, plan: Any) -> Any:
        seen.append(len(places))
        return preview([one for one in console.kept if letter_position(one.rejected.record) in places], plan)

    monkeypatch.setattr(letters, "preview_places", tried)
    browser = console.browser()
    page = browser.page(GROUP)
    assert "Preview a replay of all 10" in page
    shown = browser.page(f"{GROUP}&preview=1")
    assert "10 dead letters: the present definitions read 9" in shown
    assert "1 would be refused again: column-type" in shown
    assert seen == [10]


def test_the_groups_need_no_broker_and_are_found_by_their_words(console: ConsoleScene) -> None:
    with console_parts(console.registry, console.settings) as parts:  # without a broker
        browser = Browser(TestClient(console_app(parts, SCREENS, OwnUser("ada"), GuardRules()), base_url=LOCAL))
        assert "<strong>1</strong> waits" in browser.page("/letters")
        assert [one["topic"] for one in browser.data(at("/letters", q="NOTE star"))["groups"]] == ["star"]
        assert "No group has these words." in browser.page(at("/letters", q="repo"))


@pytest.mark.parametrize("place", ["x", "0-", "0-1,1-2", "0--1", "0-" + "9" * 20, "0-1." * 3_000])
def test_a_place_that_no_page_gave_is_refused(console: ConsoleScene, place: str) -> None:
    assert "must be a place that a page gave" in console.browser().page(f"{GROUP}&before={place}", 400)


def test_a_page_is_read_once_in_a_while_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[int, int]] = []

    def read_page(*where: Any, **_: int) -> TopicPage:
        asked.append(where[3])
        end = where[3].get(0, 9_000)
        return TopicPage(records=(), begins={0: end - 2_000}, firsts={0: 0}, ends={0: 9_000})

    monkeypatch.setattr(letters, "read_page", read_page)
    cache = DeadLetterCache(Settings(bootstrap_servers="127.0.0.1:9092"), lambda: pytest.fail("no letter has a note"))
    place = ""
    for _ in range(4):
        page = cache.letters(place)
        assert cache.letters(place)[:4] == page[:4]
        assert page.messages == 9_000
        place = page.earlier
    assert asked == [{}, {0: 7_000}, {0: 5_000}, {0: 3_000}]
    for number in range(20):
        cache.letters(f"0-{number + 5_000}")
    assert len(cache._pages._kept) == letters.MOST_PAGES
