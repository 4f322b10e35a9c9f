"""For all tests: the marker `slow`, the rule that with CI=true a skip is a failure, and the DynamoDB APIs."""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("statestore", deadline=None)  # no test checks a duration
settings.load_profile("statestore")

MAY_SKIP = ("moto_lies",)
"""Markers of tests that a double makes impossible. A missing part of the machine is no reason for a skip."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes; `make test` leaves it out, `make test-all` runs it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a skip is a failure: the build machine has Java, the jars and Postgres."""
    report = yield
    excused = hasattr(report, "wasxfail") or any(item.get_closest_marker(name) for name in MAY_SKIP)
    if report.skipped and not excused and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, although CI=true: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def credentials() -> Iterator[None]:
    """Credentials that no AWS account knows."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The endpoint of a moto server."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The endpoint of DynamoDB Local. If it cannot start, its tests are skipped; on the build machine they fail."""
    from processor.errors import PartError
    from processor.local.dynamodb_api import start_dynamodb_local

    try:
        part = start_dynamodb_local(Path(__file__).parents[1] / ".statestore")
    except PartError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no DynamoDB Local: {error}")
    yield part.endpoint
    part.stop()
