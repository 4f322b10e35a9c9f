"""What the console says of messages and dollars, by product."""

import json
from typing import Any

from processor.engine.plan.planning import requirements_of
from processor.language.definitions.load import load
from tests.integration.web.console.conftest import ENTITIES, PROFILE, ConsoleScene, at
from tests.integration.web.console.test_console_edits import lease_of


def test_the_products_have_their_messages_and_dollars_once_a_job_reports(
    console: ConsoleScene, run_state: dict[str, Any]
) -> None:
    browser = console.browser()
    (product,) = browser.data("/products")["products"]
    assert (product["messages_per_second"], product["dollars"]) == (None, None)
    browser.page("/costs")  # waits for the prices
    (product,) = browser.data("/products")["products"]
    assert 0 < product["low"] < product["high"]
    console.registry.runs.keep_report(lease_of(console.registry), run_state)
    (product,) = browser.data("/products")["products"]
    assert product["messages_per_second"] == 0.5
    assert product["dollars"] == 1.125  # 2,000,000 write units at $0.625 a million; nine of ten messages are its own
    page = browser.page("/products")
    assert "Messages measured over 30 min, dollars over 2 h" in page


def test_a_month_by_each_way_of_billing_and_what_the_registry_saves_without_a_product(
    console: ConsoleScene, run_state: dict[str, Any]
) -> None:
    browser = console.browser()
    assert "A month has no figure until a job has run for a minute." in browser.page(at("/costs", without="profile"))
    console.registry.runs.keep_report(lease_of(console.registry), run_state)
    found = browser.data(at("/costs", without="profile"))
    (run,) = found["runs"]
    month = run["month"]["dollars"]
    assert round(month["on demand"], 2) == 912.5  # 1,000,000 write units in half an hour, for 730 hours
    assert month["on demand"] > month["provisioned"] > month["reserved for a year"] > month["for three years"]
    saving = found["saving"]
    star = next(one for one in saving["entities"] if one["entity"] == "star")
    assert (star["events"], star["without"]) == (7_200_000, 0.625)
    assert round(saving["month"], 2) == round((star["now"] - 0.625) * 7.2 * 365, 2)
    page = browser.page(at("/costs", without="profile"))
    assert "at the rate of events measured over 2 h" in page
    assert "there is no product <code>nothing</code>; there are profile" in browser.page(
        at("/costs", without="nothing"), 404
    )


def test_the_costs_over_postgres_are_rows_bytes_and_time_and_say_whose_dollars_they_show(
    console: ConsoleScene, run_state: dict[str, Any]
) -> None:
    counts = {"read": 5, "request UpdateItem": 4, "ms write": 61_000}
    hour = {
        "seconds": 1_800.0,
        "counts": {"messages of profile": 900, "applied in star": 450, "request UpdateItem": 90},
    }
    console.registry.runs.keep_report(lease_of(console.registry), run_state | {"counts": counts, "last_hour": hour})
    browser = console.browser()
    found = browser.data("/costs")
    (run,) = found["runs"]
    assert (run["metered"], run["task_seconds"]) == (False, "1 min 1 s")
    assert run["month_work"]["sums"] == {
        "events": 657_000,
        "messages": 1_314_000,
        "requests to the table": 131_400,
    }
    assert list(found["usage"]["facts"]) == ["rows", "bytes", "time of statements"]
    page = browser.page("/costs")
    assert "The table is in Postgres. All dollars on this page are those of DynamoDB" in page
    assert "What Postgres counts of the table" in page
    assert '<th scope="col" class="number">units</th>' not in page  # of the requests: Postgres has none


def test_products_are_ranked_by_what_they_did(console: ConsoleScene, run_state: dict[str, Any]) -> None:
    """Each column ranks; without a wish the dollars do, or over Postgres the time of rendering."""
    counts = {
        "messages of profile": 900,
        "assembled of profile": 1_000,
        "assembled of b": 9_000,
        "bytes of profile": 3_000_000,
        "bytes of b": 0,
        "render us of profile": 2_000_000,
        "render us of b": 7_000_000,
        "ledger writes/1000 of profile": 750_000,
        "ledger writes/1000 of b": 250_000,
        "reads/1000 of profile": 6_000_000,
        "reads/1000 of b": 2_000_000,
    }
    units = {"half units UpdateItem": 2_000_000, "half units Query": 800_000}
    console.registry.apply(requirements_of(more_products()), who="eve", why="a second product")

    def reported(counts: dict[str, int]) -> None:
        hour = {"seconds": 1_800.0, "counts": counts}
        console.registry.runs.keep_report(lease_of(console.registry), run_state | {"last_hour": hour})

    def ranked(page: str = "/costs") -> list[str]:
        return [one["product"] for one in console.browser().data(page)["products"]]

    reported(counts)
    assert ranked() == ["b", "profile"]
    reported(counts | units)
    assert ranked() == ["profile", "b"]
    wished = {by: ranked(at("/costs", by=by))[0] for by in ("made", "messages", "bytes", "writes", "reads", "seconds")}
    assert [by for by, first in wished.items() if first == "b"] == ["made", "seconds"]
    console.browser().page(at("/costs", by="colour"), 404)
    profile = console.browser().data("/costs")["products"][0]
    assert profile["done"] == {
        "made": 1_000,
        "messages": 900,
        "bytes": 3_000_000,
        "writes": 750,
        "reads": 6_000,
        "seconds": 2,
        "dollars": 0.50625,  # three quarters of 1,000,000 write units and of 400,000 read units
    }
    assert profile["month"]["reads"] == 6_000 * 730 * 2
    page = console.browser().page("/costs")
    assert '<th scope="col" class="number" aria-sort="descending">$ ↓</th>' in page
    assert '<br><span class="quiet small">in a month</span></th>' in page
    assert '750<br><span class="quiet small">1,095,000</span>' in page  # ledger writes
    assert "divided equally" in page
    assert "Not counted by product, because products share it: writes of rows" in page


def test_the_report_of_an_older_release_says_what_it_does_not_count(
    console: ConsoleScene, run_state: dict[str, Any]
) -> None:
    console.registry.runs.keep_report(lease_of(console.registry), run_state)
    (product,) = console.browser().data("/costs")["products"]
    assert (product["done"]["messages"], product["done"]["reads"], product["done"]["dollars"]) == (900, None, 0.625)
    assert '<span class="quiet">unknown</span>' in console.browser().page("/costs")


def more_products() -> Any:
    files = {"entities.yaml": json.dumps(ENTITIES), "products/profile.yaml": json.dumps(PROFILE)}
    return load(files | {"products/b.yaml": json.dumps({"product": "b", "root": "user", "fields": ["id"]})})


def test_the_roots_that_read_the_most_are_shown_as_the_job_names_them(
    console: ConsoleScene, run_state: dict[str, Any]
) -> None:
    assert "Roots that read the most" not in console.browser().page("/costs")
    root = {"entity": "user", "key": '{"id":"<b>"}', "products": ["profile"], "documents": 12, "rows": 240_012}
    root |= {"read_units": 123_024.0, "most_read_units": 10_252.0, "list": "star", "list_rows": 10_000}
    console.registry.runs.keep_report(lease_of(console.registry), run_state | {"costly_roots": [root]})
    browser = console.browser()
    (shown,) = browser.data("/costs")["roots"]
    assert shown == root | {"units": True}
    page = browser.page("/costs")
    assert "Roots that read the most" in page
    assert "10,000 of star" in page
    assert "<b>" not in page
