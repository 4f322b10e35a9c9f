"""Creates, checks and describes the table through boto3."""

from contextlib import suppress
from typing import Any

from statestore import table as definition
from statestore.errors import Terminal
from statestore.store import TableDescription


def create_table(api: Any, table: str, slots: int, *, exists: bool) -> None:
    """Creates the table with its indexes unless it exists, and waits until it is active.

    Raises Terminal, with the differences, when the existing table has another key or other indexes; the errors of botocore.
    """
    request = definition.create_table(table, slots)
    if not exists:
        with suppress(api.exceptions.ResourceInUseException):
            api.create_table(**request)
    api.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    description = api.describe_table(TableName=table)["Table"]
    if wrong := definition.misfits(description, slots):
        raise Terminal(f"table {table} exists, but does not fit: " + "; ".join(wrong))


def enable_ttl(api: Any, table: str) -> None:
    """Lets the table expire its items. Raises Terminal when it does so by another attribute; the errors of botocore."""
    ttl = api.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if ttl["TimeToLiveStatus"] in ("DISABLED", "DISABLING"):
        api.update_time_to_live(**definition.enable_ttl(table))
    elif ttl["AttributeName"] != definition.TTL:
        raise Terminal(
            f"table {table} expires items by {ttl['AttributeName']!r}, not {definition.TTL!r}: "
            "disable its TTL, or give another table name"
        )


def describe_table(api: Any, table: str) -> TableDescription | None:
    """The table as it is; None when there is none. Raises the errors of botocore."""
    try:
        description = api.describe_table(TableName=table)["Table"]
    except api.exceptions.ResourceNotFoundException:
        return None
    ttl = api.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    return definition.table_description(description, ttl)
