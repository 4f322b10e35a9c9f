"""What the console says of messages and dollars, by product."""

from typing import Any

from tests.integration.web.console.conftest import ConsoleScene, at
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
