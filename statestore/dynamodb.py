"""DynamoDB: the doorway, and the only module that imports boto3. Sends the requests that `requests` and `table` build.

Promises: every failure is a `Transient` or a `Terminal` that names table, key and cause, and says what to do. Retries, time-outs
and pool size are our own settings, since botocore is changing its defaults. Threads may share a store; make one store per
process, never before a fork. Does not: hide that DynamoDB may have applied a write whose answer timed out: the retry is then
`Refused`, with the item that the write itself made.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random
from threading import Lock
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    NoRegionError,
    WaiterError,
)

from statestore import requests
from statestore import table as definition
from statestore.attribute_values import fits
from statestore.errors import StoreError, Terminal, Transient
from statestore.keys import Key
from statestore.limits import key_text
from statestore.store import (
    MAX_ITEM_BYTES,
    Delete,
    Done,
    Item,
    Page,
    Query,
    Refused,
    TableDescription,
    TooLarge,
    Write,
    WriteOutcome,
)

_REFUSED = "ConditionalCheckFailedException"
_TOO_LARGE = "Item size"
_THROTTLED = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
_CURES = {
    "ResourceNotFoundException": "create it, or set the table's name, region and endpoint",
    "AccessDeniedException": "allow this request on the table and its indexes in the role's policy",
    "UnrecognizedClientException": "give valid AWS credentials",
    "ExpiredTokenException": "renew the AWS credentials",
    "ValidationException": "the request does not fit the table: compare the table with its definition",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the store tries a request. attempts: of one request, with the first; `_s`: in seconds; connections: threads that
    can send at the same time (more than 16 per process gain nothing)."""

    attempts: int = 6
    connect_s: float = 2.0
    read_s: float = 5.0
    backoff_s: float = 0.05
    backoff_cap_s: float = 5.0
    connections: int = 16


