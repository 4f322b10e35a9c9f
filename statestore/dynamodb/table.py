"""Creates, checks, describes and widens the table through boto3. `TableProbe` looks at it and at the way to it."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from time import sleep
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from statestore import table as definition
from statestore.dynamodb.client import BotoClient
from statestore.dynamodb.connections import Endpoint, connect, tls_context, without_password
from statestore.dynamodb.retries import failure
from statestore.store import ReportIndex, TableDescription, Terminal
from statestore.table import TableState, table_state

POLLS: Final = 30
"""The looks at an index, a second apart, between two lines of progress."""


def create_table(api: Any, table: str, slots: int) -> int:
    """Creates the table with its indexes unless it exists, and waits until it is active. Returns when it was made, in
    milliseconds since 1970.

    Raises Terminal, with the differences, when the existing table has another key or fewer indexes; the errors of botocore.
    """
    request, found = definition.create_table(table, slots), _find(api, table)
    if found is None:
        with suppress(api.exceptions.ResourceInUseException):
            api.create_table(**request)
    if found is None or found["TableStatus"] != "ACTIVE":
        api.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
        found = _described(api, table)
    _check(found, slots)
    return definition.created_at(found)


def add_slots(api: Any, table: str, slots: int, progress: ReportIndex) -> None:
    """Adds the indexes that the table lacks, and waits for each: DynamoDB makes one at a time. Also waits for an index of an
    earlier call. Raises Terminal when the table does not fit; the errors of botocore."""
    description = _described(api, table)
    _check(description, slots=0)
    found = definition.index_states(description)
    for name in definition.slot_names(slots):
        if name not in found:
            api.update_table(**definition.add_index(table, name))
        if found.get(name) != "ACTIVE":
            _await_index(api, table, name, progress)
    _check(_described(api, table), slots)


def _await_index(api: Any, table: str, name: str, progress: ReportIndex) -> None:
    seconds = 0
    while (state := definition.index_states(_described(api, table)).get(name, "CREATING")) != "ACTIVE":
        if seconds % POLLS == 0:
            progress(f"index {name}: {state}, {seconds} s")
        sleep(1)
        seconds += 1
    progress(f"index {name}: {state}")


def _check(found: Mapping[str, Any], slots: int) -> None:
    if wrong := definition.misfits(found, slots):
        raise Terminal(f"table {found['TableName']} exists, but does not fit: " + "; ".join(wrong))


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
    found = _find(api, table)
    if found is None:
        return None
    ttl = api.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    return definition.table_description(found, ttl)


def _find(api: Any, table: str) -> Mapping[str, Any] | None:
    try:
        return _described(api, table)
    except api.exceptions.ResourceNotFoundException:
        return None


def _described(api: Any, table: str) -> Mapping[str, Any]:
    description: Mapping[str, Any] = api.describe_table(TableName=table)["Table"]
    return description


class TableProbe:
    """Looks at a table through the client of its store. `endpoint`: its URL; `proxy`: the one on the way, if any."""

    def __init__(self, boto3: BotoClient, table: str) -> None:
        self._boto3, self._table = boto3, table
        self._endpoint: Endpoint = boto3.endpoint
        self.endpoint = self._endpoint.url
        self.proxy = without_password(self._endpoint.proxy) if self._endpoint.proxy else None

    def server_time(self, seconds: float) -> datetime | None:
        """Connects as the job does, without credentials, and returns the time of the answer's header `Date`. None where the
        server answers with no time. Raises OSError where there is no connection."""
        tls = tls_context(self._endpoint.certificates) if self.endpoint.startswith("https:") else None
        connection = connect(self._endpoint, tls, seconds)
        try:
            asks_proxy = self._endpoint.proxy is not None and tls is None
            connection.request("GET", self.endpoint if asks_proxy else self._endpoint.path)
            return parsedate_to_datetime(connection.getresponse().headers["Date"])
        except (HTTPException, TypeError, ValueError):
            return None
        finally:
            connection.close()

    def credentials_source(self) -> str:
        """Where the credentials come from, in botocore's words: `env`, `shared-credentials-file`, `iam-role` and others. Raises
        Terminal, Transient where there are none."""
        try:
            return self._boto3.credentials.source()
        except BotoCoreError as error:
            raise failure(f"table {self._table}: credentials", error) from error

    def state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises Terminal, Transient."""
        api = self._boto3.api
        try:
            description = api.describe_table(TableName=self._table)["Table"]
            ttl = api.describe_time_to_live(TableName=self._table)["TimeToLiveDescription"]
        except api.exceptions.ResourceNotFoundException:
            return None
        except (ClientError, BotoCoreError) as error:
            raise failure(f"table {self._table}: describing", error) from error
        backups = None
        with suppress(ClientError, BotoCoreError):  # DynamoDB Local has none, and the role of a job need not see them
            backups = api.describe_continuous_backups(TableName=self._table)["ContinuousBackupsDescription"]
        return table_state(description, ttl, backups)
