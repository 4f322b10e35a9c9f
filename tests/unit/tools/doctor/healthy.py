"""A set-up without a fault, as the checks see it. A test breaks one part of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.identity import write_identity
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import ClusterState, GroupState, TopicState
from processor.job.landing.landing import landing_note
from processor.language.definitions.load import load, read_directory
from processor.values.record import Record
from registry.model import Binding, EpochBoundary, JobStatus, KnownLanding, RegistryState, Snapshot
from statestore.memory import MemoryStore
from statestore.postgres.table import Durability
from statestore.table import TableState, slot_names

NOW = 1_800_000_000.0
TIME = datetime.fromtimestamp(NOW, UTC)
DAY = "86400000"
FOREVER = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": "8388608"}
COMPACTED = {"cleanup.policy": "compact", "delete.retention.ms": f"{7 * int(DAY)}", "max.message.bytes": "8388608"}
RIGHTS = frozenset({"READ", "WRITE", "DESCRIBE"})
TABLE = TableState(
    status="ACTIVE",
    slots=20,
    misfits=(),
    indexes=dict.fromkeys(slot_names(20), "ACTIVE"),
    expires_by="ttl",
    on_demand=True,
    protected=True,
    recoverable=True,
)
DURABLE = Durability(fsync=True, full_page_writes=True, waits="on")
REGISTRY = RegistryState(now=NOW, user="etl", tls=True, exists=True, release=18, revision="0001")
PLAN = plan_alone(load(read_directory(Path(__file__).parents[4] / "examples" / "github")), slots=20)


LANDING = GroupState(
    "statestore-land-user_profile-f00", 1, "user_profile", 7, (landing_note("user_profile", "table p", 1.0),)
)
KNOWN_LANDING = KnownLanding("f00", "user_profile", "user_profile", "table p", TIME, TIME)


def fail(error: Exception) -> Callable[..., Any]:
    """A question that ends in an error."""

    def ask(*_: object, **__: object) -> Any:
        raise error

    return ask


@dataclass
class RegistryDouble:
    """The registry's answers."""

    found: RegistryState = REGISTRY
    hosts: Sequence[tuple[str, int]] = (("registry.example.org", 5432),)
    slots: int = 20
    bound: Binding = field(default_factory=lambda: Binding(identity="id", job="statestore", table="statestore"))
    leases: tuple[JobStatus, ...] = ()
    boundaries: Sequence[EpochBoundary] = ()
    known_landings: Sequence[KnownLanding] = (KNOWN_LANDING,)

    @property
    def landings(self) -> "RegistryDouble":
        return self

    def all(self) -> Sequence[KnownLanding]:
        return self.known_landings

    def addresses(self) -> list[tuple[str, int]]:
        return list(self.hosts)

    def state(self) -> RegistryState:
        return self.found

    def snapshot(self) -> Snapshot:
        return Snapshot(version=1, slots=self.slots, entities=(), products=(), assignments=(), joins=())

    def binding(self) -> Binding:
        return self.bound

    def jobs(self) -> tuple[JobStatus, ...]:
        return self.leases

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> Sequence[EpochBoundary]:
        return self.boundaries


@dataclass
class TableDouble:
    """The answers on the way to the table."""

    endpoint: str = "https://dynamodb.example.org"
    proxy: str | None = None
    time: datetime | None = TIME
    source: str = "iam-role"
    durable: Durability = DURABLE

    def server_time(self, seconds: float) -> datetime | None:
        return self.time

    def credentials_source(self) -> str:
        return self.source

    def durability(self) -> Durability:
        return self.durable


def healthy_topics() -> dict[str, TopicState]:
    """The topics of the plan, and the one for dead letters."""
    configs = {entity.entity.topic: COMPACTED for entity in PLAN.entities.values()}
    configs |= {product.product.topic: COMPACTED for product in PLAN.products.values()}
    configs |= {"statestore.rejects": FOREVER}
    return {name: TopicState(f"id of {name}", 2, config, RIGHTS) for name, config in configs.items()}


@dataclass
class KafkaDouble:
    """The cluster's answers."""

    brokers: tuple[tuple[str, int], ...] = (("b1.example.org", 9092), ("b2.example.org", 9092))
    config: dict[str, str] = field(default_factory=lambda: {"transaction.max.timeout.ms": "900000"})
    found: dict[str, TopicState] = field(default_factory=healthy_topics)
    records: dict[str, list[Record]] = field(default_factory=dict)
    landings: list[GroupState] = field(default_factory=lambda: [LANDING])

    def last_records(self, topic: str, most: int) -> list[Record]:
        return self.records.get(topic, [])

    def groups(self, prefix: str) -> list[GroupState]:
        return self.landings

    def cluster(self) -> ClusterState:
        return ClusterState(self.brokers, self.config)

    def topics(self, names: Sequence[str]) -> dict[str, TopicState]:
        return {name: self.found[name] for name in names if name in self.found}

    def configure(self, topic: str, **config: str) -> None:
        """Changes settings of a topic; `_` in place of `.`."""
        changed = {name.replace("_", "."): value for name, value in config.items()}
        self.found[topic] = self.found[topic]._replace(config={**self.found[topic].config, **changed})


def healthy_store() -> MemoryStore:
    """A table with the identity of the registry."""
    store = MemoryStore(20)
    store.write(write_identity("id"))
    return store


@dataclass
class Healthy:
    """The surroundings. `closed`: addresses without a connection, and the error of each."""

    settings: Settings
    embedded: bool = False
    definitions: Any = None
    registry: RegistryDouble = field(default_factory=RegistryDouble)
    table: TableDouble = field(default_factory=TableDouble)
    table_state: TableState | None = TABLE
    registry_durability: Durability = DURABLE
    store: Any = field(default_factory=healthy_store)
    plan: Plan = PLAN
    kafka: KafkaDouble = field(default_factory=KafkaDouble)
    variables: dict[str, str] = field(default_factory=lambda: {"STATESTORE_TABLE": "t", "STATESTORE_MY_SECRET": "s"})
    clock: float = NOW
    python_version: tuple[int, int] = (3, 11)
    spark_version: str | None = "3.5.7"
    java_path: str = "java"
    has_connector: bool = True
    closed: dict[str, OSError] = field(default_factory=dict)

    def ask(self, question: Callable[[], Any]) -> Any:
        """The answer has the name of the question: a value, or a function that raises the error of the question."""
        answer = getattr(self, question.__name__)
        return answer() if callable(answer) else answer

    def now(self) -> float:
        return self.clock

    def reach(self, host: str, port: int) -> None:
        if host in self.closed:
            raise self.closed[host]

    def close(self) -> None:
        pass
