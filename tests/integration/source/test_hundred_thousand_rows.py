"""A comparison of 100,000 rows with ten differences: what it reads from the source and from the table, printed."""

from time import monotonic

import pytest
from sqlalchemy import Engine

from processor.engine.plan.planning import plan_alone
from processor.engine.plan.row_image import image_of
from processor.language.definitions.load import load
from processor.tools.source.compared_table import ComparedTable, compare_with
from processor.tools.source.comparison import DigestFile, SourceComparison
from processor.tools.source.session import read_source_tables, source_session, table_of
from processor.values.record import Change, Record
from statestore.memory import MeteredStore
from statestore.writes import write_image

pytestmark = pytest.mark.slow
ROWS = 100_000


def test_ten_differences_among_a_hundred_thousand_rows(psql: Engine, schema: str, postgres_url: str) -> None:
    text = f"item: {{source: {schema}.item, key: [id], columns: {{id: int, name: string, n: decimal, at: timestamp}}}}"
    plan = plan_alone(load({"entities.yaml": text}), 3).entities["item"]
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}; set local search_path to {schema}")
        connection.exec_driver_sql(
            "create table item (id bigint primary key, name text, n numeric(12,2), at timestamptz)"
        )
        connection.exec_driver_sql(
            f"insert into item select i, repeat('name ' || i, 12), i, 'epoch'::timestamptz + i * interval '1 s' "
            f"from generate_series(1, {ROWS}) i"
        )
        rows = connection.exec_driver_sql(
            "select id, name, n::int, to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') from item"
        ).all()
    store = MeteredStore(3)
    for offset, (id, name, n, at) in enumerate(rows):
        record = Record(topic="item", partition=0, offset=offset, epoch=1, key=None, value=None)
        change = Change("item", (id,), {"id": id, "name": name, "n": n, "at": at}, record)
        store.write(write_image(image_of(change, plan, plan.key(str(id)), None, 0), below="9"))
    with psql.begin() as connection:
        connection.exec_driver_sql(f"update {schema}.item set n = -1 where id % 20000 = 7".replace("%", "%%"))
        connection.exec_driver_sql(f"delete from {schema}.item where id in (100, 50000, 99999)")
        connection.exec_driver_sql(f"insert into {schema}.item values (-1, '', 0, now()), (200000, '', 0, now())")
    units, began = store.read_units, monotonic()
    with source_session(postgres_url.replace("+psycopg", "")) as session:
        table = table_of(plan.entity, read_source_tables(session))
        assert table is not None
        compared = compare_with(plan, table, mysql=False)
        assert isinstance(compared, ComparedTable)
        catalogue = session.bytes_read
        comparison = SourceComparison(
            session=session, store=store, digests=DigestFile(None), passed=lambda: None, report=lambda *_: None
        )
        comparison.scan(compared)
        found = comparison.result(compared)
        read = session.bytes_read - catalogue
    took = monotonic() - began
    print(f"{took:.1f} s, {read:,} bytes of the source, {store.read_units - units:,} read units")
    assert {kind: len(found.of(kind)) for kind in ("missing", "orphaned", "different")} == {
        "missing": 2,
        "orphaned": 3,
        "different": 5,
    }
