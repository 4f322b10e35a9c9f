"""The store over DynamoDB: sends the requests that `requests` builds, and reads their answers.

Promises: every failure is a `Transient` or a `Terminal` that names table, key and cause, and says what to do. Threads may share
a store. A forked process may send single requests through a store of its parent, except with `client="boto3"`. Does not:
hide that DynamoDB may have applied a write whose answer timed out: the retry is then `Refused`, with the item that the write
itself made.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from random import Random
from typing import Any, Literal, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from statestore import table as definition
from statestore.dynamodb import requests
from statestore.dynamodb.client import BotoClient, LeanClient
from statestore.dynamodb.retries import (
    Patience,
    RequestCounts,
    failure,
    is_conflict,
    is_refusal,
    stored_item,
    untransacted,
    unwritten,
)
from statestore.dynamodb.table import TableProbe, add_slots, create_table, describe_table, enable_ttl
from statestore.items import key_of_item
from statestore.key_ranges import KeyRanges, RangePage
from statestore.keys import Key
from statestore.limits import RequestNames
from statestore.store import (
    MAX_ITEM_BYTES,
    Delete,
    Done,
    FencingToken,
    Item,
    Page,
    Query,
    Read,
    Refused,
    ReportIndex,
    TableDescription,
    Terminal,
    TooLarge,
    Transient,
    Write,
    WriteOutcome,
    read_alone,
    write_alone,
)
from statestore.values import fits

MOST_CONFLICTS = 50
"""So often a transaction goes out again because another one has one of its items: each of them takes some milliseconds."""


class DynamoStore:
    """A `Store` over one DynamoDB table. `client`: the way to send reads and writes of items; boto3 alone makes and describes
    tables. `show_keys`: whether errors name the rows, or only their partition. `threads`: requests of a turn that are on their
    way at a time. Raises Terminal for a malformed table name or when no region is known."""

    consistent = False

    def __init__(
        self,
        *,
        table: str,
        endpoint_url: str | None = None,
        region: str | None = None,
        client: Literal["lean", "boto3"] = "lean",
        patience: Patience | None = None,
        random: Random | None = None,
        show_keys: bool = True,
        threads: int = 1,
    ) -> None:
        self.table = definition.table_name(table)
        self.created: int | None = None
        self._counts = RequestCounts()
        self.requests = self._counts.requests
        self._patience = patience or Patience()
        self._random = random or Random()
        self._names = RequestNames(show_keys)
        self._threads = RequestThreads(threads)
        self._ranges = KeyRanges()
        with self._failures("connecting"):
            try:
                self._boto3 = BotoClient(endpoint_url, region, self._patience, self._counts)
                self._client = self._boto3 if client == "boto3" else self._lean_client()
            except ValueError as error:  # botocore checks addresses itself
                raise Terminal(
                    f"table {table}: connecting: {error}: give the endpoint as http://host:port or https://host:port"
                ) from error

    @property
    def spent(self) -> Counter[str]:
        """The retries, throttles and half units of capacity so far, by the name of the request (`retries Query`)."""
        return self._counts.spent

    def create(self, slots: int) -> None:
        """Creates the table with its indexes and its TTL, and waits until it is active. Checks a table that exists.

        Raises Terminal, with the differences, when the existing table has another key, fewer indexes or another TTL.
        """
        definition.slot_names(slots)
        with self._failures("creating"):
            self.created = create_table(self._boto3.api, self.table, slots)
        with self._failures("enabling the TTL"):
            enable_ttl(self._boto3.api, self.table)

    def add_slots(self, slots: int, progress: ReportIndex) -> None:
        """Adds the missing indexes. Each takes some minutes, and longer in a large table."""
        definition.slot_names(slots)
        with self._failures("adding slots"):
            add_slots(self._boto3.api, self.table, slots, progress)

    def take_over(self, fence: FencingToken) -> None:
        """Does nothing: DynamoDB has no fencing."""

    def describe(self) -> TableDescription | None:
        """Describes the table; None when there is none."""
        with self._failures("describing"):
            return describe_table(self._boto3.api, self.table)

    def probe(self) -> TableProbe:
        """Looks at the table and at the way to it, for an operator who checks a set-up."""
        return TableProbe(self._boto3, self.table)

    def close(self) -> None:
        """Closes the connections. The caller does not use the store afterwards."""
        self._threads.close()
        self._client.close()
        self._boto3.close()

    def read(self, reads: Sequence[Read]) -> list[Page]:
        """The pages of these reads, side by side."""
        return list(self._threads.each(partial(read_alone, self), reads))

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        """Does writes and deletes side by side."""
        return list(self._threads.each(partial(write_alone, self), requests))

    def write(self, write: Write) -> WriteOutcome:
        """Sends one conditional update and returns the former item."""
        if write.also:
            return self._transact(write)
        request = requests.update_item(self.table, write)
        if not fits(write.set, MAX_ITEM_BYTES):
            return TooLarge()
        with self._failures("writing", write.key):
            try:
                answer = self._send("UpdateItem", request)
            except ClientError as error:
                return unwritten(error)
            return Done(stored_item(answer.get("Attributes")))

    def _transact(self, write: Write) -> WriteOutcome:
        """Sends a write with those that go with it. Where another transaction has one of the items, it goes out again after a
        pause."""
        request, conflicts = requests.transact_write_items(self.table, write), 0
        if not fits(write.set, MAX_ITEM_BYTES):
            return TooLarge()
        with self._failures("writing", write.key):
            while True:
                try:
                    self._send("TransactWriteItems", request)
                except ClientError as error:
                    if not is_conflict(error) or conflicts == MOST_CONFLICTS:
                        return untransacted(error)
                    conflicts += 1
                    time.sleep(self._patience.pause(min(conflicts, 6), self._random))
                else:
                    return Done(None)

    def delete(self, delete: Delete) -> Done | Refused:
        """Sends one conditional delete and returns the former item."""
        request = requests.delete_item(self.table, delete)
        with self._failures("deleting", delete.key):
            try:
                answer = self._send("DeleteItem", request)
            except ClientError as error:
                if is_refusal(error):
                    return Refused(stored_item(error.response.get("Item")))
                raise
            return Done(stored_item(answer.get("Attributes")))

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent; many of a partition by ranges, if these cost less. Leaves out keys without an
        item."""
        found, rest = self._ranges.read(keys, partial(self._range, consistent=True))
        return found | self._get(requests.batch_get_item(self.table, rest))

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        """The same, eventually consistent."""
        found, rest = self._ranges.read(keys, partial(self._range, consistent=False))
        return found | self._get(requests.weak_batch_get_item(self.table, rest))

    def _range(
        self, pk: str, first: str, last: str, limit: int, wanted: Collection[str], *, consistent: bool
    ) -> RangePage:
        """A page of a range of a partition; decodes the wanted items only."""
        request = requests.key_range(self.table, pk, first, last, limit, consistent=consistent)
        with self._failures(self._names.reading(pk)):
            page = self._send("Query", request)
        items = [requests.item(wire) for wire in page["Items"] if wire["SK"]["S"] in wanted]
        units = float(page.get("ConsumedCapacity", {}).get("CapacityUnits", 0))
        end = page.get("LastEvaluatedKey") or {}
        return RangePage(
            [(key_of_item(item), item) for item in items],
            len(page["Items"]),
            max(units if consistent else 2 * units, 1),
            end["SK"]["S"] if end else None,
        )

    def _get(self, calls: Sequence[requests.ClientCall]) -> dict[Key, Item]:
        batches = self._threads.each(self._batch, calls)
        items = map(requests.item, chain.from_iterable(batches))
        return {key_of_item(item): item for item in items}

    def query(self, query: Query) -> list[Item]:
        """Reads one index to the last page. The answer is a hint: the index may be late."""
        return list(self._pages(requests.query(self.table, query), self._names.reading(query)))

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table, from the end of an earlier page."""
        if isinstance(source, str):
            request = requests.partition(self.table, source, after, limit)
        else:
            request = requests.query(self.table, source, after, limit)
        items, last = self._page(request, self._names.reading(source))
        return _page_of(items, last)

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table, strongly consistent, by sort key."""
        return list(self.items(pk))

    def items(self, pk: str) -> Iterator[Item]:
        """The same items, a page at a time."""
        return self._pages(requests.partition(self.table, pk), self._names.reading(pk))

    def walk(self, source: Query | str, without: str) -> Iterator[Key]:
        """The keys of the items of a query, or of one partition of the table; not those with the attribute `without`."""
        found = self._pages(requests.walk(self.table, source, without), self._names.reading(source))
        return map(key_of_item, found)

    def scan(self, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of the whole table, in the order of DynamoDB's partitions."""
        return _page_of(*self._page(requests.scan(self.table, after, limit), "scanning", "Scan"))

    def _pages(self, request: requests.ClientCall, what: str) -> Iterator[Item]:
        while True:
            found, last = self._page(request, what)
            yield from found
            if not last:
                return
            request = {**request, "ExclusiveStartKey": last}

    def _page(
        self, request: requests.ClientCall, what: str, operation: str = "Query"
    ) -> tuple[list[Item], dict[str, Any]]:
        """The items of a page, and the wire key at which it ended: empty at the end."""
        with self._failures(what):
            page = self._send(operation, request)
        return [requests.item(wire) for wire in page["Items"]], page.get("LastEvaluatedKey") or {}

    def _batch(self, request: requests.ClientCall) -> list[Mapping[str, Any]]:
        """The items of one BatchGetItem. Keys that DynamoDB leaves unprocessed go out again, after a pause where no item came."""
        idle, items = 0, list[Mapping[str, Any]]()
        while request["RequestItems"]:
            with self._failures("reading", *_keys(request, self.table)):
                answer = self._send("BatchGetItem", request)
            found = answer["Responses"].get(self.table, [])
            items += found
            request = {"RequestItems": answer.get("UnprocessedKeys", {})}
            if request["RequestItems"]:
                self._counts.throttle("BatchGetItem")
            idle = 0 if found else idle + 1
            if request["RequestItems"] and idle >= self._patience.attempts:
                first = self._names.row(_keys(request, self.table)[0])
                raise Transient(
                    f"table {self.table}: reading {first}: unprocessed {idle} times: the table is throttled; wait"
                )
            if request["RequestItems"] and idle:
                time.sleep(self._patience.pause(idle, self._random))
        return items

    def _lean_client(self) -> BotoClient | LeanClient:
        """The lean client; boto3's where the proxy itself speaks TLS."""
        proxy = self._boto3.endpoint.proxy
        if proxy is not None and proxy.startswith("https:"):
            return self._boto3
        return LeanClient(self._boto3, self._patience, self._random, self._counts)

    def _send(self, operation: str, request: requests.ClientCall) -> Mapping[str, Any]:
        """Sends one request, and asks for the units that it consumes."""
        self._counts.begin(operation)
        answer = self._client.send(operation, {**request, "ReturnConsumedCapacity": "TOTAL"})
        self._counts.consume(operation, answer)
        return answer

    @contextmanager
    def _failures(self, doing: str, *keys: Key) -> Iterator[None]:
        """Turns the errors of botocore into ours. Of several keys the message names the first."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            where = f"table {self.table}: {doing}" + (f" {self._names.row(keys[0])}" if keys else "")
            raise failure(where, error) from error


def _page_of(items: list[Item], last: Mapping[str, Any]) -> Page:
    return Page(items, Key(last["PK"]["S"], last["SK"]["S"]) if last else None)


def _keys(request: requests.ClientCall, name: str) -> list[Key]:
    return [Key(key["PK"]["S"], key["SK"]["S"]) for key in request["RequestItems"][name]["Keys"]]


A = TypeVar("A")
T = TypeVar("T")


class RequestThreads:
    """A pool of threads; with 1 the caller itself sends one request after the other. A forked process needs its own pool."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="requests") if threads > 1 else None

    def each(self, ask: Callable[[A], T], requests: Sequence[A]) -> Iterable[T]:
        """The answers to all requests, in their order. Raises the first error of `ask`."""
        if self._pool is None or len(requests) < 2:
            return map(ask, requests)
        return self._pool.map(ask, requests)

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
