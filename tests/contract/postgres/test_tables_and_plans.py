"""The table in Postgres: what the server plans for each statement, tables that do not fit, and servers that refuse."""

import json
from random import Random
from typing import Any

import psycopg
import pytest

from statestore.items import Image, read_row
from statestore.keys import Key
from statestore.postgres import PostgresStore
from statestore.postgres.store import bound_columns, item_columns, key_columns
from statestore.store import Query, Read, Terminal, Transient, Write
from statestore.writes import keep_indexed, merge_image, write_image
from tests.contract.postgres.conftest import MakeStore
from tests.contract.postgres_servers import execute

ROW = Key("TABLE#star", "1")


def plan_of(store: PostgresStore, statement: bytes, values: Any) -> list[dict[str, Any]]:
    """The nodes of the plan of a statement, in the store's own connection."""

    def explain(connection: psycopg.Connection[Any]) -> Any:
        return connection.execute(b"EXPLAIN (FORMAT JSON) " + statement, values, prepare=False).fetchone()

    ((found,),) = [store._session.send({}, "explaining", explain)]
    nodes, left = [], [json.loads(found)[0]["Plan"] if isinstance(found, str) else found[0]["Plan"]]
    while left:
        nodes.append(left.pop())
        left += nodes[-1].get("Plans", [])
    return nodes


def test_a_table_has_about_as_many_items_as_the_last_analyze_counted(make: MakeStore, url: str) -> None:
    store = make()
    store.write_all([Write(Key("TABLE#star", f"r{n}"), {}) for n in range(3)])
    execute(url, "ANALYZE state_own.items")
    assert store.describe().items == 3  # type: ignore[union-attr]


def test_the_state_of_a_table_names_the_release_of_its_server(make: MakeStore, url: str) -> None:
    ((release,),) = execute(url, "SELECT current_setting('server_version_num')::int / 10000")
    assert make().state().release == release  # type: ignore[union-attr]


def test_the_server_counts_rows_bytes_and_where_it_can_the_time_of_statements(make: MakeStore, url: str) -> None:
    store = make()
    store.write_all([Write(Key("TABLE#star", f"r{n}"), {}) for n in range(3)])
    execute(url, "SELECT pg_stat_force_next_flush()")
    execute(url, "ANALYZE state_own.items")
    used = store.usage()
    assert used is not None
    assert used.bytes > 0 < used.index_bytes
    assert min(used.rows, used.inserted, used.updated, used.deleted, used.fetched, used.read_bytes) >= 0
    assert (used.calls is None) == (used.seconds is None)  # without the extension the store goes on
    assert store.usage() is not None


@pytest.mark.parametrize("rows", [0, 3_000])
def test_no_statement_reads_the_whole_table_also_without_statistics(make: MakeStore, rows: int) -> None:
    store, keys = make(), [Key("TABLE#star", f"{n}") for n in range(2)]
    store.write_all([Write(Key("TABLE#star", f"r{n}"), {"GSI_1": f"{n % 7}"}) for n in range(rows)])
    reads = [
        Read(Query("GSI_1", "1")),
        Read(Query("GSI_1", "2", "star"), keys[0], 9),
        Read(Query("GSI_1", "3", row=ROW)),
    ]
    statements, items = store._statements, item_columns([(key, {"PK": key.pk, "SK": key.sk}) for key in keys])
    index = {
        statements.get: (key_columns(keys), "items_pkey"),
        statements.lock: (key_columns(keys), "items_pkey"),
        statements.update: (items, "items_pkey"),
        statements.delete: (key_columns(keys), "items_pkey"),
        statements.read("GSI_1"): (bound_columns(reads), "items_gsi_1"),
        statements.read(None): (bound_columns([Read("TABLE#star"), Read("TABLE#star", keys[0], 9)]), "items_pkey"),
        statements.expire: ([5, 1_000], "items_ttl_idx"),
    }
    for statement, (values, name) in index.items():
        nodes = plan_of(store, statement, values)
        assert {node["Index Name"] for node in nodes if "Index Name" in node} == {name}, statement
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], statement


def test_updates_that_keep_the_slots_change_no_index(make: MakeStore, url: str) -> None:
    store, keys = make(), [Key("TABLE#star", f"{n}") for n in range(50)]
    store.write_all([Write(key, {"GSI_1": "ice", "n": 0}) for key in keys])
    for n in range(40):
        store.write_all([Write(key, {"GSI_1": "ice", "n": n}) for key in keys[n::10]])
    store.close()  # the server counts at the end of a connection
    (found,) = execute(
        url,
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'state_own' AND relname = 'items'",
    )
    assert found[1] > 0.8 * found[0]


def row_image(n: int, version: int, note: str) -> Image:
    """A row with one column that indexes show, and a wide one that no product reads."""
    key, columns = Key("TABLE#star", f"{n}"), {"id": n, "note": note}
    return Image(key, f"1.0.{version:09}", columns, {}, ("id", "note"), {1: "ice"}, indexed=frozenset({"id"}))


def counters(url: str, *names: str) -> tuple[int, ...]:
    """Counters of the items, from the views of the server."""
    views = "pg_stat_user_tables s JOIN pg_statio_user_tables o USING (relid, schemaname, relname)"
    where = "schemaname = 'state_own' AND relname = 'items'"
    (found,) = execute(url, f"SELECT {', '.join(names)} FROM {views} WHERE {where}")
    return tuple(found)


