"""All questions that the checks ask the world. Each client is made when a check first needs it, and tries only once."""

import importlib.util
import os
import re
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Protocol

from processor.plan.plan import Plan
from processor.plan.planning import plan_of
from processor.records.record import Record
from processor.settings.open_registry import open_registry
from processor.settings.resolve_secrets import resolve_kafka
from processor.settings.settings import Settings
from registry.job_status import JobStatus
from registry.model import Binding, EpochBoundary, Snapshot
from registry.registry_state import RegistryState
from statestore.postgres.durability import Durability
from statestore.store import Store
from statestore.table_state import TableState

if TYPE_CHECKING:
    from processor.kafka.cluster_probe import ClusterProbe, ClusterState, TopicState
    from registry.repository import Registry
    from statestore.dynamodb.table_probe import TableProbe
    from statestore.postgres import PostgresStore

CONNECT_SECONDS = 3.0
"""The longest wait for a connection."""


class RegistryQuestions(Protocol):
    """The registry, as far as the checks read it."""

    def addresses(self) -> list[tuple[str, int]]: ...
    def state(self) -> RegistryState: ...
    def snapshot(self) -> Snapshot: ...
    def binding(self) -> Binding: ...
    def jobs(self) -> tuple[JobStatus, ...]: ...
    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> Sequence[EpochBoundary]: ...


class TableQuestions(Protocol):
    """The way to the table."""

    endpoint: str
    proxy: str | None

    def server_time(self, seconds: float) -> datetime | None: ...
    def credentials_source(self) -> str: ...


class KafkaQuestions(Protocol):
    """The brokers and the topics."""

    def cluster(self) -> "ClusterState": ...
    def topics(self, names: Sequence[str]) -> "Mapping[str, TopicState]": ...
    def last_records(self, topic: str, most: int) -> Sequence[Record]: ...


class Surroundings(Protocol):
    """The settings, this machine, and each part. `embedded`: the parts are those of this machine."""

    settings: Settings
    embedded: bool

    @property
    def registry(self) -> RegistryQuestions: ...
    @property
    def table(self) -> TableQuestions: ...
    @property
    def table_state(self) -> TableState | None: ...
    @property
    def registry_durability(self) -> Durability: ...
    @property
    def table_durability(self) -> Durability: ...
    @property
    def store(self) -> Store: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def kafka(self) -> KafkaQuestions: ...
    def variables(self) -> Mapping[str, str]: ...
    def now(self) -> float: ...
    def python(self) -> tuple[int, int]: ...
    def spark(self) -> str | None: ...
    def java(self) -> str: ...
    def has_connector(self) -> bool: ...
    def reach(self, host: str, port: int) -> None: ...


class RealSurroundings:
    """This machine, and the parts that the settings name."""

    def __init__(self, settings: Settings, *, embedded: bool) -> None:
        self.settings, self.embedded = settings, embedded

    @cached_property
    def registry(self) -> "Registry":
        """Raises RegistryError for a wrong address."""
        return open_registry(self.settings)

    @cached_property
    def store(self) -> Store:
        """Raises StoreError for a wrong address, or without a region."""
        from processor.spark.worker import open_dynamo, open_postgres
        from statestore.dynamodb import Patience

        if self.settings.store == "postgres":
            return open_postgres(self.settings, attempts=1)
        return open_dynamo(self.settings, Patience(attempts=1))

    @cached_property
    def table(self) -> "TableProbe":
        """The way to a table in DynamoDB. Raises StoreError as `store` does."""
        from processor.spark.worker import open_dynamo
        from statestore.dynamodb import Patience

        return open_dynamo(self.settings, Patience(attempts=1)).probe()

    @cached_property
    def table_state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises StoreError."""
        if self.settings.store == "dynamodb":
            return self.table.state()
        with closing(self._postgres(self.settings)) as store:
            return store.state()

    @property
    def registry_durability(self) -> Durability:
        """What a crash leaves of the commits of the registry. Raises StoreError."""
        with closing(self._postgres(replace(self.settings, store_url=""))) as store:
            return store.durability()

    @property
    def table_durability(self) -> Durability:
        """What a crash leaves of the commits of a table in Postgres. Raises StoreError."""
        with closing(self._postgres(self.settings)) as store:
            return store.durability()

    @staticmethod
    def _postgres(settings: Settings) -> "PostgresStore":
        from processor.spark.worker import open_postgres

        return open_postgres(settings, attempts=1)

    @cached_property
    def plan(self) -> Plan:
        """The plan that a job would run. Raises RegistryError; PlanError, DefinitionError for definitions that do not fit."""
        return plan_of(self.registry.snapshot())

    @cached_property
    def kafka(self) -> "ClusterProbe":
        """Raises SettingError, KafkaError where no broker takes the settings."""
        from processor.kafka.cluster_probe import ClusterProbe

        return ClusterProbe(self.settings.bootstrap_servers, dict(resolve_kafka(self.settings.kafka)))

    def variables(self) -> Mapping[str, str]:
        """The environment."""
        return os.environ

    def now(self) -> float:
        """This machine's clock, in seconds since 1970."""
        return time()

    def python(self) -> tuple[int, int]:
        """The version of this Python."""
        return sys.version_info[:2]

    def spark(self) -> str | None:
        """The version of the installed PySpark; None without one."""
        found = importlib.util.find_spec("pyspark")
        for place in (found.submodule_search_locations or []) if found else []:
            with suppress(OSError):
                match = re.search(r"__version__\b[^=]*= *['\"](.+?)['\"]", Path(place, "version.py").read_text())
                return match[1] if match else None
        return None

    def java(self) -> str:
        """The path of a Java that fits. Raises PartError."""
        from processor.local.java import find_java

        return find_java()

    def has_connector(self) -> bool:
        """Whether the jars of Spark's Kafka connector are on this machine. Raises PartError."""
        from processor.local.jars import has_spark_kafka_jars

        return has_spark_kafka_jars()

    def reach(self, host: str, port: int) -> None:
        """Connects, and closes the connection. Raises OSError."""
        socket.create_connection((host, port), CONNECT_SECONDS).close()

    def close(self) -> None:
        """Closes the clients that were made."""
        for name in ("registry", "store"):
            if name in self.__dict__:
                getattr(self, name).close()
