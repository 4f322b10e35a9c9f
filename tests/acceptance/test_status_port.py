"""A real job shows what it did: to Prometheus, as JSON, on its page, to CloudWatch and to `statestore status`."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from processor.cli.main import main
from processor.job.metrics.metrics import METRICS

Story = Any  # the class in conftest.py
READ = 249
"""Records of the story that an entity reads."""
NEVER = {
    *(
        "corrections",
        "throttles",
        "retries",
        "suppressed_documents",
        "fan_out_pages",
        "walked_rows",
        "truncated_rows",
        "index_lag_seconds",
    ),
}
"""Counters of things that need not happen in this run."""
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def job(
    module_story: Story,
    statestore: list[str],
    dynamodb_local: str,
    port: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A job that has processed its records and continues, and the file of its standard output."""
    story, folder = module_story, tmp_path_factory.mktemp("job")
    words = [*statestore, *story.run_on(dynamodb_local), *story.define, "--from", story.file]
    words += ["--status-port", str(port), "--cloudwatch-namespace", "statestore/tests"]
    with (folder / "out").open("wb") as out, (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=out, stderr=log, start_new_session=True)
    try:
        _wait_for_records(process, port, folder / "log")
        yield process, folder / "out"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for_records(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Waits until the job has read all records, settled them, and printed two lines for CloudWatch."""
    for _ in range(240):
        assert process.poll() is None, log.read_text()
        try:
            report = json.loads(ask(port, "/status.json"))
        except (urllib.error.URLError, ConnectionError):
            report = None
        unread = [lag["records"] for lag in report["topics"].values()] if report and report["last_batch"] else [None]
        if (
            not any(number != 0 for number in unread)
            and not report["open_changes"]
            and len((log.parent / "out").read_text().splitlines()) >= 2
        ):
            return
        time.sleep(1)
    pytest.fail(f"the job has not read all records: {log.read_text()}")


def ask(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=300) as answer:
        return str(answer.read().decode())


Job = tuple[subprocess.Popen[bytes], Path]


def test_every_metric_has_samples_and_the_counters_count(job: Job, port: int) -> None:
    families = {one.name: one for one in text_string_to_metric_families(ask(port, "/metrics"))}
    for metric in METRICS:
        name = metric.name.removesuffix("_total")
        samples = families[name].samples
        assert samples, name
        if metric.kind != "gauge" and name.removeprefix("statestore_") not in NEVER:
            assert sum(sample.value for sample in samples) > 0, name
    events = families["statestore_events"].samples
    assert sum(sample.value for sample in events) == READ
    units = {s.labels["request"]: s.value for s in families["statestore_write_units"].samples}
    requests = {s.labels["request"]: s.value for s in families["statestore_requests"].samples}
    assert units["UpdateItem"] > requests["UpdateItem"]  # a row costs its units in the table and in its indexes


def test_the_page_and_health_show_a_job_without_faults(job: Job, port: int) -> None:
    assert "Nothing needs a person." in ask(port, "/")
    assert ask(port, "/health") == "ok\n"


def test_status_shows_the_same_report(
    job: Job, port: int, module_story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", *module_story.flags, "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["jobs"]
    report = json.loads(ask(port, "/status.json"))
    assert shown["report"].keys() == report.keys()
    same = ("job", "pid", "host", "dead_letters", "last_dead_letter", "registry_version", "topics")
    assert {name: shown["report"][name] for name in same} == {name: report[name] for name in same}
    assert main(["status", *module_story.flags]) == 0
    assert " write units, " in capsys.readouterr().out


def test_standard_output_has_a_line_for_cloudwatch_at_each_status_line_and_nothing_else(job: Job) -> None:
    lines = [json.loads(line) for line in job[1].read_text().splitlines()]
    assert sum(line["statestore_events_total"] for line in lines) == READ
    assert {line["_aws"]["CloudWatchMetrics"][0]["Namespace"] for line in lines} == {"statestore/tests"}


def test_another_job_at_the_same_port_ends_at_its_start_with_a_clear_error(
    job: Job, port: int, module_story: Story, statestore: list[str], dynamodb_local: str
) -> None:
    words = [*statestore, *module_story.run_on(dynamodb_local), "--status-port", str(port)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert f"status_port: cannot listen at 127.0.0.1, port {port}: another program listens there" in done.stderr


def test_the_end_of_the_job_does_not_wait_for_a_reader(job: Job, port: int) -> None:
    """The last test of this file: the job ends here."""
    with socket.create_connection(("127.0.0.1", port)) as reader:
        reader.sendall(b"GET /metrics HT")
        job[0].send_signal(signal.SIGTERM)
        assert job[0].wait(300) == 0
