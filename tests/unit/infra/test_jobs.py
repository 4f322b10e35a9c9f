"""Tests the scripts that Glue and EMR start."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from processor.cli import main

ROOT = Path(__file__).parents[3]
JOBS = ROOT / "infra" / "jobs"
OF_GLUE = ["--JOB_NAME", "orders", "--TempDir", "s3://b/t", "--enable-metrics", "true"]
ARGUMENTS = ["--settings", "job.toml", "--table", "orders"]


def given_to_run(script: str, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Runs a script in this process. Returns the arguments of the command; the command returns the status."""
    calls: list[list[str]] = []

    def record(arguments: list[str]) -> int:
        calls.append(arguments)
        return status

    monkeypatch.setattr(main, "main", record)
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    runpy.run_path(str(JOBS / script), run_name="__main__")
    return calls


def test_the_script_of_glue_runs_the_job_with_the_same_arguments_as_that_of_emr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(SystemExit) as ended:
        given_to_run("emr_job.py", ARGUMENTS, 0, monkeypatch)
    assert ended.value.code == 0
    assert given_to_run("glue_job.py", [*OF_GLUE, *ARGUMENTS], 0, monkeypatch) == [["run", *ARGUMENTS]]


@pytest.mark.parametrize("script", ["emr_job.py", "glue_job.py"])
def test_a_job_that_fails_ends_its_script_with_the_status_of_the_job(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as ended:
        given_to_run(script, ARGUMENTS, 1, monkeypatch)
    assert ended.value.code == 1


@pytest.mark.parametrize("script", ["emr_job.py", "glue_job.py"])
def test_a_wrong_setting_ends_a_script_with_one_line_and_a_failure(script: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(JOBS / script), "--batch-size", "many"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "statestore run: --batch-size: 'many' is not a whole number\n"
