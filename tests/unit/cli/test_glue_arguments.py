"""Tests the arguments that Glue gives to the job's script."""

from fnmatch import fnmatchcase

import pytest

from processor.cli.run import OF_GLUE, glue_arguments
from processor.environment.settings.settings import setting_flags


def test_a_setting_of_the_job_is_an_argument_of_run() -> None:
    assert glue_arguments(["--settings", "job.toml", "--batch-size", "500"]) == [
        "--settings",
        "job.toml",
        "--batch-size",
        "500",
    ]


def test_arguments_of_glue_itself_are_left_out() -> None:
    given = [
        "true",
        "--job-bookmark-option",
        "job-bookmark-disable",
        "--JOB_ID",
        "j_1",
        "true",
        "--TempDir",
        "s3://b/t",
    ]
    given += [
        "--enable-metrics",
        "--enable-glue-datacatalog",
        "",
        "--extra-files",
        "s3://b/job.toml",
        "--JOB_NAME",
        "x",
    ]
    given += ["--python-virtual-env", "s3://b/e.tar.gz", "--conf", "spark.ui.enabled=false", "--table", "orders"]
    given += ["--customer-driver-env-vars", "CUSTOMER_A=1", "--mode", "x", "--endpoint", "y", "--debug", "z"]
    assert glue_arguments(given) == ["--table", "orders"]


def test_a_value_may_follow_an_equals_sign() -> None:
    assert glue_arguments(["--table=orders", "--JOB_NAME=x"]) == ["--table", "orders"]


@pytest.mark.parametrize(("given", "arguments"), [("true", ["--take-over"]), ("", ["--take-over"]), ("false", [])])
def test_a_flag_without_a_value_is_given_with_the_value_true(given: str, arguments: list[str]) -> None:
    assert glue_arguments(["--take-over", given]) == arguments


def test_a_misspelt_setting_ends_the_script_with_one_line() -> None:
    with pytest.raises(SystemExit) as error:
        glue_arguments(["--batch-sise", "5"])
    assert (
        error.value.code == "statestore run: there is no setting --batch-sise; `statestore run --help-all` lists them"
    )


def test_glue_takes_no_setting_of_the_job_but_the_endpoint() -> None:
    flags = {name.replace("_", "-") for name, _ in setting_flags()}
    assert {flag for flag in flags for pattern in OF_GLUE if fnmatchcase(flag, pattern)} == {"endpoint"}
