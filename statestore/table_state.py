"""The state of a table as DynamoDB describes it, for people who check a set-up. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statestore.table import ON_DEMAND, TTL, created_at, expiry_attribute, index_states, misfits, slots_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table as it is now. `misfits`: the differences of its keys and indexes from those of this release, each with its cure.
    `indexes`: the state of each. `expires_by`: the attribute by which it deletes items, None without a TTL. `recoverable`:
    whether it can be restored to a point in time, None if DynamoDB did not say. `on_demand`: the mode of its billing. `logged`:
    whether its rows outlast a crash of its server; those of an unlogged table in Postgres do not. `created`: when it was made, in
    milliseconds since 1970, None where the store does not say. `release`: the major version of its Postgres, None in
    DynamoDB."""

    status: str
    slots: int
    misfits: tuple[str, ...]
    indexes: Mapping[str, str]
    expires_by: str | None
    on_demand: bool
    protected: bool
    recoverable: bool | None
    logged: bool = True
    created: int | None = None
    release: int | None = None

    @property
    def expires(self) -> bool:
        """Whether the table deletes an item some time after the item's `ttl`."""
        return self.expires_by == TTL


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
