"""The sets of jars that the embedded parts and Spark need. The Ivy inside PySpark fetches each once; statestore ships none.

Each function returns the directory of its set. The first call needs the network and reports each step to `progress` as one
line. Later calls look at one directory only. Ivy asks its own default repository (Maven Central); IVY_SETTINGS may name an
Ivy settings file with another one.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

from processor.errors import PartError
from processor.local.cache import ShowProgress, fetch_once, kept_set
from processor.local.ivy import Ivy, Module, NotInRepository

KAFKA_MODULE = Module("org.apache.kafka", "kafka_2.13", "4.1.0")
KAFKA_LOG_MODULE = Module("org.slf4j", "slf4j-simple", "1.7.36")  # without this module the broker writes no log
DYNAMODB_LOCAL_MODULE = Module("com.amazonaws", "DynamoDBLocal", "2.6.1")
OPENSEARCH_MODULES = [
    Module("org.opensearch", "opensearch", "2.19.0"),
    Module("org.opensearch.plugin", "transport-netty4-client", "2.19.0"),
    Module(
        "org.apache.logging.log4j", "log4j-core", "2.21.0"
    ),  # the version of the log4j-api that the first module brings
]
SPARK_ORGANISATION = "org.apache.spark"


def silent(_: str) -> None:
    """A `ShowProgress` that shows nothing."""


def kafka_broker_jars(progress: ShowProgress = silent) -> Path:
    """The jars of the Kafka broker: 46 jars, 43 MB."""

    def fill(directory: Path) -> None:
        progress("Kafka broker: fetching 43 MB of jars, once (about 40 s)")
        ivy = Ivy("kafka-broker", jars_of_pyspark(), progress)
        ivy.fetch([KAFKA_MODULE, KAFKA_LOG_MODULE], directory, types="jar bundle")
        ivy.clear()

    return fetch_once(f"kafka-broker-{KAFKA_MODULE.version}", fill, progress)


def dynamodb_local_jars(progress: ShowProgress = silent) -> Path:
    """The files of DynamoDB Local: 85 files, 51 MB, with native libraries. Its licence allows use, not redistribution."""

    def fill(directory: Path) -> None:
        progress("DynamoDB Local: fetching 51 MB of jars, once (about 40 s)")
        ivy = Ivy("dynamodb-local", jars_of_pyspark(), progress)
        ivy.fetch([DYNAMODB_LOCAL_MODULE], directory)
        ivy.clear()

    return fetch_once(f"dynamodb-local-{DYNAMODB_LOCAL_MODULE.version}", fill, progress)


def opensearch_jars(progress: ShowProgress = silent) -> Path:
    """The jars of OpenSearch: 53 jars, 44 MB."""

    def fill(directory: Path) -> None:
        progress("OpenSearch: fetching 44 MB of jars, once (about 40 s)")
        ivy = Ivy("opensearch", jars_of_pyspark(), progress)
        ivy.fetch(OPENSEARCH_MODULES, directory, types="jar bundle")
        ivy.clear()

    return fetch_once(f"opensearch-{OPENSEARCH_MODULES[0].version}", fill, progress)


def spark_kafka_jars(progress: ShowProgress = silent) -> Path:
    """The Kafka connector of the installed PySpark: the four jars that PySpark does not contain.

    The names of PySpark's own jars give the versions of Scala and of Spark. If the repository does not have the exact
    release, this function takes the next older patch of the same minor version. For the token provider it also tries the
    first release of the major version: the one of 4.0.0 works with the connector of 4.1.1.
    """
    pyspark_jars = jars_of_pyspark()
    scala, spark = _spark_version(pyspark_jars)

    def fill(directory: Path) -> None:
        progress(f"Kafka connector of Spark {spark}: fetching 4 jars, once")
        ivy = Ivy(f"spark-kafka-{spark}", pyspark_jars, progress)
        older = _same_minor(spark)
        connector = _fetch_first(ivy, f"spark-sql-kafka-0-10_{scala}", older, directory)
        first_of_major = f"{spark.split('.')[0]}.0.0"
        _fetch_first(ivy, f"spark-token-provider-kafka-0-10_{scala}", [*older, first_of_major], directory)
        needed = [_dependency(ivy, connector, "kafka-clients"), _dependency(ivy, connector, "commons-pool2")]
        ivy.fetch(needed, directory, types="jar", transitive=False)
        ivy.clear()

    return fetch_once(_spark_kafka_set(scala, spark), fill, progress)


def has_spark_kafka_jars() -> bool:
    """Whether the set of `spark_kafka_jars` is here already. Fetches nothing. Raises PartError without PySpark."""
    return kept_set(_spark_kafka_set(*_spark_version(jars_of_pyspark()))) is not None


def _spark_kafka_set(scala: str, spark: str) -> str:
    return f"spark-kafka-{scala}-{spark}"


def jars_of_pyspark() -> Path:
    """The jars of the installed PySpark. Raises PartError if it is not installed."""
    found = importlib.util.find_spec("pyspark")
    places = [Path(place) / "jars" for place in (found.submodule_search_locations or [])] if found else []
    for place in places:
        if any(place.glob("ivy-*.jar")):
            return place
    raise PartError(
        "Jars",
        "PySpark is not installed, and its Ivy is needed to fetch the jars",
        "pip install 'statestore[spark,local]'",
    )


def _spark_version(jars: Path) -> tuple[str, str]:
    """The versions of Scala and of Spark, e.g. ("2.13", "4.1.1"), from the name of the jar of spark-core."""
    for jar in jars.glob("spark-core_*.jar"):
        match = re.fullmatch(r"spark-core_([\d.]+)-([\d.]+)\.jar", jar.name)
        if match:
            return match[1], match[2]
    raise PartError("Kafka connector of Spark", f"{jars} has no released spark-core", "install a released PySpark")


def _same_minor(version: str) -> list[str]:
    """The version and the older patches of its minor version, newest first."""
    major, minor, patch = version.split(".")
    return [f"{major}.{minor}.{older}" for older in range(int(patch), -1, -1)]


def _fetch_first(ivy: Ivy, name: str, versions: list[str], directory: Path) -> Module:
    """Fetch the first of the versions that the repository has. Raises PartError if the repository has none."""
    for version in versions:
        module = Module(SPARK_ORGANISATION, name, version)
        try:
            ivy.fetch([module], directory, types="jar", transitive=False)
        except NotInRepository:
            continue
        return module
    raise PartError(name, f"none of {', '.join(versions)} is in the repository", "install another PySpark")


def _dependency(ivy: Ivy, module: Module, name: str) -> Module:
    """A dependency of a fetched module, with the version that the module declares."""
    for entry in ElementTree.parse(ivy.description(module)).iter("dependency"):
        if entry.get("name") == name:
            return Module(entry.get("org", ""), name, entry.get("rev", ""))
    raise PartError(module.name, f"{module.version} declares no {name}", "report this with the version of PySpark")
