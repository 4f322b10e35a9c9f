"""For all tests: the markers, the rule that with CI=true a skip is a failure, the DynamoDB APIs, and the record of the product's
calls to AWS."""

import os
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from processor.language.product.expressions.functions import take_names
from tests.recorder.calls import FOLDER, allowed, differences, recorded

EXAMPLES = int(os.environ.get("STATESTORE_EXAMPLES", "100"))
"""Of each test with the marker `hypothesis`. `make test` runs fewer, and `make test-rest` more."""

settings.register_profile("statestore", deadline=None, max_examples=EXAMPLES)  # no test checks a duration
settings.load_profile("statestore")

MAY_SKIP = {"moto_lies": "moto lies: ", "older_postgres": "no PostgreSQL 14 to 17", "docker_compose": ""}
"""Markers of tests that may skip, each with the begin of the reason: tests that a double makes impossible, those over an older
Postgres, which some systems do not offer, and those by Docker's plugin `compose`, which neither pip nor Debian 12 has. No other
missing part of the machine is a reason for a skip."""

RECORDER = Path(__file__).parent / "recorder" / "start"
"""What Python imports at the start of each process, so that a moto server records its calls."""
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
DIFFERENCES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--unused-actions",
        action="store_true",
        help="fail, too, on an action of the AWS policies that no test asks for",
    )
    parser.addoption(
        "--together",
        action="append",
        default=[],
        metavar="FOLDER",
        help="one process of `--dist loadfile` runs all files of this folder first: they share parts and a Spark session",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    folders = config.getoption("together")

    class TogetherScheduling(LoadFileScheduling):  # type: ignore[misc]
        """As of `--dist loadfile`, but the files of one folder count as one file."""

        def _split_scope(self, nodeid: str) -> str:
            return folder_of(nodeid, folders) or str(super()._split_scope(nodeid))

    return TogetherScheduling(config, log) if folders else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The folders of `--together` come first: their processes work longest, and all processes end together. (pytest itself takes
    a folder only once, and in its place among the others.)"""
    items.sort(key=lambda item: not folder_of(item.nodeid, config.getoption("together")))


def folder_of(nodeid: str, folders: list[str]) -> str | None:
    """The folder of these in which a test is."""
    return next((folder for folder in folders if nodeid.startswith(f"{folder}/")), None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes minutes; `make test-all` alone runs it")
    config.addinivalue_line("markers", "rest: `make test` leaves it out, `make test-rest` and CI run it")
    config.addinivalue_line("markers", "older_postgres: needs a PostgreSQL 14 to 17 of the system")
    config.addinivalue_line("markers", "docker_compose: needs Docker's client with its plugin `compose`")
    config.addinivalue_line("markers", "spark: starts Spark; `make test-spark` runs it on another Spark and Python")
    if FOLDER not in os.environ:  # the processes of pytest-xdist, and those that tests start, inherit the folder
        folder = TemporaryDirectory(prefix="statestore-calls-")
        os.environ[FOLDER] = folder.name
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(RECORDER), os.environ.get("PYTHONPATH")]))
        config.add_cleanup(folder.cleanup)
        config.stash[DIFFERENCES] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compares the recorded calls with the policies, at the end of the whole run."""
    found = session.config.stash.get(DIFFERENCES, None)
    if found is not None:
        unused = session.config.getoption("--unused-actions")
        found += differences(recorded(Path(os.environ[FOLDER])), allowed(), unused=unused)
        if found:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if found := config.stash.get(DIFFERENCES, None):
        terminalreporter.section("calls to AWS and infra/modules/access/dynamodb_actions.json differ", red=True)
        for difference in found:
            terminalreporter.line(difference)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true a skip is a failure: the build machine has Java, the jars and Postgres."""
    report = yield
    reason = str(call.excinfo.value) if call.excinfo else ""
    excused = hasattr(report, "wasxfail") or any(
        item.get_closest_marker(name) and reason.startswith(begin) for name, begin in MAY_SKIP.items()
    )
    return report if excused else _failed_in_ci(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module, which skips where it is imported."""
    return _failed_in_ci((yield))


def _failed_in_ci(report: Report) -> Report:
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, although CI=true: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def api_descriptions() -> Iterator[None]:
    """botocore reads its files about the APIs once a process, and not once a client: 0.1 s of CPU."""
    import botocore.session

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


@pytest.fixture(autouse=True)
def secrets() -> None:
    """The secret of examples and random products has a value, as in `statestore test`."""
    take_names(["mask"])


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

    from tests.recorder.moto_calls import record_moto

    record_moto()
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def dynamodb_local() -> Iterator[str]:
    """The endpoint of DynamoDB Local. If it cannot start, its tests are skipped."""
    from processor.environment.programs.servers import start_dynamodb_local
    from processor.errors import PartError
    from tests.recorder.tap import tap

    try:
        part = start_dynamodb_local(Path(__file__).parents[1] / ".statestore")
    except PartError as error:
        pytest.skip(f"no DynamoDB Local: {error}")
    with tap(part.endpoint) as endpoint:
        yield endpoint
    part.stop()