class DynamoStore:
    """A `Store` over one DynamoDB table. Raises Terminal for a malformed table name or when no region is known."""

    def __init__(
        self,
        *,
        table: str,
        endpoint_url: str | None = None,
        region: str | None = None,
        patience: Patience | None = None,
        random: Random | None = None,
    ) -> None:
        self.table = definition.table_name(table)
        self.requests: Counter[str] = Counter()
        self._patience = patience or Patience()
        self._random = random or Random()
        self._lock = Lock()
        with self._failures("connecting"):
            try:
                self._client = boto3.session.Session().client(
                    "dynamodb", endpoint_url=endpoint_url, region_name=region, config=_config(self._patience)
                )
            except ValueError as error:  # botocore checks addresses itself
                raise Terminal(
                    f"table {table}: connecting: {error}: give the endpoint as http://host:port or https://host:port"
                ) from error
        self._client.meta.events.register("before-send.dynamodb", self._count)
        self._client.meta.events.register("after-call.dynamodb", _check_length)

    def create(self, slots: int) -> None:
        """Creates the table with its indexes and its TTL, and waits until it is active. Checks a table that exists.

        Raises Terminal, with the differences, when the existing table has another key, other indexes or another TTL.
        """
        request = definition.create_table(self.table, slots)
        exists = self._description() is not None
        with self._failures("creating"):
            if not exists:
                with suppress(self._client.exceptions.ResourceInUseException):
                    self._client.create_table(**request)
            waiter = self._client.get_waiter("table_exists")
            waiter.wait(TableName=self.table, WaiterConfig={"Delay": 1, "MaxAttempts": 300})
            description = self._client.describe_table(TableName=self.table)["Table"]
        if wrong := definition.misfits(description, slots):
            raise Terminal(f"table {self.table} exists, but does not fit: " + "; ".join(wrong))
        self._enable_ttl()

    def describe(self) -> TableDescription | None:
        """Describes the table; None when there is none."""
        description = self._description()
        if description is None:
            return None
        with self._failures("describing"):
            ttl = self._client.describe_time_to_live(TableName=self.table)["TimeToLiveDescription"]
        return definition.table_description(description, ttl)

    def close(self) -> None:
        """Closes the connections. The caller does not use the store afterwards."""
        self._client.close()

    def write(self, write: Write) -> WriteOutcome:
        """Sends one conditional update and returns the former item."""
        request = requests.update_item(self.table, write)
        if not fits(write.set, MAX_ITEM_BYTES):
            return TooLarge()
        with self._failures("writing", write.key):
            try:
                answer = self._client.update_item(**request)
            except ClientError as error:
                if _code(error) == _REFUSED:
                    return Refused(_item(error.response.get("Item")))
                if _code(error) == "ValidationException" and _TOO_LARGE in _message(error):
                    return TooLarge()
                raise
            return Done(_item(answer.get("Attributes")))

    def delete(self, delete: Delete) -> Done | Refused:
        """Sends one conditional delete and returns the former item."""
        request = requests.delete_item(self.table, delete)
        with self._failures("deleting", delete.key):
            try:
                answer = self._client.delete_item(**request)
            except ClientError as error:
                if _code(error) == _REFUSED:
                    return Refused(_item(error.response.get("Item")))
                raise
            return Done(_item(answer.get("Attributes")))

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent, in the fewest possible requests. Leaves out keys without an item."""
        found: dict[Key, Item] = {}
        for request in requests.batch_get_item(self.table, keys):
            for wire in self._batch(request):
                item = requests.item(wire)
                found[Key(item["PK"], item["SK"])] = item
        return found

    def query(self, query: Query) -> list[Item]:
        """Reads one index to the last page. The answer is a hint: the index may be late."""
        return list(self._pages(requests.query(self.table, query), _reading(query)))

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table, from the end of an earlier page."""
        if isinstance(source, str):
            request = requests.partition(self.table, source, after, limit)
        else:
            request = requests.query(self.table, source, after, limit)
        items, last = self._page(request, _reading(source))
        return Page(items, Key(last["PK"]["S"], last["SK"]["S"]) if last else None)

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table, strongly consistent, by sort key."""
        return list(self.items(pk))

    def items(self, pk: str) -> Iterator[Item]:
        """The same items, a page at a time."""
        return self._pages(requests.partition(self.table, pk), _reading(pk))

    def walk(self, source: Query | str, without: str) -> Iterator[Key]:
        """The keys of the items of a query, or of one partition of the table; not those with the attribute `without`."""
        found = self._pages(requests.walk(self.table, source, without), _reading(source))
        return (Key(item["PK"], item["SK"]) for item in found)

    def _pages(self, request: requests.ClientCall, what: str) -> Iterator[Item]:
        while True:
            found, last = self._page(request, what)
            yield from found
            if not last:
                return
            request = {**request, "ExclusiveStartKey": last}

    def _page(self, request: requests.ClientCall, what: str) -> tuple[list[Item], dict[str, Any]]:
        """The items of a page, and the wire key at which it ended: empty at the end."""
        with self._failures(what):
            page = self._client.query(**request)
        return [requests.item(wire) for wire in page["Items"]], page.get("LastEvaluatedKey") or {}

    def _description(self) -> Mapping[str, Any] | None:
        """What DescribeTable answers; None when there is no such table."""
        with self._failures("describing"):
            try:
                described: Mapping[str, Any] = self._client.describe_table(TableName=self.table)["Table"]
            except self._client.exceptions.ResourceNotFoundException:
                return None
        return described

    def _enable_ttl(self) -> None:
        with self._failures("enabling the TTL"):
            ttl = self._client.describe_time_to_live(TableName=self.table)["TimeToLiveDescription"]
            if ttl["TimeToLiveStatus"] in ("DISABLED", "DISABLING"):
                self._client.update_time_to_live(**definition.enable_ttl(self.table))
            elif ttl["AttributeName"] != definition.TTL:
                raise Terminal(
                    f"table {self.table} expires items by {ttl['AttributeName']!r}, not {definition.TTL!r}: "
                    "disable its TTL, or give another table name"
                )

    def _batch(self, request: requests.ClientCall) -> Iterator[Mapping[str, Any]]:
        """The items of one BatchGetItem. Keys that DynamoDB leaves unprocessed go out again, after a pause where no item came."""
        idle = 0
        while request["RequestItems"]:
            with self._failures("reading", *_keys(request, self.table)):
                answer = self._client.batch_get_item(**request)
            found = answer["Responses"].get(self.table, [])
            yield from found
            request = {"RequestItems": answer.get("UnprocessedKeys", {})}
            idle = 0 if found else idle + 1
            if request["RequestItems"] and idle >= self._patience.attempts:
                (first, *_) = _keys(request, self.table)
                raise Transient(
                    f"table {self.table}: reading {key_text(first)}: unprocessed {idle} times: the table is throttled; wait"
                )
            if request["RequestItems"] and idle:
                self._pause(idle)

    def _pause(self, idle: int) -> None:
        limit = min(self._patience.backoff_cap_s, self._patience.backoff_s * 2**idle)
        time.sleep(self._random.uniform(0, limit))

    def _count(self, event_name: str, **_: Any) -> None:
        """botocore calls this before each attempt. The result is None, so that botocore goes on with the request."""
        with self._lock:
            self.requests[event_name.rsplit(".", 1)[-1]] += 1

    @contextmanager
    def _failures(self, doing: str, *keys: Key) -> Iterator[None]:
        """Turns the errors of botocore into ours. Of several keys the message names the first."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            where = f"table {self.table}: {doing}" + (f" {key_text(keys[0])}" if keys else "")
            raise _failure(where, error) from error


