"""An operator edits in a browser while the job writes: the board shows each state to the end, and every document is right."""

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from processor.console.all_screens import SCREENS
from processor.console.console_app import console_app
from processor.console.console_parts import ConsoleParts, TableDoor
from processor.console.letter_shelf import LetterShelf
from processor.console.people.person_rules import OwnUser
from processor.console.price_board import PriceBoard
from processor.console.slot_widening import SlotWidening
from processor.serve.guard import GuardRules
from tests.support.browser import chromium, served

Scene = Any  # conftest's
MOST_RUNS = 30


@pytest.mark.slow
@pytest.mark.plain
def test_a_move_in_the_browser_while_the_job_writes(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(30)), *(rows.star(f"u{n}", "r") for n in range(30)))
    scene.run()
    (held,) = (one for one in scene.registry.snapshot().assignments_of("star") if one.columns == ("who",))
    with closing(TableDoor(scene.registry, scene.settings)) as table, chromium() as browser:
        parts = ConsoleParts(
            registry=scene.registry,
            settings=scene.settings,
            open_reader=table.reader,
            letters=LetterShelf(scene.settings, table.reader).letters,
            price_board=PriceBoard(scene.registry, scene.settings).prices,
            widening=SlotWidening(scene.settings),
        )
        with served(console_app(parts, SCREENS, OwnUser("ada"), GuardRules(rate=10_000))) as address:
            page = browser.new_page()
            page.goto(f"{address}/edit?edit=move&entity=star&slot={held.slot}&target=3")
            page.get_by_label("Reason, for the history").fill("more room")
            page.get_by_role("button", name="Move GSI_").click()
            page.locator(".state-planned").wait_for()
            for n in range(MOST_RUNS):
                scene.produce(rows.user(n, f"v{n}"), rows.star(f"v{n}", f"r{n}"))
                scene.run()
                if [one.slot for one in scene.registry.snapshot().assignments_of("star")] == [3]:
                    break
            page.locator("#move-star-3").wait_for()
            assert page.locator(f"#move-star-{held.slot}").count() == 0
            page.goto(f"{address}/documents?product=profile&key=1")
            page.get_by_text("The topic has this document.").wait_for()
            page.goto(f"{address}/letters")
            page.get_by_text("No dead letter waits").wait_for()
    assert scene.documents() == scene.truth()
    assert ("ada", "more room") in {(one.who, one.why) for one in scene.registry.history()}
