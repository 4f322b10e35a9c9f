"""The table: its keys, its indexes `GSI_1 .. GSI_n`, its TTL attribute, and its state. Builds requests, sends none.

The table has its indexes from the start: an empty index costs nothing, and a new join is then a registry row, never DDL. A table
that was made with fewer gets more of them by `add_index`, one after another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from statestore.store import TableDescription, Terminal

TTL = "ttl"
"""The attribute with the time after which DynamoDB deletes an item: seconds since 1970."""

ROW = "GSI_SK"
"""The range key of the indexes without an order: the entity of the item and its key (`keys.index_row`). So a query of an index
reads the rows of one entity, or one row, however many rows share the value of the slot. DynamoDB also takes PK and SK together as
range key (since November 2025), without this copy, but DynamoDB Local 2.6.1 does not."""

FIRST_ORDERED = 17
"""From this slot on, each index has a range key of its own, `GSI_SK_17`. So the rows of a value may have an order there. In a
slot that holds no order the item has the same name as in the other indexes."""

SHOWN = ("_f", "_indexed", "_indexed_v", "_deleted")
"""The attributes that an index shows of an item, with its keys and the slot. DynamoDB fixes them when it makes the index, and
takes 100 names for all indexes together: four for each of 20."""

MAX_SLOTS = 20
"""The most indexes that DynamoDB gives a table by default."""

ON_DEMAND = "PAY_PER_REQUEST"
"""DynamoDB's name of billing by request."""

_PREFIX = "GSI_"

_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_KEYS = [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUsage:
    """What a server of its own counts of the table. `rows`: about how many there are; `inserted`, `updated`, `deleted`,
    `fetched`: rows since `since`."""

    rows: int
    inserted: int
    updated: int
    deleted: int
    fetched: int
    bytes: int
    """On disk, without the indexes."""
    index_bytes: int
    read_bytes: int
    """Of blocks that were not in the server's memory, since `since`."""
    since: float | None
    """In seconds since 1970; None: since the server has the table."""
    calls: int | None
    """The statements, None where the server does not count them."""
    seconds: float | None
    """The time of the statements on the server: CPU, and waits for the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table as it is now."""

    status: str
    slots: int
    misfits: tuple[str, ...]
    """The differences of its keys and indexes from those of this release, each with its cure."""
    indexes: Mapping[str, str]
    """The state of each."""
    expires_by: str | None
    """The attribute whose time deletes an item, None without a TTL."""
    on_demand: bool
    """The mode of its billing."""
    protected: bool
    recoverable: bool | None
    """Whether it can be restored to a point in time, None if DynamoDB did not say."""
    logged: bool = True
    """Whether its rows outlast a crash of its server; those of an unlogged table in Postgres do not."""
    created: int | None = None
    """When it was made, in milliseconds since 1970, None where the store does not say."""
    release: int | None = None
    """The major version of its Postgres, None in DynamoDB."""

    @property
    def expires(self) -> bool:
        """Whether the table deletes an item some time after the item's `ttl`."""
        return self.expires_by == TTL


def shown(item: Mapping[str, Any], slot: str) -> dict[str, Any]:
    """What the index `slot` shows of an item."""
    return {name: item[name] for name in _shown_names(slot) if name in item}


@lru_cache(maxsize=MAX_SLOTS)
def _shown_names(slot: str) -> tuple[str, ...]:
    return ("PK", "SK", slot, range_name(slot), *SHOWN)


@lru_cache(maxsize=64)
def range_name(slot: str) -> str:
    """The attribute that is the range key of the index `GSI_k`."""
    number = slot.removeprefix(_PREFIX)
    return f"{ROW}_{number}" if number.isdecimal() and int(number) >= FIRST_ORDERED else ROW


def slot_names(slots: int) -> list[str]:
    """`GSI_1 .. GSI_n`: each names an attribute and the index over it. Raises Terminal unless n is 1 to 20."""
    if not 1 <= slots <= MAX_SLOTS:
        raise Terminal(f"a table has 1 to {MAX_SLOTS} slots, not {slots}: give a number in that range")
    return [f"{_PREFIX}{k}" for k in range(1, slots + 1)]


def table_name(name: str) -> str:
    """The name itself. Raises Terminal for a name that DynamoDB refuses."""
    if not _TABLE_NAME.fullmatch(name):
        raise Terminal(f"{name!r} cannot name a table: give 3 to 255 letters, digits, '_', '-' or '.'")
    return name


def create_table(table: str, slots: int) -> dict[str, Any]:
    """The CreateTable request: billing on demand, every index with the attributes of `SHOWN`."""
    names = slot_names(slots)
    return {
        "TableName": table_name(table),
        "BillingMode": ON_DEMAND,
        "KeySchema": _KEYS,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"}
            for name in ["PK", "SK", *dict.fromkeys(map(range_name, names)), *names]
        ],
        "GlobalSecondaryIndexes": [_index(name) for name in names],
    }


