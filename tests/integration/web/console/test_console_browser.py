"""The console in a real browser, without a window: Debian's Chromium. axe-core looks for barriers."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest

from processor.job.landing.landing import LandingState
from processor.tools.web.console.app import OwnUser
from processor.tools.web.console.overview import LandingCache
from processor.tools.web.console.screen import KnownLandings
from registry.edits import operations
from registry.edits.edit import Signature
from registry.repository import Registry
from tests.integration.web.console.conftest import MOVE, PAGES, ConsoleScene
from tests.support.browser import chromium, served

pytestmark = pytest.mark.slow
Page = Any  # of Playwright
EXPECTED = re.compile(r"status of (409|503)|Status Error Code 503|ERR_CONNECTION_REFUSED")
"""What a browser says of answers that a test asks for, and of a console that ended before its page."""
NARROW, WIDE = {"width": 400, "height": 800}, {"width": 1280, "height": 800}


@contextmanager
def shown(console: ConsoleScene, registry: Registry, name: str) -> Iterator[str]:
    """The address of the console of this person."""
    with served(console.app(registry, OwnUser(name), rate=10_000)) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Page]]:
    """Opens a page of a person of their own. At the end no page has reported an error or a refused resource."""
    contexts, said = [], list[str]()

    def open_at(address: str, **context: Any) -> Page:
        contexts.append(browser.new_context(**context))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
        page.goto(address)
        return page

    yield open_at
    heard = [line for line in said if not EXPECTED.search(line)]  # a close cuts a request, which the page then reports
    for one in contexts:
        one.close()
    assert heard == []


def test_no_screen_has_a_barrier_in_light_in_dark_and_on_a_phone(
    console: ConsoleScene, browser: Any, run_state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = console.registry.take_lease("statestore", "host/7", 2, take_over=False, expires_after=600)
    console.registry.runs.keep_report(lease, run_state)
    state = LandingState("profile", "db/profile", 1.7e9, "profile", 1_200, 0)
    monkeypatch.setattr(LandingCache, "landings", lambda _: KnownLandings(states=(state,), why="away", age=1.0))
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    with shown(console, console.registry, "ada") as address:
        for scheme, size in (("light", WIDE), ("dark", WIDE), ("light", NARROW)):
            context = browser.new_context(color_scheme=scheme, viewport=size, bypass_csp=True)
            page = context.new_page()
            for path in PAGES:
                page.goto(address + path)
                page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                page.evaluate(axe)
                found = page.evaluate("axe.run()")["violations"]
                places = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
                assert places == [], (path, scheme, size)
                wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
                assert page.evaluate(wide), (path, scheme, size)
            context.close()


def test_an_edit_by_the_keyboard_is_seen_live(console: ConsoleScene, open_page: Callable[..., Page]) -> None:
    registry = console.registry
    lease = registry.take_lease("statestore", "host/7", 2, take_over=False, expires_after=600)
    registry.applied(lease, 1)
    with shown(console, registry, "ada") as address:
        watching, acting = open_page(f"{address}/slots"), open_page(f"{address}/slots")
        acting.locator("#move-star-1").focus()
        acting.keyboard.press("Enter")
        acting.get_by_label("To the free slot").select_option("GSI_3")
        acting.get_by_role("button", name="Show the plan").press("Enter")
        acting.get_by_text("GSI_3 will hold who (planned)").wait_for()
        acting.get_by_label("Reason, for the history").fill("more room")
        acting.keyboard.press("Enter")
        acting.get_by_text("Registry version 2: entity star").wait_for()
        for state in ("planned", "writing", "backfilling"):
            watching.locator(f"td:has-text('who') .state-{state}").wait_for()
            _step(registry, lease)
        watching.locator("td:has-text('who') .state-retiring").wait_for()
        _step(registry, lease)
        watching.locator("#move-star-1").wait_for(state="detached")
        assert watching.locator("#move-star-3").is_visible()


def test_two_browsers_collide_and_nothing_is_overwritten(console: ConsoleScene, open_page: Callable[..., Page]) -> None:
    with shown(console, console.registry, "ada") as one, shown(console, console.registry, "bob") as other:
        ada, bob = open_page(one + MOVE), open_page(other + MOVE.replace("target=3", "target=4"))
        for page in (ada, bob):
            page.get_by_label("Reason, for the history").fill(f"of {page.url[-1]}")
        ada.get_by_role("button", name="Move GSI_1 of star").click()
        ada.get_by_text("Registry version 2").first.wait_for()
        bob.get_by_role("button", name="Move GSI_1 of star").click()
        bob.get_by_text("it moves to GSI_3 already").wait_for()
    assert [one.slot for one in console.registry.snapshot().assignments_of("star")] == [1, 3]
    assert console.registry.snapshot().version == 2


def test_a_reader_has_nothing_to_press(
    console: ConsoleScene, registry_of: Callable[[str], Registry], open_page: Callable[..., Page]
) -> None:
    with shown(console, registry_of("reader"), "ada") as address:
        page = open_page(f"{address}/slots")
        assert page.get_by_text("reader: this role changes nothing").is_visible()
        assert page.get_by_role("link", name=re.compile("Move|Retire")).count() == 0
        page.goto(address + MOVE)
        assert page.get_by_text("An operator can confirm this plan; your role reads.").is_visible()
        assert page.get_by_role("button", name="Move").count() == 0


def test_a_page_says_that_nobody_answers_and_goes_on_by_itself(
    console: ConsoleScene, open_page: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(str(console.settings.registry), console.settings.registry_schema)
    with shown(console, registry, "ada") as address:
        page = open_page(f"{address}/slots")
        there = registry._database
        monkeypatch.setattr(registry, "_database", Registry("postgresql://nobody@127.0.0.1:1/none")._database)
        page.locator("#lost").wait_for(state="visible")
        assert page.locator("td:has-text('who') .state-serving").is_visible()  # the last state stays
        monkeypatch.setattr(registry, "_database", there)
        page.locator("#lost").wait_for(state="hidden")
        console.registry.operate(Signature("eve", "late"), operations.pause, "profile", paused=True)
        page.get_by_text("product profile: paused").wait_for()
    registry.close()


def test_a_table_keeps_its_place_and_a_link_its_focus_while_the_page_asks_again(
    console: ConsoleScene, open_page: Callable[..., Page]
) -> None:
    with shown(console, console.registry, "ada") as address:
        page = open_page(f"{address}/slots", viewport=NARROW)
        page.locator(".scroll").evaluate("one => { one.scrollLeft = 60; }")
        page.locator("#move-star-1").focus()
        console.registry.operate(Signature("eve", "late"), operations.pause, "profile", paused=True)
        page.get_by_text("product profile: paused").wait_for()
        assert page.locator(".scroll").evaluate("one => one.scrollLeft") > 0
        assert page.evaluate("document.activeElement.id") == "move-star-1"


def test_a_slot_that_is_dragged_to_a_free_cell_of_its_row_leads_to_the_plan_of_the_move(
    console: ConsoleScene, registry_of: Callable[[str], Registry], open_page: Callable[..., Page]
) -> None:
    with shown(console, console.registry, "ada") as address:
        page = open_page(f"{address}/slots", viewport=WIDE)
        row = {name: page.locator("tr", has=page.locator(f"th:text-is('{name}')")) for name in ("star", "user")}
        columns = row["star"].locator("code[draggable]")
        columns.drag_to(row["user"].locator("[data-free='2']"))
        assert page.url.endswith("/slots")  # the row of another entity takes nothing
        columns.drag_to(row["star"].locator("[data-free='2']"))
        page.get_by_text("GSI_2 will hold who (planned)").wait_for()
        assert console.registry.snapshot().version == 1
    with shown(console, registry_of("reader"), "ada") as address:
        assert open_page(f"{address}/slots").locator("[draggable], [data-move]").count() == 0


def test_on_a_phone_the_menu_is_one_row_and_a_table_names_the_columns_that_do_not_fit(
    console: ConsoleScene, open_page: Callable[..., Page]
) -> None:
    with shown(console, console.registry, "ada") as address:
        page = open_page(f"{address}/products", viewport=NARROW)
        tops = page.locator("nav a").evaluate_all("all => all.map(one => Math.round(one.getBoundingClientRect().top))")
        assert len(set(tops)) == 1
        note = page.locator(".more-columns").first
        assert "To the right: " in note.inner_text()
        assert "reads" in note.inner_text()
        page.locator(".scroll").first.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
        note.wait_for(state="hidden")
        page.goto(f"{address}/costs")
        current = page.locator("nav [aria-current]").bounding_box()
        assert 0 <= current["x"] < NARROW["width"] - 40  # the menu shows where the person is
        page.set_viewport_size(WIDE)
        page.goto(f"{address}/products")
        assert not page.locator(".more-columns").first.is_visible()


def test_keys_are_proposed_while_a_person_types(console: ConsoleScene, open_page: Callable[..., Page]) -> None:
    with shown(console, console.registry, "ada") as address:
        page = open_page(f"{address}/documents")
        page.locator("#key").press_sequentially("1")
        page.locator("#keys:not(:has(option:nth-child(2)))").wait_for(state="attached")
        assert page.locator("#keys option").get_attribute("value") == '{"id":2}'
        page.locator("#key").fill("1")
        page.keyboard.press("Enter")
        page.get_by_text("The topic has this document.").wait_for()


def _step(registry: Registry, lease: Any) -> None:
    """The job applies the registry's version and takes its next step."""
    version = registry.snapshot().version
    registry.applied(lease, version)
    registry.advance(lease, version, proven=("user", "star"), published=("profile",))
