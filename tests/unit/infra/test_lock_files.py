"""Tests the lock files and the lists of jars: all that an archive contains has one release and a hash."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra.package.jar_list import jar_lists, read_jars
from infra.package.lock_files import PYTHONS, lock_file

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"^(\S+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def lock(python: str) -> str:
    return lock_file(python).read_text(encoding="utf-8")


@pytest.mark.parametrize("python", PYTHONS)
def test_each_package_of_a_lock_file_has_hashes(python: str) -> None:
    text = lock(python)
    assert len(PIN.findall(text)) == len(re.findall(r"^[^ #\n]", text, re.MULTILINE)) > 15


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_file_has_every_dependency_in_a_release_that_the_project_allows(python: str) -> None:
    releases = {canonicalize_name(name): release for name, release, _ in PIN.findall(lock(python))}
    wanted = [Requirement(text) for text in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["msk"])]
    assert [str(one) for one in wanted if not one.specifier.contains(releases[canonicalize_name(one.name)])] == []


@pytest.mark.parametrize("python", PYTHONS)
def test_a_lock_file_has_neither_spark_nor_the_embedded_parts_nor_an_address(python: str) -> None:
    assert re.findall(r"pyspark|moto|pgserver|https?:|index-url|find-links", lock(python)) == []


def test_a_list_of_jars_has_the_four_jars_of_the_kafka_connector() -> None:
    names = ["spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2"]
    lists = [list(read_jars(each)) for each in jar_lists()]
    assert [[jar.module.name.split("_")[0] for jar in jars] for jars in lists] == [names, names, names]
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jars in lists for jar in jars)