def add_index(table: str, name: str) -> dict[str, Any]:
    """The UpdateTable request for one more index. DynamoDB makes one at a time, and fills it from the stored items."""
    return {
        "TableName": table,
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in (name, range_name(name))],
        "GlobalSecondaryIndexUpdates": [{"Create": _index(name)}],
    }


def index_states(description: Mapping[str, Any]) -> dict[str, str]:
    """The state of each index of a table, such as `CREATING` and `ACTIVE`, from DescribeTable's `Table`."""
    return {one["IndexName"]: one["IndexStatus"] for one in description.get("GlobalSecondaryIndexes", ())}


def enable_ttl(table: str) -> dict[str, Any]:
    """The UpdateTimeToLive request."""
    return {"TableName": table, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": TTL}}


def expiry_attribute(ttl: Mapping[str, Any]) -> str | None:
    """The TTL attribute of a table; None where it has none; from DescribeTimeToLive's `TimeToLiveDescription`."""
    return ttl.get("AttributeName") if ttl["TimeToLiveStatus"] in ("ENABLED", "ENABLING") else None


def slots_of(description: Mapping[str, Any]) -> int:
    """The number of slots of a table, from DescribeTable's `Table`: `GSI_1` up to the first that is missing."""
    found = {index["IndexName"] for index in description.get("GlobalSecondaryIndexes", ())}
    slots = 0
    while f"{_PREFIX}{slots + 1}" in found:
        slots += 1
    return slots


def created_at(description: Mapping[str, Any]) -> int:
    """When a table was made, in milliseconds since 1970, from DescribeTable's `Table`."""
    made: datetime = description["CreationDateTime"]
    return round(made.timestamp() * 1000)


def table_description(description: Mapping[str, Any], ttl: Mapping[str, Any]) -> TableDescription:
    """The plain value, from DescribeTable's `Table` and DescribeTimeToLive's `TimeToLiveDescription`."""
    return TableDescription(
        name=description["TableName"],
        slots=slots_of(description),
        keys=tuple(key["AttributeName"] for key in _schema(description)),
        expires=expiry_attribute(ttl) == TTL,
        items=description.get("ItemCount") or None,
    )


def table_state(
    description: Mapping[str, Any], ttl: Mapping[str, Any], backups: Mapping[str, Any] | None
) -> TableState:
    """The plain value, from DescribeTable's `Table`, DescribeTimeToLive's `TimeToLiveDescription`, and DescribeContinuousBackups'
    `ContinuousBackupsDescription`."""
    recovery = None if backups is None else backups.get("PointInTimeRecoveryDescription", {})
    return TableState(
        status=description["TableStatus"],
        slots=slots_of(description),
        misfits=tuple(misfits(description, slots=0)),
        indexes=index_states(description),
        expires_by=expiry_attribute(ttl),
        on_demand=description.get("BillingModeSummary", {}).get("BillingMode") == ON_DEMAND,
        protected=bool(description.get("DeletionProtectionEnabled")),
        recoverable=None if recovery is None else recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
        created=created_at(description),
    )


def misfits(description: Mapping[str, Any], slots: int) -> list[str]:
    """The differences of an existing table from one with these slots, each with what to do; empty when the table fits."""
    wrong = []
    if _schema(description) != _KEYS:
        wrong.append("its key is not PK (hash), SK (range): give another table name")
    kinds = {known["AttributeName"]: known["AttributeType"] for known in description["AttributeDefinitions"]}
    wrong += [
        f"{name} is of type {kind}, not S: give another table name" for name, kind in kinds.items() if kind != "S"
    ]
    if (found := slots_of(description)) < slots:
        wrong.append(too_few(found, slots))
    for index in description.get("GlobalSecondaryIndexes", ()):
        name = index["IndexName"]
        fits = {"KeySchema": _schema(index), "Projection": _projection(index["Projection"])}
        if name.startswith(_PREFIX) and {"IndexName": name, **fits} != _index(name):
            wrong.append(
                f"index {name} is not {name} (hash), {range_name(name)} (range), projection {', '.join(SHOWN)}: delete it and "
                "create it again"
            )
    return wrong


def too_few(found: int, slots: int) -> str:
    """The misfit of a table with fewer slots than the registry. A table with more of them fits."""
    return f"it has {found} slots, not {slots}: `statestore add-slots {slots}` adds the missing indexes"


def _schema(described: Mapping[str, Any]) -> list[dict[str, str]]:
    """A key schema, hash first, without the other fields of the answer."""
    keys = [{"AttributeName": key["AttributeName"], "KeyType": key["KeyType"]} for key in described["KeySchema"]]
    return sorted(keys, key=lambda key: key["KeyType"])


def _projection(described: Mapping[str, Any]) -> dict[str, Any]:
    """A projection, its attributes in the order of `SHOWN`."""
    names = described.get("NonKeyAttributes", [])
    known = [name for name in SHOWN if name in names]
    return {"ProjectionType": described["ProjectionType"], "NonKeyAttributes": known + sorted({*names} - {*known})}


def _index(name: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": name, "KeyType": "HASH"},
            {"AttributeName": range_name(name), "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": [*SHOWN]},
    }
