"""Fills an empty table by an import: DynamoDB makes a table from files in S3, with its indexes, and without write units.

    1. `begin` deletes the files of an earlier load.
    2. Each task adds its items as a file of DynamoDB JSON, compressed, in a random order: sorted keys make one hot partition
       after another. The name of a file follows from its content, so a task that Spark repeats replaces its own file.
    3. `finish` writes the job's progress as one more file. It deletes the empty table, and lets DynamoDB make it again from all
       files. It then counts the items: of two items with one key DynamoDB keeps any.

Promises: nobody reads a row before all rows are there. A load that breaks off before `finish` changes nothing in the table. Does
not: keep tags, backups and alarms of the empty table.

Read on 2026-11-27: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataImport.HowItWorks.html and
.../S3DataImport.BestPractices.html. Captured: the answers of moto.
"""

import gzip
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from random import Random
from time import sleep
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from statestore import table as definition
from statestore.dynamodb.client import BotoClient, open_s3
from statestore.dynamodb.requests import import_file
from statestore.dynamodb.retries import Patience, RequestCounts, failure
from statestore.keys import is_progress
from statestore.store import Item, Terminal
from statestore.values import decode

MOST_FILES: Final = 50_000
"""Of an import."""
SEGMENTS: Final = 16
"""Of the scan that counts the items."""
PAUSE_S: Final = 30.0
"""The longest between two looks at an import."""
CURE: Final = (
    "delete the table, then `load --adopt` with a new --checkpoint; or `statestore run`, which tries each row again"
)


class DynamoLoader:
    """Loads the table. `files`: s3://BUCKET/PREFIX; `run`: the number of the run, whose files have a folder of their own: a task
    of an earlier run may still write. Raises Terminal for an address of another form."""

    def __init__(self, *, table: str, files: str, run: int, endpoint_url: str | None, region: str | None) -> None:
        scheme, _, path = files.partition("://")
        self._bucket, _, prefix = path.strip("/").partition("/")
        if scheme != "s3" or not self._bucket:
            raise Terminal(f"import_files is {files!r}: give s3://BUCKET/PREFIX, for the files that DynamoDB imports")
        self.table = definition.table_name(table)
        self._of_table = f"{prefix}/{table}/".lstrip("/")
        self._prefix = f"{self._of_table}{run}/"
        patience = Patience(read_s=60.0)
        with self._failures("connecting"):
            self._boto3 = BotoClient(endpoint_url, region, patience, RequestCounts())
            self._s3 = open_s3(endpoint_url, region, patience)
        self._api = self._boto3.api

    def begin(self) -> None:
        """Deletes the files of an earlier load. Raises Terminal for a table that `finish` may not delete."""
        with self._failures("beginning a load"):
            if self._description().get("DeletionProtectionEnabled"):
                raise Terminal(
                    f"table {self.table} has deletion protection, and a load makes it again: turn it off, and on again after "
                    "the load"
                )
            for name in self._files(self._of_table):
                self._s3.delete_object(Bucket=self._bucket, Key=name)

    def add(self, items: Sequence[Item]) -> None:
        """Writes a file with these items."""
        if items:
            with self._failures("writing a file of a load"):
                self._put(Random(0).sample(items, len(items)))

    def finish(self) -> None:
        """Makes the table from the files. Takes as long as DynamoDB takes. Raises Terminal where the import failed, or two items
        had one key."""
        with self._failures("ending a load"):
            notes = [{name: decode(value) for name, value in item.items()} for item in self._scan()]
            if stray := next((item for item in notes if not is_progress(item["PK"])), None):
                raise Terminal(f"table {self.table} has a row by now, in {stray['PK']}: somebody else writes to it")
            self._put(notes)
            files = list(self._files(self._prefix))
            if len(files) > MOST_FILES:
                raise Terminal(f"{len(files):,} files, and DynamoDB imports {MOST_FILES:,} at most: load fewer records")
            request = definition.create_table(self.table, definition.slots_of(self._description()))
            self._api.delete_table(TableName=self.table)
            self._api.get_waiter("table_not_exists").wait(TableName=self.table, WaiterConfig={"Delay": 1})
            self._import(request)
            expected, stored = sum(map(_items_of, files)), self._count()
            if stored != expected:
                raise Terminal(
                    f"table {self.table} has {stored:,} items, and the files have {expected:,}: two Kafka keys name one row, and "
                    f"DynamoDB keeps any of the two: {CURE}"
                )

    def close(self) -> None:
        """Closes the connections."""
        self._boto3.close()
        self._s3.close()

    def _import(self, request: dict[str, Any]) -> None:
        """Imports the files, and waits for the end."""
        begun = self._api.import_table(
            S3BucketSource={"S3Bucket": self._bucket, "S3KeyPrefix": self._prefix},
            InputFormat="DYNAMODB_JSON",
            InputCompressionType="GZIP",
            TableCreationParameters=request,
        )
        arn, pause = begun["ImportTableDescription"]["ImportArn"], 0.1
        while (found := self._api.describe_import(ImportArn=arn)["ImportTableDescription"])[
            "ImportStatus"
        ] == "IN_PROGRESS":
            sleep(pause)
            pause = min(PAUSE_S, 2 * pause)
        if found["ImportStatus"] != "COMPLETED" or found.get("ErrorCount"):
            why = found.get("FailureMessage") or found.get("FailureCode") or f"{found.get('ErrorCount')} errors"
            raise Terminal(f"table {self.table}: the import {arn} ended as {found['ImportStatus']}: {why}: {CURE}")

    def _put(self, items: Sequence[Item]) -> None:
        text = import_file(items)
        name = f"{self._prefix}{sha256(text).hexdigest()[:32]}-{len(items)}.json.gz"
        self._s3.put_object(Bucket=self._bucket, Key=name, Body=gzip.compress(text, 6, mtime=0))

    def _files(self, prefix: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        return (one["Key"] for page in pages for one in page.get("Contents", ()))

    def _scan(self) -> Iterator[dict[str, Any]]:
        pages = self._api.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True)
        return (item for page in pages for item in page["Items"])

    def _count(self) -> int:
        def segment(number: int) -> int:
            pages = self._api.get_paginator("scan").paginate(
                TableName=self.table, Select="COUNT", Segment=number, TotalSegments=SEGMENTS
            )
            return sum(page["Count"] for page in pages)

        with ThreadPoolExecutor(SEGMENTS) as threads:
            return sum(threads.map(segment, range(SEGMENTS)))

    def _description(self) -> dict[str, Any]:
        found: dict[str, Any] = self._api.describe_table(TableName=self.table)["Table"]
        return found

    @contextmanager
    def _failures(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            raise failure(f"table {self.table}: {doing}", error) from error


def _items_of(file: str) -> int:
    """How many items a file has, by its name."""
    return int(file.rpartition("-")[2].partition(".")[0])
