"""The driver's page in a real browser: Debian's Chromium, without a window."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from processor.job.metrics import status_page as page_module
from processor.job.metrics.status_page import RunState, status_server
from tests.support.required import required_program
from tests.unit.job.metrics.run_report import run_report

EVIL = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"
MISSING = {EVIL: {"entity": EVIL, "near": EVIL, "products": [EVIL]}}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chromium() -> str:
    return required_program("chromium", "`apt-get install chromium`")


@pytest.fixture
def states() -> list[RunState]:
    """The states that the page shows, each once, and the last one from then on."""
    return [RunState(run_report(), ())]


@pytest.fixture
def address(states: list[RunState]) -> Iterator[str]:
    with status_server("127.0.0.1", 0, lambda: states.pop(0) if len(states) > 1 else states[0]) as port:
        yield f"http://127.0.0.1:{port}/"


def dom(chromium: str, address: str, profile: Path, *flags: str) -> str:
    """The page as the browser has it after its scripts ran; with its errors and warnings."""
    flags = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *flags)
    done = subprocess.run(
        [chromium, *flags, "--enable-logging=stderr", "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    refused = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert refused == []
    return done.stdout


def test_the_browser_shows_the_report(chromium: str, address: str, tmp_path: Path) -> None:
    shown = dom(chromium, address, tmp_path)
    assert "<h1>job main: reads its topics</h1>" in shown
    assert '<body><p class="silent">' in shown


def test_the_page_fetches_itself_again_and_shows_the_new_state(
    chromium: str, address: str, states: list[RunState], tmp_path: Path
) -> None:
    states.append(RunState(run_report() | {"doing": "waits for its topics"}, ("product profile stopped",)))
    shown = dom(chromium, address, tmp_path, "--virtual-time-budget=12000")
    assert "<title>main: a person must act</title>" in shown
    assert "<h1>job main: waits for its topics</h1>" in shown
    assert '<p class="wrong">product profile stopped</p>' in shown


def test_hostile_texts_run_no_script(chromium: str, address: str, states: list[RunState], tmp_path: Path) -> None:
    report = run_report() | {
        "doing": EVIL,
        "last_dead_letter": EVIL,
        "missing_topics": MISSING,
    }
    states[:] = [RunState(report, ()), RunState(report, (EVIL,))]
    shown = dom(chromium, address, tmp_path, "--virtual-time-budget=12000")
    assert "<title>taken over" not in shown
    assert "<img" not in shown
    assert shown.count("&lt;img src=x") >= 3


def test_a_phone_shows_the_page_without_scrolling_sideways(
    chromium: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No window of Chromium is as narrow as a phone, so the script of this page puts the page into a frame, and there notes its
    widths."""
    noted = "parent.document.title = `${innerWidth} ${page.scrollWidth <= page.clientWidth}`"
    framed = "document.body.innerHTML = '<iframe src=/ width=360 height=800></iframe>'"
    monkeypatch.setattr(
        page_module, "SCRIPT", f"const page = document.documentElement; if (self === top) {framed}; else {noted};"
    )
    monkeypatch.setattr("processor.job.metrics.status_page.HEADERS", {})
    shown = dom(chromium, address, tmp_path, "--virtual-time-budget=3000")
    assert "<title>360 true</title>" in shown
