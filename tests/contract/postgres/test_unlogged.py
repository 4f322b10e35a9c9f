"""The form of a table in Postgres: logged or unlogged, by the setting; and no run writes on after a crash emptied its table."""

from collections.abc import Callable, Iterator

import pytest

from statestore.keys import Key
from statestore.postgres import PostgresStore
from statestore.store import FencedWrite, FencingToken, Query, Terminal, Write
from tests.contract.conftest import SLOTS
from tests.contract.postgres_servers import crashing_postgres, execute

ROW = Key("TABLE#star", "1")
RUN = FencingToken("registry", 1)


def forms(url: str, table: str) -> list[tuple[str, str]]:
    """The tables of a store, and the form of each: u for unlogged."""
    statement = (
        "SELECT relname, relpersistence::text FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
    )
    return sorted(execute(url, statement, [f"state_{table}"]))


@pytest.mark.parametrize("unlogged", [False, True])
def test_a_new_table_has_the_form_that_the_caller_says_and_an_existing_one_gets_it(url: str, unlogged: bool) -> None:
    kinds = {True: [("fences", "u"), ("items", "u")], False: [("fences", "p"), ("items", "p")]}
    first = PostgresStore(url=url, table="form", unlogged=unlogged)
    assert first.create(SLOTS) is None
    assert forms(url, "form") == kinds[unlogged]
    first.take_over(RUN)
    first.write(Write(ROW, {"GSI_1": "ice"}))

    other = PostgresStore(url=url, table="form", unlogged=not unlogged)
    word = "logged: its rows" if unlogged else "unlogged: the server empties it when it crashes"
    said = other.create(SLOTS)
    assert said
    assert said.startswith(f"the table form is {word.partition(':')[0]} now, as the setting store_unlogged says")
    assert word.partition(": ")[2] in said
    assert forms(url, "form") == kinds[not unlogged]
    assert other.create(SLOTS) is None
    assert other.state().logged is unlogged  # type: ignore[union-attr]
    assert [item["SK"] for item in other.query(Query("GSI_1", "ice"))] == ["1"]
    first.write(Write(ROW, {"GSI_1": "fire"}))  # the run continues
    for store in (first, other):
        store.close()
    execute(url, "DROP SCHEMA state_form CASCADE")


@pytest.fixture(scope="module")
def crashing() -> Iterator[tuple[str, Callable[[], None]]]:
    with crashing_postgres() as (url, crash):
        yield url, crash


def test_after_a_crash_the_run_of_an_unlogged_table_writes_nothing_more(
    crashing: tuple[str, Callable[[], None]],
) -> None:
    url, crash = crashing
    driver = PostgresStore(url=url, table="unlogged", unlogged=True)
    worker = PostgresStore(url=url, table="unlogged", unlogged=True, fence=RUN)
    driver.create(SLOTS)
    driver.take_over(RUN)
    worker.write(Write(ROW, {"n": 1}))
    crash()

    for store in (driver, worker):
        with pytest.raises(Terminal) as refused:
            store.write(Write(ROW, {"n": 2}))
        assert not isinstance(refused.value, FencedWrite)
        assert "table unlogged: it has lost its rows, and the fence of this run: its server crashed" in str(
            refused.value
        )
        assert "`statestore run --adopt` with a new --checkpoint" in str(refused.value)
    assert execute(url, "SELECT count(*) FROM state_unlogged.items") == [(0,)]

    newer = PostgresStore(url=url, table="unlogged", unlogged=True)
    newer.take_over(FencingToken("registry", 2))
    newer.write(Write(ROW, {"n": 3}))
    with pytest.raises(FencedWrite, match="a newer run than 1 took over"):
        worker.write(Write(ROW, {"n": 4}))
    for store in (driver, worker, newer):
        store.close()


def test_after_a_crash_the_run_of_a_logged_table_goes_on(crashing: tuple[str, Callable[[], None]]) -> None:
    url, crash = crashing
    store = PostgresStore(url=url, table="logged")
    store.create(SLOTS)
    store.take_over(RUN)
    store.write(Write(ROW, {"n": 1}))
    crash()
    assert store.get([ROW])[ROW]["n"] == 1
    store.write(Write(ROW, {"n": 2}))
    assert store.get([ROW])[ROW]["n"] == 2
    store.close()
