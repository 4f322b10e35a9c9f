"""A job that continues elsewhere: with other cores, lanes or shuffle partitions, or with another Spark. Each run finds a batch
that was not committed, and new records. Documents stay right."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from benchmarks.job_process import run_command
from processor.engine.rounds.events import JobEvent
from processor.job.run.run_job import run_job
from tests.faulty.processes import write_settings
from tests.support.other_spark import PYTHONS, NoPython, spark_python

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
MAIN = "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))"


def leave_work(scene: Scene, rows: SimpleNamespace, name: str) -> None:
    """Leaves a batch that is planned and not committed, and records after it."""
    scene.uncommit_last()
    stars = (rows.star(name, f"repo{i}", note=name) for i in range(12))
    scene.produce(rows.user(1, name), *stars, rows.user(2, name))


def run_elsewhere(scene: Scene, directory: Path, python: str, *, shuffle: int = 200, **changes: Any) -> None:
    """Runs the job in a process of its own, until it ends."""
    (directory / "spark-defaults.conf").write_text(f"spark.sql.shuffle.partitions {shuffle}\n")
    log, settings = directory / "log", replace(scene.settings, **changes)
    words = [python, "-c", MAIN, "run", "--once", *write_settings(settings, directory / "settings.toml")]
    environment = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_CONF_DIR": str(directory)}
    with run_command(words, log, **environment) as process:
        assert process.wait(1800) == 0, log.read_text()


@pytest.fixture
def started(scene: Scene, rows: SimpleNamespace) -> Scene:
    """A job of small batches that has run once, on two cores with two lanes."""
    scene.settings = replace(scene.settings, batch_size=8)
    scene.produce(*(rows.star("ada", f"repo{i}") for i in range(12)), rows.user(1, "ada"))
    scene.run()
    return scene


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "lanes", "shuffle"), [(1, 1, 3), (4, 5, 400)])
def test_a_job_goes_on_with_other_cores_lanes_and_shuffle_partitions(
    started: Scene, rows: SimpleNamespace, tmp_path: Path, cores: int, lanes: int, shuffle: int
) -> None:
    leave_work(started, rows, "bob")
    run_elsewhere(started, tmp_path, sys.executable, spark_master=f"local[{cores}]", lanes=lanes, shuffle=shuffle)
    assert started.documents() == started.truth()
    leave_work(started, rows, "cyd")
    started.run()
    assert started.documents() == started.truth()


@pytest.fixture(params=[one for one in PYTHONS if one != pyspark.__version__])
def other_python(request: pytest.FixtureRequest) -> str:
    """The Python of another Spark."""
    try:
        return str(spark_python(request.param))
    except NoPython as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_two_versions_of_spark_take_turns_on_one_checkpoint(
    started: Scene, rows: SimpleNamespace, tmp_path: Path, other_python: str
) -> None:
    leave_work(started, rows, "bob")
    run_elsewhere(started, tmp_path, other_python)
    assert started.documents() == started.truth()
    leave_work(started, rows, "cyd")
    started.run()
    assert started.documents() == started.truth()


@pytest.mark.rest
def test_a_run_with_once_ends_and_leaves_no_work_although_a_producer_goes_on(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.settings = replace(scene.settings, batch_size=2)
    scene.produce(*(rows.user(number, f"user{number}") for number in range(6)))
    events: list[JobEvent] = []

    def produce_more(event: JobEvent) -> None:
        if event.what == "batch":
            events.append(event)
            scene.produce(rows.user(100 + len(events), "late"))

    with scene.opened(report=produce_more) as job:
        run_job(job, once=True)
    read = job.driver.tally["read"]
    assert 6 <= read < 6 + len(events)
    assert scene.run().tally["read"] == 6 + len(events) - read
    assert scene.run().tally == {}
    assert scene.documents() == scene.truth()
