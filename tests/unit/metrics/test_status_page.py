"""The driver's page: it shows the report, loads nothing, and escapes all."""

import re
from html.parser import HTMLParser
from typing import Any

from processor.metrics.status_page import CONTENT_POLICY, status_page
from tests.unit.metrics.run_report import run_report

REPORT = run_report()
EVIL = "<img src=x onerror=alert(1)>\"'&"
MISSING = {EVIL: {"entity": EVIL, "near": EVIL, "products": [EVIL]}}


def evil(value: Any) -> Any:
    """The value with a hostile text in the place of each text and of each name."""
    match value:
        case str():
            return EVIL
        case dict():
            return {f"{name}{EVIL}" if name in ("user", "star") else name: evil(one) for name, one in value.items()}
        case list():
            return [evil(one) for one in value] or [EVIL]
    return value


class Tags(HTMLParser):
    """The tags of a page, with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f" {data}"


def test_the_page_shows_what_status_shows() -> None:
    text = re.sub(r"\s+", " ", Tags(status_page(REPORT, ["product profile stopped: too large"])).text)
    for part in (
        "job main: reads its topics",
        f"registry version {REPORT['registry_version']}",
        "product profile stopped: too large",
        "oldest unpublished 1 min",
        "user 7 records, 1 min",
        "open changes",
        "gate of badge: 2 documents wait, the oldest for 8 s; it waits for transaction 760 of topic app.transaction",
        "gates: 1 documents went out at `at_most`",
        "Query",
        "publish",
        "the last dead letter: user/0 offset 2",
    ):
        assert part in text


def test_the_page_of_a_job_that_starts_and_of_a_job_in_good_health() -> None:
    assert "The job starts." in status_page(None, [])
    assert "Nothing needs a person." in status_page(REPORT, [])


def test_hostile_names_and_reasons_stay_text() -> None:
    hostile = {name: evil(value) for name, value in REPORT.items() if name not in ("counts", "last_batch")}
    page = status_page(
        REPORT | hostile | {"missing_topics": MISSING, "walks": [EVIL]},
        [EVIL],
    )
    plain, found = Tags(status_page(REPORT, ["x"])), Tags(page)
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in plain.tags}
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert found.text.count(EVIL) >= 6


def test_the_page_loads_nothing_from_elsewhere_and_its_policy_forbids_it() -> None:
    tags = Tags(status_page(REPORT, [])).tags
    links = [value for _, attributes in tags for name, value in attributes.items() if name in ("href", "src")]
    assert links == ["data:,", "metrics", "status.json", "health"]
    assert CONTENT_POLICY.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in CONTENT_POLICY
