"""Without the Python of a Spark, its tests do not run, and a line says why; on the build machine that is a failure."""

import sys
from pathlib import Path

import pytest

from tests.support import other_spark


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_a_line_says_how_to_get_the_python_that_a_spark_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, ci: str, status: int
) -> None:
    monkeypatch.setattr(other_spark, "find_python", lambda version: None)
    monkeypatch.setattr(other_spark, "HOME", tmp_path)
    monkeypatch.setattr(sys, "argv", ["other_spark", "4.1.1"])
    monkeypatch.setenv("CI", ci)
    assert other_spark.main() == status
    assert capsys.readouterr().err == (
        "there is no python3.13 on PATH or in pyenv, so nothing runs on Spark 4.1.1: install it, for example by "
        "`pyenv install 3.13`\n"
    )


def test_a_start_runs_only_those_tests_of_make_test_that_start_spark() -> None:
    assert other_spark.runs(slow=False, start=True) == [("spark and not slow and not rest", other_spark.STARTS_SPARK)]
    assert [marker for marker, _ in other_spark.runs(slow=False, start=False)] == ["not slow", "spark and not slow"]
    assert [marker for marker, _ in other_spark.runs(slow=True, start=False)] == ["not slow", "spark"]
