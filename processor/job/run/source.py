"""The Spark side of reading: a session with its jars, the stream of Kafka records, and the offsets of a micro-batch.

The job reads the offsets of a batch from Spark's own offset log in the checkpoint. The log says where each partition of
the batch starts, also when Spark tries the batch again. Rule 3 needs exactly that.
"""

import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from pyspark import __version__ as PYSPARK
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from processor.engine.protocol.epochs import Partition
from processor.environment.programs.downloads import ShowProgress, find_java, spark_kafka_jars
from processor.environment.settings.kafka import SPARK_REDACTION, for_java
from processor.environment.settings.settings import Settings
from processor.job.run.checkpoint import START, Checkpoint

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set in a process that spark-submit, Glue or EMR started."""
DAEMON = "processor.job.run.worker_daemon"
CHECKPOINTING = "checkpointing." if tuple(map(int, PYSPARK.split(".")[:2])) >= (4, 1) else ""
FILE_MANAGER = f"org.apache.spark.sql.execution.streaming.{CHECKPOINTING}FileSystemBasedCheckpointFileManager"
"""Writes the files of a checkpoint. On a local disk Spark's own choice starts 16 processes a batch, to look for links."""
POLLING_DELAY = "50ms"
"""Between two questions of an idle job to the broker. With Spark's 10 ms these questions take a fifth of a core."""
FETCH_WAIT = "10"
"""Milliseconds. Spark asks for the ends of a partition after it has fetched its records. The consumer's next fetch, which finds
nothing, is before it on the same connection: with Kafka's 500 ms each small batch takes half a second longer."""
LOG4J = Path(__file__).with_name("log4j2-local.properties")

Range = tuple[int, int]
"""Offsets of a partition: from, and up to but not including."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRanges:
    """The offsets of a micro-batch: a range for each partition that has records in it."""

    ranges: Mapping[Partition, Range]

    @property
    def starts(self) -> dict[Partition, int]:
        """The first offset of each partition."""
        return {partition: start for partition, (start, _) in self.ranges.items()}

    @property
    def ends(self) -> dict[Partition, int]:
        """The offset after the last one of each partition."""
        return {partition: end for partition, (_, end) in self.ranges.items()}

    @property
    def size(self) -> int:
        """How many offsets, also of markers and of records that aborted or that compaction removed."""
        return sum(end - start for start, end in self.ranges.values())

    def slices(self, size: int) -> Iterator["OffsetRanges"]:
        """The ranges in pieces of at most `size` offsets, each partition's in order. (Spark
        rounds a partition's share up to one record, so a batch may hold more than the limit.)"""
        ranges: dict[Partition, Range] = {}
        room = size
        for partition, (start, end) in sorted(self.ranges.items()):
            while start < end:
                upto = min(end, start + room)
                ranges[partition] = (start, upto)
                room -= upto - start
                start = upto
                if room == 0:
                    yield OffsetRanges(ranges=ranges)
                    ranges, room = {}, size
        if ranges:
            yield OffsetRanges(ranges=ranges)


def is_local(settings: Settings) -> bool:
    """Whether the job starts a Spark of its own on this machine: by its settings, or because no spark-submit started
    this process."""
    return settings.spark_master.startswith("local") or not (settings.spark_master or SUBMITTED in os.environ)


def spark_session(settings: Settings, jars: Sequence[Path] = ()) -> SparkSession:
    """A session of the platform's Spark, or a local one with these jars."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(settings.job)
    builder = builder.config("spark.speculation", "false").config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.streaming.pollingDelay", POLLING_DELAY)
    for name, value in SPARK_REDACTION.items():
        builder = builder.config(name, value)
    if settings.spark_master:
        builder = builder.master(settings.spark_master)
    if is_local(settings):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        local = {
            "spark.master": settings.spark_master or "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-Dlog4j2.configurationFile={LOG4J}"',
            "spark.ui.showConsoleProgress": "false",
            "spark.jars": ",".join(str(jar) for jar in jars),
            "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        }
        for name, value in local.items():
            builder = builder.config(name, value)
    if _daemon_finds_the_job():
        builder = builder.config("spark.python.daemon.module", DAEMON)
    with _kept_interrupt():
        session = builder.getOrCreate()
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None  # else it prints a traceback when SIGTERM ends the JVM before this process
    return session


def _daemon_finds_the_job() -> bool:
    """Whether PySpark's daemon can import this package: it runs the Python of this process, or that of a packed environment,
    which `spark.archives` puts below the directory of each executor. Of `--py-files` the daemon sees nothing, only the tasks."""
    return SUBMITTED not in os.environ or os.environ["PYSPARK_PYTHON"].startswith("./")


@contextmanager
def _kept_interrupt() -> Iterator[None]:
    """Keeps this program's handler of Ctrl-C: in the main thread, PySpark replaces it with its own, which cancels all tasks."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, before)


def read_stream(spark: SparkSession, settings: Settings, topics: Collection[str], most: int | None) -> DataFrame:
    """The committed records of the topics, from the earliest on. `most`: of a batch; None: the first batch has all of them.
    `isolation.level` in [kafka] may ask for uncommitted ones too. Offsets have gaps: the markers of transactions, and records
    that aborted or that compaction removed."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap_servers)
        .option("subscribe", ",".join(sorted(topics)))
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")  # Kafka's own default hands out aborted records
        .option("kafka.fetch.max.wait.ms", FETCH_WAIT)
    )
    if most is not None:
        reader = reader.option("maxOffsetsPerTrigger", most)
    for name, value in for_java(dict(settings.kafka)).items():
        reader = reader.option(f"kafka.{name}", value)
    columns = ("topic", "partition", "offset", expr("unix_millis(timestamp) as timestamp"), "key", "value", "headers")
    return reader.load().select(*columns)


def offset_ranges(spark: SparkSession, checkpoint: str, batch: int) -> OffsetRanges:
    """The offsets that Spark planned for a micro-batch."""
    files = Checkpoint(spark=spark, path=checkpoint)
    ends = files.offsets(f"offsets/{batch}")
    starts = files.offsets(f"offsets/{batch - 1}" if batch else START)
    # A topic that appears while the job runs begins at 0; Spark fails the batch otherwise. (See `prepare_checkpoint`.)
    ranges = {partition: (starts.get(partition, 0), end) for partition, end in ends.items()}
    return OffsetRanges(ranges={partition: r for partition, r in ranges.items() if r[0] < r[1]})


def in_ranges(batch: DataFrame, piece: OffsetRanges) -> DataFrame:
    """The records of a batch that belong to a piece of it."""
    conditions = [
        f"(topic = '{topic}' and partition = {partition} and offset >= {start} and offset < {end})"
        for (topic, partition), (start, end) in piece.ranges.items()
    ]
    return batch.where(" or ".join(conditions))


def session_jars(settings: Settings, progress: ShowProgress, *, embedded: bool) -> list[Path]:
    """The jars of the connector to Kafka; the first call fetches them. None, unless the session runs on this machine. Raises
    PartError without Java."""
    if not embedded and not is_local(settings):
        return []
    find_java()  # Spark's own message of a missing Java names no cure
    return sorted(spark_kafka_jars(progress).glob("*.jar"))
