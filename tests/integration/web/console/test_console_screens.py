"""What the screens of the console say first, and how a person finds a line in a long list."""

from dataclasses import replace
from time import time
from typing import Any

import pytest

from processor.engine.protocol.replays import letter_position
from processor.job.run.monitor import ChartSamples
from processor.tools.web.console import overview
from processor.tools.web.console.overview import chart, nice_ceiling
from registry.edits import operations
from registry.edits.edit import Signature
from tests.integration.web.console.conftest import JOB, Browser, ConsoleScene, at
from tests.integration.web.console.test_console_edits import lease_of


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


def settle_letter(console: ConsoleScene) -> None:
    """No dead letter waits any more, so the first screen is calm where nothing else needs a person."""
    console.registry.letters.forget([letter_position(console.kept[0].rejected.record)])


def tiles(browser: Browser) -> dict[str, dict[str, str]]:
    """The first things of the overview, by their names."""
    return {one["name"]: one for one in browser.data("/")["first"]}


@pytest.fixture
def working(run_state: dict[str, Any]) -> dict[str, Any]:
    """The report of a job to which nothing happened, of now."""
    lag = {"records": 0, "seconds": 0.0, "retention": 86_400.0}
    counts = {"last_hour": run_state["last_hour"], "last_day": run_state["last_day"]}
    now = {"at": time(), "began": time() - 9_000, "stopped_products": {}, "backlog": 0, **counts}
    return run_state | now | {"topics": {"user": lag, "star": lag}, "positions": {"user/0": 3, "star/0": 8}}


def test_the_first_screen_says_state_lag_products_letters_failure_and_deadline_each_as_a_link(
    console: ConsoleScene, working: dict[str, Any]
) -> None:
    browser, lease = console.browser(), lease_of(console.registry)
    console.registry.runs.keep_report(lease, working)
    first = tiles(browser)
    assert list(first) == ["state", "lag", "products", "dead letters that wait", "last failure", "next deadline"]
    assert [
        first[name]["value"] for name in ("state", "lag", "products", "dead letters that wait", "next deadline")
    ] == [
        "works",
        "none",
        "1 live",
        "1",
        "none",
    ]
    assert (first["dead letters that wait"]["href"], first["dead letters that wait"]["look"]) == ("/letters", "fair")
    assert "Nothing needs a person." not in browser.page("/")  # a letter waits for one
    page = browser.page("/")
    assert all(f'href="{one["href"]}"' in page for one in first.values())
    assert all(f'id="{one["href"][1:]}"' in page for one in first.values() if one["href"].startswith("#"))
    settle_letter(console)
    assert "Nothing needs a person." in browser.page("/")


def test_the_next_deadline_is_what_the_broker_deletes_or_when_the_job_gives_up_the_earlier_of_both(
    console: ConsoleScene, working: dict[str, Any]
) -> None:
    browser, lease = console.browser(), lease_of(console.registry)
    late = {"records": 1_234, "seconds": 86_400.0 - 9 * 3_600, "retention": 86_400.0}
    report = working | {"topics": working["topics"] | {"star": late}}
    console.registry.runs.keep_report(lease, report)
    deadline = tiles(browser)["next deadline"]
    assert (deadline["value"], deadline["look"]) == ("in 9 h", "fair")
    assert "the broker deletes unread records of star" in deadline["note"]
    assert tiles(browser)["lag"]["value"] == "15 h"
    trouble = {"part": "broker", "text": "no answer", "cure": "x", "since": time(), "said": 0, "gives_up": time() + 240}
    console.registry.runs.keep_report(lease, report | {"troubles": [trouble]})
    deadline = tiles(browser)["next deadline"]
    assert deadline["value"] in ("in 4 min", "in 3 min 59 s")
    assert "the job gives up: no answer of the broker" in deadline["note"]
    assert tiles(browser)["state"]["look"] == "fair"
    settle_letter(console)
    assert "Nothing needs a person." not in browser.page("/")


def test_a_paused_product_says_since_when_by_whom_and_why_and_what_waits_for_it(
    console: ConsoleScene, working: dict[str, Any]
) -> None:
    browser, lease = console.browser(), lease_of(console.registry)
    console.registry.operate(Signature("eve", "a night without stars"), operations.pause, "profile", paused=True)
    waits = {"records": 60, "seconds": 3_660.0, "retention": None}
    console.registry.runs.keep_report(lease, working | {"topics": working["topics"] | {"star": waits}})
    (product,) = browser.data("/")["product_rows"]
    assert (product["state"], product["lag"]) == ("paused", "60 records, 1 h 1 min")
    page = browser.page("/")
    assert "paused by eve at " in page
    assert "a night without stars" in page
    assert tiles(browser)["products"] | {"note": ""} == {
        "name": "products",
        "value": "1 paused",
        "href": "/products",
        "look": "fair",
        "note": "",
    }


