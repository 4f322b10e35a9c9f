"""The jars that a Spark session of this machine needs; a session of Glue or EMR has its own."""

from pathlib import Path

from processor.environment.programs.downloads import ShowProgress, find_java, spark_kafka_jars
from processor.environment.settings.settings import Settings
from processor.job.run.source import is_local


def session_jars(settings: Settings, progress: ShowProgress, *, embedded: bool) -> list[Path]:
    """The jars of the connector to Kafka; the first call fetches them. None, unless the session runs on this machine. Raises
    PartError without Java."""
    if not embedded and not is_local(settings):
        return []
    find_java()  # Spark's own message of a missing Java names no cure
    return sorted(spark_kafka_jars(progress).glob("*.jar"))
