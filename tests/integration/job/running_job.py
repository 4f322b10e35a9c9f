"""A job that runs in a thread while a test changes the broker, and the settings of topics."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from time import monotonic, sleep
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from processor.job.run.run_job import run_job

DEADLINE = 600
"""Seconds: longer than a busy machine needs."""


@dataclass(kw_only=True)
class RunningJob:
    """The job, and how it ended: its failure, or None."""

    job: Any
    thread: threading.Thread
    failures: list[BaseException] = field(default_factory=list)

    def failure(self) -> BaseException:
        """Waits until the job has failed."""
        self.thread.join(DEADLINE)
        assert self.failures, "the job has not failed"
        return self.failures[0]


@contextmanager
def running(scene: Any, **options: Any) -> Iterator[RunningJob]:
    """A job that runs in a thread, until it fails, or the block ends."""
    with scene.opened(**options) as job:
        ended = RunningJob(job=job, thread=threading.Thread(target=lambda: _run(ended)))
        ended.thread.start()
        try:
            yield ended
        finally:
            job.stopping.set()
            ended.thread.join()


def _run(ended: RunningJob) -> None:
    try:
        run_job(ended.job, once=False)
    except BaseException as failure:
        ended.failures.append(failure)


def wait_until(condition: Callable[[], bool], running_job: Any = None) -> None:
    """Waits until the condition holds; fails at once when the job has failed."""
    until = monotonic() + DEADLINE
    while not condition():
        assert running_job is None or not running_job.failures, running_job and running_job.failures
        assert monotonic() < until
        sleep(0.2)


def configure(scene: Any, topic: str, **config: str) -> None:
    """Sets the configuration of a topic; `_` in a name means `.`."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in broker(scene).incremental_alter_configs([resource]).values():
        future.result()


def remove_records(scene: Any, topic: str, partition: int, before: int) -> None:
    """Removes the records of a partition before an offset, as retention does."""
    (removed,) = broker(scene).delete_records([TopicPartition(topic, partition, before)]).values()
    assert removed.result(DEADLINE).low_watermark == before


def broker(scene: Any) -> AdminClient:
    """A client for the scene's broker. The client lives on: its end would end its requests."""
    return _client(scene.settings.bootstrap_servers)


@cache
def _client(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


@contextmanager
def repeating(act: Callable[[int], object], first: int, pause: float) -> Iterator[None]:
    """Inside the block: does it with rising numbers from `first` on, after a pause in seconds each. Raises its failure at the
    end of the block."""
    ends = threading.Event()

    def go_on() -> None:
        numbers = count(first)
        while not ends.wait(pause):
            act(next(numbers))

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_on)
        try:
            yield
        finally:
            ends.set()
            going.result(DEADLINE)
