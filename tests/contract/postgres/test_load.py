"""A loader fills an empty table by COPY: the items, and the table itself, are as if the store had made and written them."""

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from itertools import count
from typing import Any

import pytest

from statestore.keys import Key
from statestore.memory import LoadStore, MemoryStore
from statestore.postgres import PostgresLoader, PostgresStore
from statestore.store import Delete, Done, FencedWrite, FencingToken, Item, Query, TooLarge, Write
from tests.contract.postgres_servers import execute
from tests.contract.stored_items import item

NAMES = count()
FENCE = FencingToken("job", 2)
NOTE = Key("RUNS", "1")
ROWS = [
    item(Key("TABLE#user", "octocat"), GSI_1="a", GSI_17="b", GSI_SK_17="user#0#octocat", v="1"),
    item(Key("TABLE#user", "tab\t line\n back\\ nul\0 ø"), GSI_2="tab\t\\N\0", note="\\.\n\t", v="2"),
    item(Key("TABLE#user", "numbers"), n=1 << 70, d=Decimal("1.5"), b=b"\0\xff", deep={"x": [1, None, True]}, ttl=17),
    item(Key("EDGE#star#who=ada", "one"), row="TABLE#star"),
]


@pytest.fixture
def table(postgres: str) -> Iterator[PostgresStore]:
    """An empty table of 17 slots with a note of the job, which a run of generation 2 holds."""
    with closing(PostgresStore(url=postgres, table=f"load{next(NAMES)}", fence=FENCE)) as store:
        store.create(17)
        store.take_over(FENCE)
        store.write(Write(NOTE, {"through": 1}))
        yield store


def loader_of(table: PostgresStore, postgres: str, fence: FencingToken = FENCE) -> Any:
    return closing(PostgresLoader(url=postgres, table=table.table, fence=fence))


def items(store: PostgresStore) -> list[Item]:
    return store.scan(None, 1_000).items


def schema(url: str, table: str) -> list[tuple[Any, ...]]:
    """Columns, indexes, options and form, without the name of the table."""
    asked = (
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
        "WHERE relnamespace = %s::regnamespace AND relname = 'items' AND attnum > 0 AND NOT attisdropped",
        "SELECT indexname, replace(indexdef, %s, '') FROM pg_indexes WHERE schemaname = %s ORDER BY 1",
        "SELECT relname, relkind, relpersistence, reloptions::text FROM pg_class WHERE relnamespace = %s::regnamespace",
    )
    name = f"state_{table}"
    return [row for one in asked for row in sorted(execute(url, one, [name] * one.count("%s")))]


def test_loaded_items_and_their_table_equal_written_ones(postgres: str, table: PostgresStore) -> None:
    with closing(PostgresStore(url=postgres, table="usual")) as usual:
        usual.create(17)
        usual.write_all([Write(NOTE, {"through": 1})])
        for row in ROWS:
            key = Key(row["PK"], row["SK"])
            usual.write(Write(key, {name: value for name, value in row.items() if name not in ("PK", "SK", "GSI_SK")}))
        with loader_of(table, postgres) as loader:
            loader.begin()
            loader.add(ROWS[:2])
            loader.add(ROWS[2:])
            assert items(table) == [item(NOTE, through=1)]
            loader.finish()
            loader.finish()  # as after a lost answer
        assert items(table) == items(usual)
        assert len(items(table)) == 5
        for query in (Query("GSI_1", "a"), Query("GSI_2", "tab\t\\N\0"), Query("GSI_17", "b", entity="user")):
            assert table.query(query) == usual.query(query)
            assert len(table.query(query)) == 1
        assert schema(postgres, table.table) == schema(postgres, "usual")
        columns = "SELECT pk, sk, ttl, length(shown), length(item), gsi_sk, gsi_17 FROM state_{}.items ORDER BY 1, 2"
        assert execute(postgres, columns.format(table.table)) == execute(postgres, columns.format("usual"))
    table.add_slots(18, lambda _: None)
    assert isinstance(table.write(Write(Key("TABLE#user", "octocat"), {"v": "3"})), Done)


def test_a_later_load_drops_what_an_earlier_one_left(postgres: str, table: PostgresStore) -> None:
    with loader_of(table, postgres) as loader:
        loader.begin()
        loader.add(ROWS)
        loader.begin()
        loader.add(ROWS[:1])
        loader.finish()
    assert len(items(table)) == 2


def test_a_load_keeps_the_form_of_the_table(postgres: str) -> None:
    with closing(PostgresStore(url=postgres, table="fleeting", unlogged=True)) as store:
        store.create(1)
        store.take_over(FENCE)
        with loader_of(store, postgres) as loader:
            loader.begin()
            loader.add(ROWS[:1])
            loader.finish()
        state = store.state()
        assert state is not None
        assert (state.logged, state.slots, state.misfits) == (False, 1, ())


def test_a_newer_run_fences_a_load(postgres: str, table: PostgresStore) -> None:
    with loader_of(table, postgres) as loader:
        loader.begin()
        loader.add(ROWS)
        table.take_over(FencingToken("job", 3))
        for step in (loader.begin, loader.finish, lambda: loader.add(ROWS)):
            with pytest.raises(FencedWrite, match="a newer run than 2 took over"):
                step()
    assert items(table) == [item(NOTE, through=1)]


def test_a_task_of_a_load_has_its_rows_to_itself_and_the_notes_of_all() -> None:
    notes = MemoryStore()
    store = LoadStore(notes)
    row, huge = Key("TABLE#user", "a"), Key("TABLE#user", "huge")
    assert store.write_all([Write(row, {"v": "1"}), Write(NOTE, {"x": 1})]) == [Done(None), Done(None)]
    assert isinstance(store.write(Write(huge, {"v": "x" * 500_000})), TooLarge)
    assert store.get([row, huge, NOTE]) == {row: item(row, v="1"), NOTE: item(NOTE, x=1)}
    assert store.loaded() == [item(row, v="1")]
    assert notes.get([row, NOTE]) == {NOTE: item(NOTE, x=1)}
    assert store.delete(Delete(key=row)) == Done(item(row, v="1"))
    assert store.loaded() == []
