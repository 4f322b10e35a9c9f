"""The Spark side of reading: a session, the stream of Kafka records, and what a micro-batch covers.

What a batch covers is read from Spark's own offset log in the checkpoint, since it says where each partition of the batch
starts, also when the batch is tried again: rule 3 needs exactly that.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from processor.model.epochs import Partition
from processor.settings import Settings

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set in a process that spark-submit, Glue or EMR started."""
LOG4J = Path(__file__).with_name("log4j2-local.properties")

Range = tuple[int, int]
"""Offsets of a partition: from, and up to but not including."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What a micro-batch covers: a range of offsets for each partition that has records in it."""

    ranges: Mapping[Partition, Range]

    def slices(self, size: int) -> Iterator["Extent"]:
        """The extent in pieces of at most `size` offsets, each partition's in order. (Spark's limit counts a partition's share
        up to one record, so a batch may hold more than it allows.)"""
        ranges: dict[Partition, Range] = {}
        room = size
        for partition, (start, end) in sorted(self.ranges.items()):
            while start < end:
                upto = min(end, start + room)
                ranges[partition] = (start, upto)
                room -= upto - start
                start = upto
                if room == 0:
                    yield Extent(ranges=ranges)
                    ranges, room = {}, size
        if ranges:
            yield Extent(ranges=ranges)


def is_local(settings: Settings) -> bool:
    """Whether the job starts a Spark of its own on this machine: as told, or where no spark-submit started this process."""
    return settings.spark_master.startswith("local") or not (settings.spark_master or SUBMITTED in os.environ)


def spark_session(settings: Settings, jars: Sequence[Path] = ()) -> SparkSession:
    """A session of the platform's Spark, or a local one with these jars."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(settings.job)
    builder = builder.config("spark.speculation", "false").config("spark.sql.session.timeZone", "UTC")
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
        }
        for name, value in local.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()


def read_stream(spark: SparkSession, settings: Settings, topics: Sequence[str]) -> DataFrame:
    """The records of the topics, from the earliest on."""
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap_servers)
        .option("subscribe", ",".join(sorted(topics)))
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", settings.batch_size)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
    )
    for name, value in settings.kafka:
        reader = reader.option(f"kafka.{name}", value)
    columns = ("topic", "partition", "offset", expr("unix_millis(timestamp) as timestamp"), "key", "value", "headers")
    return reader.load().select(*columns)


def extent(spark: SparkSession, checkpoint: str, batch: int) -> Extent:
    """What Spark planned for a micro-batch."""
    ends = _offsets(spark, checkpoint, f"offsets/{batch}")
    starts = _offsets(spark, checkpoint, f"offsets/{batch - 1}" if batch else "sources/0/0")
    ranges = {partition: (starts.get(partition, 0), end) for partition, end in ends.items()}
    return Extent(ranges={partition: r for partition, r in ranges.items() if r[0] < r[1]})


def of_extent(batch: DataFrame, piece: Extent) -> DataFrame:
    """The records of a batch that belong to a piece of it."""
    conditions = [
        f"(topic = '{topic}' and partition = {partition} and offset >= {start} and offset < {end})"
        for (topic, partition), (start, end) in piece.ranges.items()
    ]
    return batch.where(" or ".join(conditions))


def _offsets(spark: SparkSession, checkpoint: str, file: str) -> dict[Partition, int]:
    """The offsets that a file of the checkpoint holds: a batch's end (`offsets/N`), or the stream's start (`sources/0/0`)."""
    lines = _lines(spark, f"{checkpoint.rstrip('/')}/{file}")
    topics = json.loads(lines[-1])
    return {(topic, int(partition)): offset for topic, ends in topics.items() for partition, offset in ends.items()}


def _lines(spark: SparkSession, path: str) -> list[str]:
    """A text file of the checkpoint, which may be on any file system that Hadoop knows."""
    jvm: Any = spark._jvm
    where = jvm.org.apache.hadoop.fs.Path(path)
    stream = where.getFileSystem(spark._jsc.hadoopConfiguration()).open(where)
    try:
        text: str = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    return text.splitlines()
