"""PySpark's own jars decide which modules Ivy asks for; older versions replace those that the repository does not have."""

from pathlib import Path
from threading import Event

import pytest

from processor.errors import PartError
from processor.local import downloads
from processor.local.ivy import Module, NotInRepository, every


class Repository:
    """A fake Ivy whose repository has the given versions of Spark's modules; it writes empty jars."""

    def __init__(self, versions: set[str], home: Path) -> None:
        self.versions = versions
        self.home = home

    def __call__(self, _name: str, _jars: Path, _progress: object) -> "Repository":
        return self

    def fetch(self, modules: list[Module], into: Path, *, types: str = "", transitive: bool = True) -> None:
        assert (types, transitive) == ("jar", False)
        for module in modules:
            if (
                module.organisation == downloads.SPARK_ORGANISATION
                and f"{module.name}:{module.version}" not in self.versions
            ):
                raise NotInRepository("x", "y", "z")
            (into / f"{module.name}-{module.version}.jar").touch()

    def clear(self) -> None:
        pass

    def description(self, _module: Module) -> Path:
        path = self.home / "ivy.xml"
        dependencies = (
            ("org.apache.kafka", "kafka-clients", "3.9.1"),
            ("org.apache.commons", "commons-pool2", "2.12.1"),
        )
        lines = "".join(f'<dependency org="{org}" name="{name}" rev="{rev}"/>' for org, name, rev in dependencies)
        path.write_text(f"<ivy-module><dependencies>{lines}</dependencies></ivy-module>")
        return path


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(downloads, "jars_of_pyspark", lambda: tmp_path)
    return tmp_path


def fetched(monkeypatch: pytest.MonkeyPatch, pyspark: Path, core: str, versions: set[str]) -> list[str]:
    (pyspark / core).touch()
    monkeypatch.setattr(downloads, "Ivy", Repository(versions, pyspark))
    return sorted(path.name for path in downloads.spark_kafka_jars().iterdir())


def test_the_connector_has_the_versions_of_pyspark(monkeypatch: pytest.MonkeyPatch, pyspark: Path) -> None:
    versions = {"spark-sql-kafka-0-10_2.13:4.0.0", "spark-token-provider-kafka-0-10_2.13:4.0.0"}
    assert fetched(monkeypatch, pyspark, "spark-core_2.13-4.0.0.jar", versions) == [
        "commons-pool2-2.12.1.jar",
        "kafka-clients-3.9.1.jar",
        "spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]


def test_an_older_patch_replaces_an_absent_one(monkeypatch: pytest.MonkeyPatch, pyspark: Path) -> None:
    versions = {f"spark-{part}-kafka-0-10_2.12:3.5.{patch}" for part in ("sql", "token-provider") for patch in (3, 7)}
    names = fetched(monkeypatch, pyspark, "spark-core_2.12-3.5.9.jar", versions)
    assert "spark-sql-kafka-0-10_2.12-3.5.7.jar" in names
    assert "spark-token-provider-kafka-0-10_2.12-3.5.7.jar" in names


def test_the_first_release_of_the_major_version_replaces_an_absent_token_provider(
    monkeypatch: pytest.MonkeyPatch, pyspark: Path
) -> None:
    versions = {"spark-sql-kafka-0-10_2.13:4.1.1", "spark-token-provider-kafka-0-10_2.13:4.0.0"}
    names = fetched(monkeypatch, pyspark, "spark-core_2.13-4.1.1.jar", versions)
    assert "spark-sql-kafka-0-10_2.13-4.1.1.jar" in names
    assert "spark-token-provider-kafka-0-10_2.13-4.0.0.jar" in names


def test_the_error_names_a_connector_that_the_repository_does_not_have(
    monkeypatch: pytest.MonkeyPatch, pyspark: Path
) -> None:
    with pytest.raises(PartError, match=r"none of 3\.5\.1, 3\.5\.0 is in the repository"):
        fetched(monkeypatch, pyspark, "spark-core_2.12-3.5.1.jar", set())


def test_without_pyspark_the_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(
        PartError, match=r"PySpark is not installed, and its Ivy is needed to fetch the jars\. Pip install"
    ):
        downloads.spark_kafka_jars()


def test_a_long_download_says_each_moment_how_far_it_is() -> None:
    said: list[int] = []
    enough = Event()

    def say(seconds: int) -> None:
        said.append(seconds)
        if len(said) == 3:
            enough.set()

    with every(0, say):
        assert enough.wait(300)
    assert said[:3] == [0, 0, 0]
