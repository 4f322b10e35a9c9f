"""What holds for all tests: the marker `slow`, and that with CI=true nothing is skipped for want of a part."""

import os
from collections.abc import Generator
from typing import Any

import pytest

MAY_SKIP = ("moto_lies",)
"""Markers of tests that are skipped for what a double does, not for what a machine lacks."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes; `make test` leaves it out, `make test-all` runs it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a skip is a failure: a machine that builds has Java, jars and a Postgres."""
    report = yield
    excused = hasattr(report, "wasxfail") or any(item.get_closest_marker(name) for name in MAY_SKIP)
    if report.skipped and not excused and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, although CI=true: {report.longrepr}"
    return report