def test_a_job_that_a_person_stopped_is_amber_while_its_topics_fill(
    console: ConsoleScene, working: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = lease_of(console.registry)
    settle_letter(console)
    console.registry.runs.keep_report(lease, working)
    console.registry.runs.end(JOB, "host/7", "stopped")
    waits = {"records": 0, "seconds": 0.0, "retention": 86_400.0}
    asked = []

    def now(_bootstrap: str, _extra: Any, report: Any, _at: float) -> Any:
        asked.append(report["positions"])
        return report | {"topics": report["topics"] | {"star": dict(waits)}}

    monkeypatch.setattr(overview, "report_now", now)
    console.settings = replace(console.settings, bootstrap_servers="127.0.0.1:9")
    state = tiles(console.browser())["state"]
    assert (state["value"], state["look"]) == ("does not run", "")
    waits |= {"records": 1_234, "seconds": 7_200.0}
    browser = console.browser()
    first = tiles(browser)
    assert (first["state"]["look"], first["lag"]["value"]) == ("fair", "2 h")
    assert "the broker deletes unread records of star" in first["next deadline"]["note"]
    page = browser.page("/")
    assert f"job {JOB} does not run" in page
    assert "its topics fill: star 1,234 records, 2 h: start it again" in page
    assert "The job waits, and continues by itself" not in page
    assert asked[0] == {"user/0": 3, "star/0": 8}
    assert "Nothing needs a person." not in page


def test_the_lag_table_shows_what_is_not_zero_and_counts_the_rest(
    console: ConsoleScene, working: dict[str, Any]
) -> None:
    browser, lease = console.browser(), lease_of(console.registry)
    waits = {"records": 5, "seconds": 2.0, "retention": None}
    console.registry.runs.keep_report(lease, working | {"topics": working["topics"] | {"star": waits}})
    (card,) = browser.data("/")["cards"]
    assert ([one["topic"] for one in card["topics"]], card["read"]) == (["star"], 1)
    assert "1 topic has no unread record." in browser.page("/")


def test_charts_have_axes_units_a_chosen_range_and_say_how_long_they_are_kept(
    console: ConsoleScene, working: dict[str, Any]
) -> None:
    browser, lease, ring = console.browser(), lease_of(console.registry), ChartSamples()
    begin = time() - 7_200
    for n in range(0, 7_200, 10):
        charts = ring.add(begin + n, 10.0 + n % 7, 2.0, None if n < 7_000 else 1.0, 0)
    console.registry.runs.keep_report(lease, working | {"charts": charts})
    page = browser.page("/")
    assert "events, <span" in page
    assert ">a second</span>" in page
    assert "Means of 1 min, kept for 1 h, also over restarts of the job." in page
    (card,) = browser.data(at("/", range="10 min"))["cards"]
    assert [(one["name"], one["unit"]) for one in card["charts"]] == list(overview.CHARTS)
    assert [one["text"] for one in card["charts"][0]["y"]] == ["20", "0"]
    assert "Means of 10 s, kept for 10 min" in browser.page(at("/", range="10 min"))
    assert "must be one of 10 min, 1 h, 24 h" in browser.page(at("/", range="a year"), 400)


def test_a_chart_cuts_its_line_where_samples_are_missing_and_rounds_its_axis() -> None:
    shown = chart("events", "a second", [(0.0, 1.0), (60.0, 2.0), (600.0, 3.0), (660.0, 7.0)], 3_600.0)
    assert [len(points.split()) for points in shown["lines"]] == [2, 2]
    assert [nice_ceiling(value) for value in (0.0, 1.0, 3.0, 7.0, 11.0, 4_999.0)] == [
        1.0,
        1.0,
        5.0,
        10.0,
        20.0,
        5_000.0,
    ]
    assert shown["text"] == "events a second in the last 11 min: 1 to 7, 7 at the end"


def test_slots_products_and_costs_are_found_by_their_words(console: ConsoleScene) -> None:
    browser = console.browser()
    assert [one["entity"] for one in browser.data(at("/slots", q="WHO"))["entities"]] == ["star"]
    assert "No entity has these words." in browser.page(at("/slots", q="nothing"))
    assert [one["product"] for one in browser.data(at("/products", q="user prof"))["products"]] == ["profile"]
    assert "No product has these words." in browser.page(at("/products", q="nothing"))
    found = browser.data(at("/costs", q="star delete"))["events"]
    assert {(one["entity"], one["event"]) for one in found} == {("star", "delete")}


def test_bad_records_are_no_outage_that_ends_by_itself(console: ConsoleScene, working: dict[str, Any]) -> None:
    text = "topic user: 40 of 60 records of the last 10 min are dead letters"
    poisoned = working | {"rejects": [{"topic": "user", "read": 60, "dead": 40, "text": text}]}
    browser = console.browser()
    settle_letter(console)
    console.registry.runs.keep_report(lease_of(console.registry), poisoned)
    page = browser.page("/")
    assert text in page
    assert "Nothing needs a person." not in page
    assert "The job waits, and continues by itself" not in page
    assert tiles(browser)["state"] | {"href": ""} == {
        "name": "state",
        "value": "bad records",
        "href": "",
        "look": "fair",
        "note": "above the limit the job stops",
    }
