"""A figure is at home in one table. Each sentence of another page that names the figure must say what the table says."""

import re
from typing import Any

import pytest

from tests.acceptance.pages import ROOT

MEASURED = "docs/benchmarks.md"
RESULTS = "benchmarks/results.md"
BOLD = r"\*\*([\d.,]+)\*\*"
JOB = (RESULTS, "DynamoDB Local | 20,000 / 1,500", "events/s")
CPU = (RESULTS, "DynamoDB Local | 20,000 / 1,500", "CPU ms per event")
FAN_OUT = (RESULTS, "DynamoDB Local | 10,000", "seconds")
POSTGRES = (MEASURED, "events/s after the warm-up", "1,000,000 other rows")
MONTH = "on demand, $ a month"
QUOTES = {
    ("README.md", rf"{BOLD} events/s on DynamoDB Local"): JOB,
    ("README.md", rf"{BOLD} ms of CPU per event"): CPU,
    ("README.md", rf"{BOLD} events/s with a million rows"): POSTGRES,
    ("README.md", rf"{BOLD} seconds on DynamoDB Local"): FAN_OUT,
    ("docs/deploy.md", r"takes \[([\d.]+) ms of CPU\]"): CPU,
    ("README.md", r"month\): \$(\d+), \$\d+, \$[\d,]+ on demand"): ("docs/costs.md", "1 ", MONTH),
    ("README.md", r"month\): \$\d+, \$(\d+), \$[\d,]+ on demand"): ("docs/costs.md", "100 ", MONTH),
    ("README.md", r"month\): \$\d+, \$\d+, \$([\d,]+) on demand"): ("docs/costs.md", "10,000 ", MONTH),
    ("docs/stores.md", r"table at 1 event a second, \$ a month \| \[(\d+)\]"): ("docs/costs.md", "1 ", MONTH),
    ("docs/stores.md", r"table at 100 events a second \| (\d+),"): ("docs/costs.md", "100 ", MONTH),
    ("docs/stores.md", r"table at 10,000 events a second \| ([\d,]+),"): ("docs/costs.md", "10,000 ", MONTH),
    ("docs/deploy.md", r"^\| 1 \| \$(\d+) \|"): ("docs/costs.md", "1 ", MONTH),
    ("docs/deploy.md", r"^\| 100 \| \$(\d+) \|"): ("docs/costs.md", "100 ", MONTH),
    ("docs/deploy.md", r"^\| 10,000 \| \$([\d,]+) \|"): ("docs/costs.md", "10,000 ", MONTH),
}
"""(page, the sentence with the figure) -> (the page of its table, the beginning of its row, its column)."""
PRICES = rf"\$\*\*([\d.]+)\*\* to \${BOLD} in batches of 1,000, up to \${BOLD} alone"


@pytest.mark.parametrize(("page", "sentence"), QUOTES)
def test_the_sentence_has_the_figure_of_its_table(page: str, sentence: str) -> None:
    (found,) = found_in(page, sentence)
    home, row, column = QUOTES[page, sentence]
    assert found == cell(home, row, column)


def test_every_figure_in_bold_of_the_readme_is_such_a_sentence() -> None:
    page = "README.md"
    checked = [sentence for home, sentence in QUOTES if home == page]
    named = sum(len(found_in(page, sentence)) for sentence in checked if BOLD in sentence)
    prices = len(found_in(page, PRICES)) * 3
    assert named + prices == len(re.findall(BOLD, text_of(page)))


def test_the_ages_of_the_readme_are_medians_of_the_page_about_benchmarks() -> None:
    ages = re.findall(r"([\d.]+) s at (\d+)", text_of("README.md"))
    assert len(ages) == 2
    assert [age for age, rate in ages if f"| {rate} | {rate} | {age} / " not in text_of(MEASURED)] == []


def test_the_prices_of_the_readme_are_the_least_and_the_greatest_of_the_page_about_costs() -> None:
    ((least, greatest, alone),) = found_in("README.md", PRICES)
    rows = [line.split() for line in text_of("docs/costs.md").splitlines() if re.search(r"\d\+\d$", line)]
    batch, lone = [float(row[-7]) for row in rows], [float(row[-6]) for row in rows]
    assert (float(least), float(greatest), float(alone)) == (min(batch), max(batch), max(lone))


def found_in(page: str, sentence: str) -> list[Any]:
    """The figures of a sentence, which may go over several lines of the page: a text, or a tuple of several."""
    return re.findall(sentence.replace(" ", r"\s+"), text_of(page), re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def cell(page: str, row: str, column: str) -> str:
    """The first number of the cell: the median where the cell has the least, the median and the greatest."""
    head: list[str] = []
    for line in text_of(page).splitlines():
        cells = [part.strip() for part in line.strip("|").split("|")] if line.startswith("|") else []
        head = head if cells and head else cells
        if cells and column in head and line.startswith(f"| {row}"):
            numbers = re.findall(r"\d[\d,.]*", cells[head.index(column)])
            return str(numbers[len(numbers) // 2 if len(numbers) == 3 else 0])
    raise LookupError(f"{page} has no row `{row}` with the column `{column}`")
