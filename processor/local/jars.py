"""The jar sets that the parts and Spark need, fetched once by the Ivy inside PySpark; none is shipped with statestore.

Each function returns the directory that holds its set. The first call needs the network and reports to `progress`
(one line a call); later calls look at one directory. Which repository Ivy asks is Ivy's own default (Maven Central);
IVY_SETTINGS may name an Ivy settings file for another.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

from processor.errors import PartError
from processor.local.cache import Progress, once
from processor.local.ivy import Ivy, Module, NotFound

KAFKA = Module("org.apache.kafka", "kafka_2.13", "4.1.0")
KAFKA_LOG = Module("org.slf4j", "slf4j-simple", "1.7.36")  # without it the broker writes no log at all
DYNAMODB_LOCAL = Module("com.amazonaws", "DynamoDBLocal", "2.6.1")
SPARK = "org.apache.spark"


def silent(_: str) -> None:
    """Progress that nobody reads."""


def kafka_broker_jars(progress: Progress = silent) -> Path:
    """The Kafka broker: 46 jars, 43 MB."""

    def fill(directory: Path) -> None:
        progress("Kafka broker: fetching 43 MB of jars, once (about 40 s)")
        ivy = Ivy("kafka-broker", _pyspark_jars(), progress)
        ivy.fetch([KAFKA, KAFKA_LOG], directory, types="jar bundle")
        ivy.forget()

    return once(f"kafka-broker-{KAFKA.version}", fill, progress)


def dynamodb_local_jars(progress: Progress = silent) -> Path:
    """DynamoDB Local: 85 files, 51 MB, native libraries among them. Its licence allows use, not redistribution."""

    def fill(directory: Path) -> None:
        progress("DynamoDB Local: fetching 51 MB of jars, once (about 40 s)")
        ivy = Ivy("dynamodb-local", _pyspark_jars(), progress)
        ivy.fetch([DYNAMODB_LOCAL], directory)
        ivy.forget()

    return once(f"dynamodb-local-{DYNAMODB_LOCAL.version}", fill, progress)


def spark_kafka_jars(progress: Progress = silent) -> Path:
    """Spark's Kafka connector for the installed PySpark: the four jars that PySpark does not carry itself.

    Both versions are read off PySpark's own jars. Where a repository lacks the exact release, the next older patch of
    the same minor version is taken, for the token provider also the first release of the major version: 4.0.0's works
    with 4.1.1's connector.
    """
    pyspark_jars = _pyspark_jars()
    scala, spark = _spark_version(pyspark_jars)

    def fill(directory: Path) -> None:
        progress(f"Kafka connector of Spark {spark}: fetching 4 jars, once")
        ivy = Ivy(f"spark-kafka-{spark}", pyspark_jars, progress)
        older = _same_minor(spark)
        connector = _first(ivy, f"spark-sql-kafka-0-10_{scala}", older, directory)
        first_of_major = f"{spark.split('.')[0]}.0.0"
        _first(ivy, f"spark-token-provider-kafka-0-10_{scala}", [*older, first_of_major], directory)
        needed = [_needed(ivy, connector, "kafka-clients"), _needed(ivy, connector, "commons-pool2")]
        ivy.fetch(needed, directory, types="jar", transitive=False)
        ivy.forget()

    return once(f"spark-kafka-{scala}-{spark}", fill, progress)


def _pyspark_jars() -> Path:
    found = importlib.util.find_spec("pyspark")
    places = [Path(place) / "jars" for place in (found.submodule_search_locations or [])] if found else []
    for place in places:
        if any(place.glob("ivy-*.jar")):
            return place
    raise PartError(
        "Jars", "PySpark, whose Ivy fetches them, is not installed", "pip install 'statestore[spark,local]'"
    )


def _spark_version(jars: Path) -> tuple[str, str]:
    """Scala's and Spark's versions, e.g. ("2.13", "4.1.1"), from the name of spark-core's jar."""
    for jar in jars.glob("spark-core_*.jar"):
        match = re.fullmatch(r"spark-core_([\d.]+)-([\d.]+)\.jar", jar.name)
        if match:
            return match[1], match[2]
    raise PartError("Kafka connector of Spark", f"{jars} holds no released spark-core", "install a released PySpark")


def _same_minor(version: str) -> list[str]:
    """The version and the older patches of its minor version, newest first."""
    major, minor, patch = version.split(".")
    return [f"{major}.{minor}.{older}" for older in range(int(patch), -1, -1)]


def _first(ivy: Ivy, name: str, versions: list[str], directory: Path) -> Module:
    """Fetch the first of the versions that the repository holds."""
    for version in versions:
        module = Module(SPARK, name, version)
        try:
            ivy.fetch([module], directory, types="jar", transitive=False)
        except NotFound:
            continue
        return module
    raise PartError(name, f"none of {', '.join(versions)} is in the repository", "install another PySpark")


def _needed(ivy: Ivy, module: Module, name: str) -> Module:
    """A dependency of a fetched module, at the version that the module declares."""
    for entry in ElementTree.parse(ivy.description(module)).iter("dependency"):
        if entry.get("name") == name:
            return Module(entry.get("org", ""), name, entry.get("rev", ""))
    raise PartError(module.name, f"{module.version} declares no {name}", "report this with the version of PySpark")
