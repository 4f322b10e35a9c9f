"""Creates, checks, describes and widens the table through boto3."""

from contextlib import suppress
from time import sleep
from typing import Any, Final

from statestore import table as definition
from statestore.errors import Terminal
from statestore.store import ReportIndex, TableDescription

POLLS: Final = 30
"""A line of progress comes after so many looks at an index, a second apart."""


def create_table(api: Any, table: str, slots: int, *, exists: bool) -> None:
    """Creates the table with its indexes unless it exists, and waits until it is active.

    Raises Terminal, with the differences, when the existing table has another key or fewer indexes; the errors of botocore.
    """
    request = definition.create_table(table, slots)
    if not exists:
        with suppress(api.exceptions.ResourceInUseException):
            api.create_table(**request)
    api.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
    _check(api, table, slots)


def add_slots(api: Any, table: str, slots: int, progress: ReportIndex) -> None:
    """Adds the indexes that the table lacks, and waits for each: DynamoDB makes one at a time. Also waits for an index of an
    earlier call. Raises Terminal when the table does not fit; the errors of botocore."""
    _check(api, table, slots=0)
    found = _states(api, table)
    for name in definition.slot_names(slots):
        if name not in found:
            api.update_table(**definition.add_index(table, name))
        if found.get(name) != "ACTIVE":
            _await_index(api, table, name, progress)
    _check(api, table, slots)


def _await_index(api: Any, table: str, name: str, progress: ReportIndex) -> None:
    seconds = 0
    while (state := _states(api, table).get(name, "CREATING")) != "ACTIVE":
        if seconds % POLLS == 0:
            progress(f"index {name}: {state}, {seconds} s")
        sleep(1)
        seconds += 1
    progress(f"index {name}: {state}")


def _check(api: Any, table: str, slots: int) -> None:
    if wrong := definition.misfits(api.describe_table(TableName=table)["Table"], slots):
        raise Terminal(f"table {table} exists, but does not fit: " + "; ".join(wrong))


def _states(api: Any, table: str) -> dict[str, str]:
    return definition.index_states(api.describe_table(TableName=table)["Table"])


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
