"""The state of a table, from the answers of DynamoDB."""

from datetime import UTC, datetime
from typing import Any

import pytest

from statestore.table import TableState, create_table, enable_ttl, table_state

TTL = {"TimeToLiveStatus": "ENABLED", **enable_ttl("state")["TimeToLiveSpecification"]}
MADE = datetime.fromtimestamp(1_795_000_000.123, UTC)
BACKUPS = {"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}}


def described(**more: Any) -> dict[str, Any]:
    """DescribeTable's answer for a table of two slots."""
    made = create_table("state", 2)
    indexes = [{**index, "IndexStatus": "ACTIVE"} for index in made["GlobalSecondaryIndexes"]]
    billing = {"BillingModeSummary": {"BillingMode": made["BillingMode"]}}
    return {
        **made,
        **billing,
        "TableStatus": "ACTIVE",
        "CreationDateTime": MADE,
        "GlobalSecondaryIndexes": indexes,
        **more,
    }


def test_a_table_of_this_release_has_no_misfit() -> None:
    assert table_state(described(DeletionProtectionEnabled=True), TTL, BACKUPS) == TableState(
        status="ACTIVE",
        slots=2,
        misfits=(),
        indexes={"GSI_1": "ACTIVE", "GSI_2": "ACTIVE"},
        expires_by="ttl",
        on_demand=True,
        protected=True,
        recoverable=True,
        created=1_795_000_000_123,
    )


@pytest.mark.parametrize(
    ("ttl", "by", "expires"),
    [
        ({"TimeToLiveStatus": "DISABLED"}, None, False),
        ({"TimeToLiveStatus": "DISABLING", "AttributeName": "ttl"}, None, False),
        ({"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}, "until", False),
        ({"TimeToLiveStatus": "ENABLING", "AttributeName": "ttl"}, "ttl", True),
    ],
)
def test_a_table_expires_items_by_one_attribute(ttl: dict[str, str], by: str | None, expires: bool) -> None:
    state = table_state(described(), ttl, BACKUPS)
    assert (state.expires_by, state.expires) == (by, expires)


@pytest.mark.parametrize(
    ("backups", "recoverable"),
    [(None, None), ({}, False), ({"PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"}}, False)],
)
def test_a_table_is_recoverable_or_nobody_says_so(backups: dict[str, Any] | None, recoverable: bool | None) -> None:
    assert table_state(described(), TTL, backups).recoverable is recoverable


def test_a_table_with_fixed_capacity_has_no_summary_of_its_billing() -> None:
    assert not table_state(described(BillingModeSummary={}), TTL, None).on_demand