def test_an_unread_update_changes_no_index_and_no_index_answer_reads_the_wide_rest(make: MakeStore, url: str) -> None:
    store, notes = make(), Random(1)
    before = counters(url, "n_tup_upd", "n_tup_hot_upd")
    keys = [Key("TABLE#star", f"{n}") for n in range(50)]
    store.write_all([write_image(row_image(n, 1, notes.randbytes(4_000).hex()), below="1.0.") for n in range(50)])
    for version in range(2, 42):
        some = range(version % 10, 50, 10)
        seen = store.get([keys[n] for n in some])
        for n in some:
            row = read_row(seen[keys[n]])
            image = keep_indexed(row_image(n, version, notes.randbytes(4_000).hex()), row)
            assert image.indexed_version == "1.0.000000001"
            store.write(merge_image(image, row))
    store.close()  # the server counts at the end of a connection
    updates, hot = (now - then for now, then in zip(counters(url, "n_tup_upd", "n_tup_hot_upd"), before, strict=True))
    assert hot > 0.8 * updates >= 160
    (rest,) = execute(
        url, "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'state_own.items'::regclass"
    )
    assert rest[0] > 50 * 8_000
    wide = counters(url, "coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0)")
    asking = make()
    (page,) = asking.read([Read(Query("GSI_1", "ice"))])
    assert [item["_indexed"] for item in page.items] == [{"id": int(key.sk)} for key in sorted(keys)]
    asking.close()
    assert counters(url, "coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0)") == wide


def test_a_table_with_other_columns_is_refused_with_the_cure(url: str) -> None:
    execute(url, "CREATE SCHEMA state_other")
    execute(url, 'CREATE TABLE state_other.items (pk text, sk text COLLATE "C", mine int)')
    store = PostgresStore(url=url, table="other")
    with pytest.raises(Terminal) as refused:
        store.create(2)
    for part in (
        'table other exists, but does not fit: its column pk is text, not text COLLATE "C": give another table name',
        "its column gsi_1 is missing",
        "it has a column mine: give another table name",
        "it lacks its primary key (pk, sk)",
    ):
        assert part in str(refused.value)
    store.close()
    execute(url, "DROP SCHEMA state_other CASCADE")


def test_an_index_that_a_broken_call_left_is_made_again(make: MakeStore, url: str) -> None:
    store = make()
    store.write(Write(ROW, {"GSI_3": "ice"}))
    execute(url, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'state_own.items_gsi_3'::regclass")
    again = make()
    assert again.describe().slots == 2  # type: ignore[union-attr]
    with pytest.raises(Terminal, match="no index GSI_3: the table has 2 slots"):
        again.query(Query("GSI_3", "ice"))
    with pytest.raises(Terminal, match="it has 2 slots, not 3: `statestore add-slots 3` adds the missing indexes"):
        again.create(3)
    lines: list[str] = []
    again.add_slots(3, lines.append)
    assert lines == ["index GSI_3: CREATING", "index GSI_3: ACTIVE"]
    assert [item["SK"] for item in again.query(Query("GSI_3", "ice"))] == ["1"]


def test_names_of_tables_are_quoted_and_those_that_do_not_fit_refused(url: str) -> None:
    store = PostgresStore(url=url, table="Odd-name.v2")
    store.create(1)
    store.write(Write(ROW, {"n": 1}))
    assert execute(url, 'SELECT count(*) FROM "state_Odd-name.v2".items') == [(1,)]
    store.close()
    for name in ('a"; DROP SCHEMA x; --', "x" * 58, "ab"):
        with pytest.raises(Terminal, match=r"cannot name a table: give 3 to 57 letters, digits, '_', '-' or '.'"):
            PostgresStore(url=url, table=name)


def test_errors_name_the_cause_and_the_cure_and_no_password(url: str) -> None:
    execute(url, "CREATE ROLE stranger LOGIN PASSWORD 'pw-of-stranger'")
    host = url.rpartition("@")[2]
    for address, message in (
        (f"postgresql://stranger:wrong-secret@{host}", "password authentication failed .* correct the store's address"),
        (f"postgresql://stranger:pw-of-stranger@{host}x", "does not exist.*correct the store's address or its user"),
        (
            "postgresql://stranger:pw-of-stranger@127.0.0.1:nine/x",
            "invalid integer value .*: correct the store's address",
        ),
        (f"postgresql://stranger:pw-of-stranger@{host}", "permission denied for schema state_own: grant this user"),
    ):
        store = PostgresStore(url=address, table="own", attempts=1)
        with pytest.raises(Terminal, match=message) as refused:
            store.get([ROW])
        assert "secret" not in str(refused.value)
        assert "pw-of" not in str(refused.value)
        store.close()
    execute(url, "DROP ROLE stranger")
    for address in ("mysql://a:wrong-secret@b/c", "nothing"):
        with pytest.raises(
            Terminal, match=r"the store's address is .*: give postgresql://user@host:port/database"
        ) as refused:
            PostgresStore(url=address, table="own")
        assert "secret" not in str(refused.value)
    unreachable = PostgresStore(url="postgresql://a@127.0.0.1:1/c", table="own", attempts=2)
    with pytest.raises(Transient, match="try again; is the store's address right and reachable"):
        unreachable.get([ROW])
    assert unreachable.spent == {"retries BatchGetItem": 1}


def test_without_keys_an_error_shows_no_value_of_a_row() -> None:
    store = PostgresStore(url="postgresql://a@127.0.0.1:1/c", table="own", attempts=1, show_keys=False)
    for ask in (
        lambda: store.get([Key("EDGE#star#who=octocat", "x")]),
        lambda: store.write(Write(Key("TABLE#user", "octocat"), {"n": 1})),
        lambda: store.partition("EDGE#star#who=octocat"),
    ):
        with pytest.raises(Transient) as refused:
            ask()
        assert "octocat" not in str(refused.value)
