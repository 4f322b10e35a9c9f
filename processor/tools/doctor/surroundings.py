"""All questions that the checks ask the world. Each client is made when a check first needs it, and tries only once."""

import importlib.util
import os
import re
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of
from processor.environment.settings.open_registry import open_registry
from processor.environment.settings.resolve_secrets import resolve_kafka
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import kind_of, open_store
from processor.environment.stores.postgres_kind import PostgresProbe
from processor.environment.stores.store_kind import Effort
from processor.finding import CONNECT_SECONDS
from processor.values.record import Record
from registry.model import Binding, EpochBoundary, JobStatus, KnownLanding, RegistryState, Snapshot
from statestore.store import Store
from statestore.table import TableState

if TYPE_CHECKING:
    from processor.job.kafka.cluster_probe import ClusterProbe, ClusterState, TopicState
    from processor.job.kafka.group_states import GroupState
    from registry.repository import Registry
    from statestore.postgres.table import Durability


class RegistryQuestions(Protocol):
    """The registry, as far as the checks read it."""

    def addresses(self) -> list[tuple[str, int]]: ...
    def state(self) -> RegistryState: ...
    def snapshot(self) -> Snapshot: ...
    def binding(self) -> Binding: ...
    def jobs(self) -> tuple[JobStatus, ...]: ...
    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> Sequence[EpochBoundary]: ...
    @property
    def landings(self) -> "LandingQuestions": ...


class LandingQuestions(Protocol):
    """The landings of the registry."""

    def all(self) -> Sequence[KnownLanding]: ...


class KafkaQuestions(Protocol):
    """The brokers and the topics."""

    def cluster(self) -> "ClusterState": ...
    def topics(self, names: Sequence[str]) -> "Mapping[str, TopicState]": ...
    def last_records(self, topic: str, most: int) -> Sequence[Record]: ...
    def groups(self, prefix: str) -> "Sequence[GroupState]": ...


class Surroundings(Protocol):
    """The settings, this machine, and each part. `embedded`: the parts are those of this machine."""

    settings: Settings
    embedded: bool

    @property
    def registry(self) -> RegistryQuestions: ...
    @property
    def table(self) -> Any: ...
    @property
    def table_state(self) -> TableState | None: ...
    @property
    def registry_durability(self) -> "Durability": ...
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
        return open_store(self.settings, Effort.ONCE)

    @cached_property
    def table(self) -> Any:
        """The probe of the table's kind of store. Raises StoreError as `store` does."""
        return kind_of(self.settings.store).probe(self.settings)

    @cached_property
    def table_state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises StoreError."""
        state: TableState | None = self.table.state()
        return state

    @property
    def registry_durability(self) -> "Durability":
        """What a crash leaves of the commits of the registry. Raises StoreError."""
        return PostgresProbe(replace(self.settings, store_url="")).durability()

    @cached_property
    def plan(self) -> Plan:
        """The plan that a job would run. Raises RegistryError; PlanError, DefinitionError for definitions that do not fit."""
        return plan_of(self.registry.snapshot())

    @cached_property
    def kafka(self) -> "ClusterProbe":
        """Raises SettingError, KafkaError where no broker takes the settings."""
        from processor.job.kafka.cluster_probe import ClusterProbe

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
        from processor.environment.programs.downloads import find_java

        return find_java()

    def has_connector(self) -> bool:
        """Whether the jars of Spark's Kafka connector are on this machine. Raises PartError."""
        from processor.environment.programs.downloads import has_spark_kafka_jars

        return has_spark_kafka_jars()

    def reach(self, host: str, port: int) -> None:
        """Connects, and closes the connection. Raises OSError."""
        socket.create_connection((host, port), CONNECT_SECONDS).close()

    def close(self) -> None:
        """Closes the clients that were made."""
        for name in ("registry", "store"):
            if name in self.__dict__:
                getattr(self, name).close()
