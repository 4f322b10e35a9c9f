"""The job from its archive alone: spark-submit with separate executors, no source tree and no installed package on the path.

Each case packs an environment, unpacks it for the driver, as EMR Serverless does, and gives it to the executors by `--archives`.
A first run gets SIGTERM after its first batch: in miniature, a stop of Glue after 7 days, or the end of a machine of EMR. The
next run begins at the checkpoint. Then every last document equals the answer of Postgres over the tables.
"""

import os
import shlex
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psutil
import pytest

from benchmarks.job_process import run_command
from processor.environment.programs.downloads import fetch_once
from tests.support.required import require_package_tools, required_python

Story = Any  # conftest's
ROOT = Path(__file__).parents[2]
JOBS = ROOT / "infra" / "jobs"
PLATFORMS = {"3.5.7": "3.11", "4.0.0": "3.13", "4.1.1": "3.13"}
"""The Python of each Spark."""
OF_GLUE = ["--JOB_NAME", "statestore", "--TempDir", "s3://bucket/temporary", "--enable-metrics", "true"]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@dataclass(frozen=True, kw_only=True)
class Platform:
    """A Spark, and the directory of a driver: it holds the archive, unpacked as `environment` too, and the jars."""

    spark: Path
    directory: Path
    jars: list[Path]

    def submit(self, script: str, *arguments: str) -> list[str]:
        """The command that runs a script from the archive."""
        command = [str(self.spark / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
        command += ["--archives", "environment.tar.gz#environment", "--jars", ",".join(map(str, self.jars))]
        command += ["--conf", "spark.ui.enabled=false", str(self.directory / script), "--settings", "job.toml"]
        # spark-submit sends the lines of a Python driver to its standard output
        there = f'cd {shlex.quote(str(self.directory))} && unset PYTHONPATH && exec "$@" >&2'
        return ["bash", "-c", there, "bash", *command, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        python = "./environment/bin/python"
        return {"SPARK_HOME": str(self.spark), "PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}


@pytest.fixture(scope="module", params=PLATFORMS)
def platform(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Platform:
    """A Spark with an archive for it."""
    require_package_tools()
    from infra.package.environment import make_environment, pack_environment
    from infra.package.jar_list import LISTS, fetch_jars
    from infra.package.wheel import build_wheel

    version = PLATFORMS[request.param]
    python = required_python(version)
    directory = tmp_path_factory.mktemp("driver")
    wheel = build_wheel(directory, 315_532_800)
    made = directory / "made"
    # The archive of `make package` names the Python of Amazon Linux; this one, the Python of this machine.
    make_environment(made, version, python, wheel, prefix=str(Path(python).parents[1]))
    archive = directory / "environment.tar.gz"
    pack_environment(made, archive, 315_532_800)
    with tarfile.open(archive) as members:
        members.extractall(directory / "environment")
    for script in JOBS.glob("*_job.py"):
        (directory / script.name).write_bytes(script.read_bytes())
    list_ = LISTS / f"jars-spark-{request.param.rpartition('.')[0]}.txt"
    jars = fetch_jars(list_, directory / "jars")
    return Platform(spark=writable(pyspark(request.param), directory), directory=directory, jars=jars)


def pyspark(version: str) -> Path:
    """A PySpark: the installed one, else one that the cache keeps."""
    import pyspark

    if pyspark.__version__ == version:
        return Path(pyspark.__path__[0])

    def fill(directory: Path) -> None:
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", str(directory)]
        subprocess.run([*command, f"pyspark=={version}"], check=True)

    return fetch_once(f"pyspark-{version}", fill, print) / "pyspark"


def writable(spark: Path, directory: Path) -> Path:
    """The Spark in a directory where executors may write their logs."""
    home = directory / "spark"
    home.mkdir()
    for entry in spark.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


def write_settings_file(story: Story, endpoint: str, directory: Path) -> None:
    """Writes the settings of a story's job as a file, as a deployed job has them."""
    words = iter(story.run_on(endpoint)[1:])
    lines = (f'{name[2:].replace("-", "_")} = "{value}"\n' for name, value in zip(words, words, strict=True))
    (directory / "job.toml").write_text("".join(lines))


def test_a_job_from_the_archive_goes_on_at_its_checkpoint_after_sigterm(
    platform: Platform, story: Story, dynamodb_local: str, tmp_path: Path
) -> None:
    write_settings_file(story, dynamodb_local, platform.directory)
    log, to = tmp_path / "log", tmp_path / "published.jsonl"
    glue = [*OF_GLUE, *story.define, "--from", story.file, "--batch-size", "80", "--take-over", "false"]
    with run_command(platform.submit("glue_job.py", *glue), log, **platform.environment) as process:
        wait_until(lambda: " info    batch " in log.read_text(), process, log)
        modules = compiled_modules(process)
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(600)
        assert psutil.wait_procs(family, timeout=600)[1] == []
    assert modules
    assert not any(path.is_relative_to(Path(sys.prefix).resolve()) for path in modules)
    committed = len(list(story.checkpoint.glob("commits/[0-9]*")))

    emr = ["--once", "--to", str(to)]
    with run_command(platform.submit("emr_job.py", *emr), log, **platform.environment) as process:
        assert process.wait(1800) == 0, log.read_text()
    read = next(int(line.split()[0]) for line in log.read_text().splitlines() if " records read = " in line)
    records = len(Path(story.file).read_text().splitlines())
    assert committed
    assert 0 < read < records
    assert story.wrong(str(to)) == []


def compiled_modules(process: subprocess.Popen[bytes]) -> set[Path]:
    """The files of the compiled modules that the Python daemons of the executors have loaded."""
    found: set[Path] = set()
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):  # it ended
            if "processor.job.run.worker_daemon" in child.cmdline():
                found |= {Path(one.path) for one in child.memory_maps() if "site-packages" in one.path}
    return found


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = monotonic() + 1800
    while not happened():
        assert process.poll() is None, log.read_text()
        assert monotonic() < deadline, log.read_text()
        sleep(0.5)
