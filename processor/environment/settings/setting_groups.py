"""The settings by subject. A job's settings are all groups together; a function that reads one group names that group."""

from dataclasses import dataclass

from processor.environment.stores.kinds import StoreSettings, embedded_kind, names
from processor.environment.stores.places import FIRST, place_of
from processor.environment.stores.setting_field import setting

FAN_OUT_PAGE = 1_000
"""Rows above one change that one round follows up."""


@dataclass(frozen=True, kw_only=True)
class PlaceSettings(StoreSettings):
    """The table and the registry, with the settings of each kind of store."""

    __slots__ = ()

    store: str = setting(FIRST, f"where the table is: {names()}; with --embedded {embedded_kind().name} by default")
    slots: int = setting(
        20, "number of index columns GSI_n of a new registry and its table (`add-slots` raises it later)", 1, 20
    )
    registry_password: str = setting("", "reference to the password of the registry's user: env:, file: or secret:")

    @property
    def place(self) -> str:
        """The table as the registry names it: `statestore` in DynamoDB, `postgres:statestore` in Postgres."""
        return place_of(self.store, self.table)


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The run, its lease, and its waits."""

    __slots__ = ()

    job: str = setting("statestore", "name of the job: its lease and its transactional ids contain it")
    lease_seconds: int = setting(30, "a job that gives no sign of life for so long counts as dead", 5)
    outage_seconds: int = setting(
        300, "a running job waits so long for a part that does not answer (registry, store, broker), before it ends", 0
    )


@dataclass(frozen=True, kw_only=True)
class KafkaSettings:
    """The topics and their producers."""

    __slots__ = ()

    bootstrap_servers: str = setting("", "Kafka brokers, host:port[,host:port]")
    lanes: int = setting(4, "parallel publishers, each fenced by its own transactional id", 1, 1000)
    partitions: int = setting(2, "number of partitions of a topic that the job creates", 1)
    dead_letter_topic: str = setting("statestore.rejects", "the topic for dead letters", former="rejects_topic")
    transaction_seconds: int = setting(
        900, "longest Kafka transaction of a publisher; at most the broker's transaction.max.timeout.ms", 1, 2_000_000
    )


@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """The stream and its micro-batches."""

    __slots__ = ()

    checkpoint: str = setting("", "directory of Spark's checkpoint")
    spark_master: str = setting(
        "", "Spark master (empty: the choice of spark-submit or of the platform, else local[2])"
    )
    batch_size: int = setting(10_000, "most records in a micro-batch", 1)
    max_reject_share: float = setting(0.05, "the job stops at a batch with a larger share of dead letters", 0, 1)
    max_reject_free: int = setting(100, "a batch with at most so many dead letters never stops the job", 0)
    catch_up_records: int = setting(
        100_000, "a job that is further behind its topics writes rows first, and publishes each root later; 0: never", 0
    )
    catch_up_seconds: int = setting(600, "after so long it publishes all documents although it is still behind", 1)


@dataclass(frozen=True, kw_only=True)
class SettleSettings:
    """The work on rows: settling, fan-outs, walks and delete markers."""

    __slots__ = ()

    wait_seconds: float = setting(5.0, "W: longest delay that is expected of an index, or between its replicas", 0)
    settle_seconds: float = setting(5.0, "S: how long after a change the job settles it", 0)
    fan_out_page: int = setting(
        FAN_OUT_PAGE, "rows that the fan-out of one change follows in a round; later rounds follow the rest", 1
    )
    walk_page: int = setting(
        500, "stored rows that a walk (a fill or a publication) takes from a partition in a round", 1
    )
    walk_rate: int = setting(2_000, "stored rows a second that walks take, 0 for no limit", 0)
    marker_days: int = setting(
        30, "days for which a delete marker is kept; must be longer than any replay takes", 1, 100_000
    )


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """The driver's page and the metrics."""

    __slots__ = ()

    status_port: int = setting(
        0, "port of the driver's page, with /metrics for Prometheus, /status.json and /health; 0: none", 0, 65535
    )
    status_host: str = setting(
        "127.0.0.1", "address at which the driver's page answers; all who reach it may read the page"
    )
    cloudwatch_namespace: str = setting(
        "", "namespace of CloudWatch: the job prints its metrics on standard output as EMF lines; empty: none"
    )
