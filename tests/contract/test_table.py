"""How every store creates, describes and closes its table."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from processor.environment.stores.kinds import KINDS
from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key
from statestore.memory import MemoryStore, MeteredStore
from statestore.postgres import PostgresStore
from statestore.store import Delete, NoTable, Query, Store, TableDescription, Terminal, Write
from tests.contract.conftest import ON_POSTGRES, STORES, params_on_postgres

USER = Key("TABLE#user", "octocat")
INDEXED = {"PK": USER.pk, "SK": USER.sk, "GSI_1": "a", "GSI_SK": "user#octocat"}

_numbers = count(1)


@pytest.fixture(params=["memory", "metered", "moto", "dynamodb_local", *params_on_postgres()])
def new_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store whose table does not exist yet."""
    made: Store
    match request.param:
        case "memory":
            made = MemoryStore(None)
        case "metered":
            made = MeteredStore(None)
        case "postgres" | "older_postgres" as server:
            url = request.getfixturevalue(server)
            made = PostgresStore(url=url, table=f"new-{next(_numbers)}")
        case api:
            endpoint = request.getfixturevalue(api)
            made = DynamoStore(table=f"new-{next(_numbers)}", endpoint_url=endpoint, region="eu-west-1")
    yield made
    made.close()


def test_a_table_is_described_once_it_is_created(new_store: Store) -> None:
    assert new_store.describe() is None

    new_store.create(20)
    memory = isinstance(new_store, MemoryStore)
    name = "memory" if memory else new_store.table  # type: ignore[attr-defined]
    assert new_store.describe() == TableDescription(name=name, slots=20, keys=("PK", "SK"), expires=not memory)


def test_every_slot_of_a_created_table_answers(new_store: Store) -> None:
    new_store.create(2)
    new_store.write(Write(key=USER, set={"GSI_1": "a"}))

    assert new_store.query(Query(slot="GSI_1", value="a")) == [INDEXED]
    assert new_store.query(Query(slot="GSI_2", value="a")) == []
    with pytest.raises(Terminal, match="GSI_3"):
        new_store.query(Query(slot="GSI_3", value="a"))


def test_a_table_that_is_created_again_keeps_its_items(new_store: Store) -> None:
    new_store.create(1)
    new_store.write(Write(key=USER, set={"GSI_1": "a"}))
    before = new_store.describe()
    new_store.create(1)

    assert new_store.describe() == before
    assert new_store.query(Query(slot="GSI_1", value="a")) == [INDEXED]


def test_a_table_has_about_so_many_items_as_its_server_counted_last(new_store: Store) -> None:
    new_store.create(1)
    new_store.write(Write(key=USER, set={"GSI_1": "a"}))
    counted = not isinstance(new_store, PostgresStore)  # Postgres counts later; the doubles of DynamoDB count at once
    assert new_store.describe().items == (1 if counted else None)  # type: ignore[union-attr]


def test_a_table_with_fewer_slots_is_refused_with_the_cure_and_one_with_more_is_taken(new_store: Store) -> None:
    new_store.create(2)
    new_store.create(1)

    with pytest.raises(
        Terminal, match="exists, but does not fit: it has 2 slots, not 3: `statestore add-slots 3` adds the missing"
    ):
        new_store.create(3)
    assert new_store.describe().slots == 2  # type: ignore[union-attr]


@pytest.mark.long_on("dynamodb_local")
def test_an_added_slot_shows_rows_that_were_stored_before_and_after(new_store: Store) -> None:
    new_store.create(1)
    new_store.write(Write(key=USER, set={"GSI_1": "a", "GSI_3": "b"}))
    lines: list[str] = []
    new_store.add_slots(3, lines.append)
    other = Key("TABLE#user", "hubot")
    new_store.write(Write(key=other, set={"GSI_3": "b"}))

    assert [line for line in lines if line.endswith(": ACTIVE")] == ["index GSI_2: ACTIVE", "index GSI_3: ACTIVE"]
    assert new_store.query(Query(slot="GSI_1", value="a")) == [INDEXED]
    assert [item["SK"] for item in new_store.query(Query(slot="GSI_3", value="b"))] == ["hubot", "octocat"]
    new_store.create(3)


@pytest.mark.long_on("dynamodb_local")
def test_slots_are_added_once_however_often_the_call_comes(new_store: Store) -> None:
    new_store.create(1)
    lines: list[str] = []
    for slots in (2, 3, 3, 2):
        new_store.add_slots(slots, lines.append)

    assert [line for line in lines if line.endswith(": ACTIVE")] == ["index GSI_2: ACTIVE", "index GSI_3: ACTIVE"]
    assert new_store.describe().slots == 3  # type: ignore[union-attr]
    with pytest.raises(Terminal, match="a table has 1 to 20 slots, not 21"):
        new_store.add_slots(21, lines.append)


@pytest.mark.parametrize("slots", [0, 21])
def test_a_table_has_1_to_20_slots(new_store: Store, slots: int) -> None:
    with pytest.raises(Terminal, match=f"a table has 1 to 20 slots, not {slots}"):
        new_store.create(slots)
    assert new_store.describe() is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.write(Write(key=USER, set={"a": 1})),
        lambda store: store.delete(Delete(key=USER)),
        lambda store: store.get([USER]),
        lambda store: store.query(Query(slot="GSI_1", value="a")),
        lambda store: store.page(Query(slot="GSI_1", value="a"), None, 1),
        lambda store: store.page(USER.pk, None, 1),
        lambda store: store.partition(USER.pk),
        lambda store: list(store.items(USER.pk)),
        lambda store: list(store.walk(USER.pk, "_deleted")),
        lambda store: store.add_slots(2, print),
    ],
)
def test_a_request_without_a_table_is_refused_and_the_error_says_what_to_do(
    new_store: Store, ask: Callable[[Store], Any]
) -> None:
    with pytest.raises(NoTable, match="create it"):
        ask(new_store)


def test_the_suite_runs_over_each_kind_of_store() -> None:
    assert [kind for kind in KINDS if not any(kind in name for name in (*STORES, *ON_POSTGRES))] == []
