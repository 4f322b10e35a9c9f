"""Pages of the dead letter topic in the console, each with an address of its own."""

from typing import Any

import pytest

from processor.environment.settings.settings import Settings
from processor.job.kafka.reader import TopicPage
from processor.tools.web.console import letters
from processor.tools.web.console.letters import DeadLetterCache
from tests.integration.web.console.conftest import ConsoleScene, at
from tests.integration.web.console.test_console_edits import WHY


def test_a_page_leads_to_the_one_before_it_and_its_groups_and_letters_stay_on_it(console: ConsoleScene) -> None:
    browser = console.browser()
    page = browser.page("/letters")
    assert 'href="/letters?before=0-3"' in page
    assert "the topic has at most 6 in all" in page
    earlier = browser.page(at("/letters", before="0-3"))
    assert "Earlier messages" not in earlier
    assert '<a id="newest" href="/letters">' in earlier
    group = at("/letters/group", topic="star", code="column-type", column="note", before="0-3")
    assert group.replace("&", "&amp;") in earlier
    assert 'href="/letters/letter?at=star%2F0%2F7%2F1&amp;before=0-3"' in browser.page(group)
    fields = {"letter": "star/0/7/1", "act": "drop", "typed": "drop", **WHY}
    assert '<a id="newest"' in browser.send(group, browser.page(group), 303, **fields)


@pytest.mark.parametrize("place", ["x", "0-", "0-1,1-2", "0--1", "0-" + "9" * 20, "0-1." * 3_000])
def test_a_place_that_no_page_gave_is_refused(console: ConsoleScene, place: str) -> None:
    assert "must be a place that a page gave" in console.browser().page(at("/letters", before=place), 400)


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
