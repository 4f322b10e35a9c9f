"""What the screens of the console say first, and how a person finds a line in a long list."""

from registry.edits import operations
from registry.edits.edit import Signature
from tests.integration.web.console.conftest import ConsoleScene, at


def test_the_history_speaks_as_apply_does_and_finds_a_version_by_its_words(console: ConsoleScene) -> None:
    console.registry.operate(Signature("eve", "a night"), operations.pause, "profile", paused=True)
    browser = console.browser()
    page = browser.page("/history")
    assert "joined star in profile; slot GSI_1 of " in page
    assert "paused product profile" in page
    assert "access_paths" not in page
    assert [one["version"] for one in browser.data("/history")["versions"]] == [2, 1]
    assert [one["version"] for one in browser.data(at("/history", q="NIGHT eve"))["versions"]] == [2]
    assert "No version of the last 2 has these words." in browser.page(at("/history", q="nobody"))
    assert "joined star in profile" in browser.page(at("/history/version", of=1))
