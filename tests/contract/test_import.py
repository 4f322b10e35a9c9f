"""A loader fills an empty table by an import of files: the items, and the table itself, are as if the store had made and written
them."""

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from statestore.dynamodb.client import open_s3
from statestore.dynamodb.load import DynamoLoader
from statestore.dynamodb.retries import Patience
from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.store import Done, Item, Query, Terminal, Write
from tests.contract.stored_items import item

NAMES = count()
NOTE = Key("RUNS", "1")
ROWS = [
    item(Key("TABLE#user", "octocat"), GSI_1="a", GSI_17="b", GSI_SK_17="user#0#octocat", v='a "text"\\\n'),
    item(Key("TABLE#user", "numbers"), n=1 << 70, d=Decimal("1.5"), b=b"\0\xff", deep={"x": [1, None, True]}, ttl=17),
    item(Key("EDGE#star#who=ada", "one"), row="TABLE#star"),
]


@pytest.fixture
def table(moto: str) -> Iterator[DynamoStore]:
    """An empty table of 17 slots with a note of the job."""
    name = f"load{next(NAMES)}"
    with closing(DynamoStore(table=name, endpoint_url=moto, region="us-east-1")) as store:
        with closing(open_s3(moto, "us-east-1", Patience())) as s3:
            s3._client_config.user_agent_extra = ""
            s3.create_bucket(Bucket=name)
        store.create(17)
        store.write(Write(NOTE, {"through": 1}))
        yield store


def loader_of(table: DynamoStore, moto: str, run: int = 2) -> Any:
    files = f"s3://{table.table}/some/prefix"
    return closing(DynamoLoader(table=table.table, files=files, run=run, endpoint_url=moto, region="us-east-1"))


def items(store: DynamoStore) -> dict[tuple[str, str], Item]:
    return {(one["PK"], one["SK"]): one for one in store.scan(None, 1_000).items}


def test_imported_items_and_their_table_equal_written_ones(table: DynamoStore, moto: str) -> None:
    before = table.describe()
    with loader_of(table, moto) as loader, loader_of(table, moto, run=1) as earlier:
        loader.begin()
        loader.add(ROWS)
        loader.begin()
        earlier.add([{**ROWS[0], "v": "of a task that still writes"}])
        loader.add(ROWS[:2])
        loader.add(ROWS[2:])
        loader.add(ROWS[2:])  # as a task that Spark repeats
        assert list(items(table)) == [NOTE]
        loader.finish()
    table.create(17)
    assert items(table) == {(one["PK"], one["SK"]): one for one in [*ROWS, item(NOTE, through=1)]}
    assert table.query(Query("GSI_1", "a")) == [item(Key("TABLE#user", "octocat"), GSI_1="a")]
    assert table.describe() == before
    assert isinstance(table.write(Write(Key("TABLE#user", "octocat"), {"v": "3"})), Done)


def test_two_items_of_one_key_stop_a_load(table: DynamoStore, moto: str) -> None:
    with loader_of(table, moto) as loader:
        loader.begin()
        loader.add(ROWS)
        loader.add([{**ROWS[0], "v": "2"}])
        with pytest.raises(Terminal, match="has 4 items, and the files have 5: two Kafka keys name one row"):
            loader.finish()


def test_a_table_that_a_load_may_not_make_again_stays(table: DynamoStore, moto: str) -> None:
    table.write(Write(Key("TABLE#user", "live"), {"v": "1"}))
    with loader_of(table, moto) as loader:
        loader.begin()
        loader.add(ROWS)
        with pytest.raises(Terminal, match="has a row by now, in TABLE#user: somebody else writes to it"):
            loader.finish()
        table._boto3.api.update_table(TableName=table.table, DeletionProtectionEnabled=True)
        with pytest.raises(Terminal, match="has deletion protection, and a load makes it again: turn it off"):
            loader.begin()
    assert len(items(table)) == 2


def test_an_address_of_another_form_is_refused(moto: str) -> None:
    with pytest.raises(Terminal, match="import_files is 'imports': give s3://BUCKET/PREFIX"):
        DynamoLoader(table="own", files="imports", run=1, endpoint_url=moto, region="us-east-1")
