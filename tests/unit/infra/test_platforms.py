"""The platforms that Terraform accepts are those for which there are an archive and a list of jars, and that the tests run on."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from infra.package.jar_list import jar_lists
from infra.package.lock_files import PYTHONS
from processor.tools.doctor.machine import NEWEST_PYTHON, TESTED_SPARK
from tests.support.other_spark import PYTHONS as TESTED

ROOT = Path(__file__).parents[3]
EMR = ROOT / "infra" / "modules" / "emr_serverless_job"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def minor(version: str) -> str:
    return version.rpartition(".")[0]


def accepted(label: str) -> bool:
    """Whether the module of EMR Serverless takes a release. RE2 and Python read this pattern alike."""
    text = (EMR / "variables.tf").read_text(encoding="utf-8")
    (pattern,) = re.findall(r'regex\("([^"]+)", var\.release_label\)', text)
    return re.search(pattern, label) is not None


@pytest.mark.parametrize("label", ["emr-7.11.0", "emr-7.12.0", "emr-7.13.1", "emr-spark-8.0.0", "emr-spark-8.0.1"])
def test_terraform_accepts_the_releases_of_emr_whose_spark_the_tests_use(label: str) -> None:
    assert accepted(label)


@pytest.mark.parametrize(
    "label", ["emr-7.9.0", "emr-6.15.0", "emr-spark-8.0-preview", "emr-spark-8.1.0", "emr-8.0.0", ""]
)
def test_terraform_refuses_a_release_of_emr_with_another_spark(label: str) -> None:
    assert not accepted(label)


def test_terraform_gives_spark_4_the_archive_of_its_python() -> None:
    text = (EMR / "main.tf").read_text(encoding="utf-8")
    (four, three) = re.findall(r'startswith\(var\.release_label, "emr-spark-8"\) \? "([\d.]+)" : "([\d.]+)"', text)[0]
    assert (three, four) == (TESTED["3.5.7"], TESTED["4.0.0"])
    assert {three, four} <= {*PYTHONS}
    assert "-py${local.python}.tar.gz#environment" in text


def test_every_spark_of_the_tests_has_a_list_of_jars_and_an_archive_and_doctor_knows_it() -> None:
    sparks = [minor(spark) for spark in TESTED]
    assert [path.stem.removeprefix("jars-spark-") for path in jar_lists()] == sparks == list(TESTED_SPARK)
    assert set(TESTED.values()) == set(PYTHONS)


def test_the_newest_pyspark_that_pip_may_install_is_one_of_the_tests() -> None:
    wanted = [Requirement(text) for text in PROJECT["optional-dependencies"]["spark"]]
    newest = {max(spark for spark in TESTED if one.specifier.contains(spark)) for one in wanted}
    assert newest == {"3.5.7", "4.1.1"}
    after = {spark: f"{minor(spark)}.{int(spark.rpartition('.')[2]) + 1}" for spark in newest}
    assert not any(one.specifier.contains(next_) for one in wanted for next_ in (*after.values(), "4.2.0", "5.0.0"))


def test_the_newest_python_of_doctor_is_one_of_the_tests() -> None:
    assert ".".join(map(str, NEWEST_PYTHON)) == max(TESTED.values())
