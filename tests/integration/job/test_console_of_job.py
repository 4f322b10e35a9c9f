"""An operator looks at a job in a browser: at an edit while the job writes, and at the death of the job."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from processor.tools.web.console.app import SCREENS, OwnUser, console_app, console_parts
from processor.tools.web.server import GuardRules
from tests.integration.job.test_postgres_job import environment
from tests.support.browser import chromium, served

pytestmark = pytest.mark.slow
Scene = Any  # conftest's
MOST_RUNS = 30
RUN = [sys.executable, "-c", "from processor.cli.main import main; raise SystemExit(main())", "run"]
START_MS = 300_000
"""The time that a job may take to start on a busy machine."""


@contextmanager
def opened_page(scene: Scene, path: str) -> Iterator[tuple[Any, str]]:
    """A page of the console of the scene's job, and the address of the console."""
    with (
        console_parts(scene.registry, scene.settings) as parts,
        chromium() as browser,
        served(console_app(parts, SCREENS, OwnUser("ada"), GuardRules(rate=10_000))) as address,
    ):
        page = browser.new_page()
        page.goto(address + path)
        yield page, address


@contextmanager
def started_job(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """The job as a process of its own, which ends with all its children as by kill -9."""
    with subprocess.Popen(RUN, env=os.environ | environment(scene.settings), start_new_session=True) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.plain
def test_a_move_in_the_browser_while_the_job_writes(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(30)), *(rows.star(f"u{n}", "r") for n in range(30)))
    scene.run()
    (held,) = (one for one in scene.registry.snapshot().assignments_of("star") if one.columns == ("who",))
    with opened_page(scene, f"/edit?edit=move&entity=star&slot={held.slot}&target=3") as (page, address):
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


def test_an_open_page_says_that_the_job_was_killed_and_that_it_runs_again(
    new_scene: Any, rows: SimpleNamespace
) -> None:
    scene = new_scene(lease_seconds=5)
    scene.produce(rows.user(1, "u"), rows.star("u", "r"))
    with opened_page(scene, "/") as (page, _):
        runs, died = page.get_by_text(f"Job {scene.settings.job}: reads its topics"), page.locator(".wrong")
        with started_job(scene):
            runs.wait_for(timeout=START_MS)
            assert died.count() == 0
            page.get_by_text("Nothing needs a person.").wait_for()
        died.wait_for()
        assert f"job {scene.settings.job} died: " in died.inner_text()
        assert died.inner_text().endswith("; start it again")
        assert page.get_by_text(f"Job {scene.settings.job}: does not run").is_visible()
        assert page.locator(".tiles").count() == 0  # the numbers of a dead job say nothing about now
        with started_job(scene):
            runs.wait_for(timeout=START_MS)
            died.wait_for(state="detached")