def _config(patience: Patience) -> Config:
    return Config(
        retries={"mode": "standard", "total_max_attempts": patience.attempts},
        connect_timeout=patience.connect_s,
        read_timeout=patience.read_s,
        max_pool_connections=patience.connections,
        parameter_validation=False,  # tests compare requests whole; a check here costs 8 % of a write
        tcp_keepalive=True,
    )


def _reading(source: Query | str) -> str:
    return f"reading partition {source}" if isinstance(source, str) else f"querying {source.slot} for {source.value!r}"


def _check_length(http_response: Any, **_: Any) -> None:
    """botocore calls this with the last answer of a request. It would take an answer that every attempt cuts short for an empty
    one."""
    length, expected = len(http_response.content), http_response.headers.get("Content-Length")
    if expected is not None and length != int(expected):
        raise IncompleteReadError(actual_bytes=length, expected_bytes=expected)


def _item(wire: Mapping[str, Any] | None) -> Item | None:
    return requests.item(wire) if wire else None


def _keys(request: requests.ClientCall, name: str) -> list[Key]:
    return [Key(key["PK"]["S"], key["SK"]["S"]) for key in request["RequestItems"][name]["Keys"]]


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def _message(error: ClientError) -> str:
    return str(error.response["Error"].get("Message", ""))


def _failure(where: str, error: ClientError | BotoCoreError) -> StoreError:
    match error:
        case ClientError() if _code(error) in _THROTTLED:
            return Transient(f"{where}: throttled ({_message(error)}): wait, or write less at once")
        case ClientError() if error.response["ResponseMetadata"].get("HTTPStatusCode", 0) >= 500:
            return Transient(f"{where}: DynamoDB failed ({_code(error)}: {_message(error)}): try again")
        case ClientError():
            cure = _CURES.get(_code(error), "trying again does not help: see the cause")
            return Terminal(f"{where}: {_code(error)}: {_message(error)}: {cure}")
        case NoCredentialsError():
            return Terminal(f"{where}: {error}: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role")
        case NoRegionError():
            return Terminal(f"{where}: {error}: set AWS_REGION")
        case WaiterError() if "Error" not in error.last_response:
            return Transient(f"{where}: {error}: it takes longer than 5 minutes; try again")
        case HTTPClientError() | ConnectionError() | IncompleteReadError() | CredentialRetrievalError():
            return Transient(f"{where}: {error}: try again; is the endpoint right and reachable?")
    return Terminal(f"{where}: {error}")
