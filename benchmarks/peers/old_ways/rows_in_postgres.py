"""The way of a relational database: rows in plain tables of Postgres, and the product's SQL for the roots that a change concerns.

A batch is one transaction:

1. Upsert and delete the rows: one statement for each table, which returns the old and the new rows (PostgreSQL 18).
2. Find the roots: for each place of a changed row in a product, one statement joins its old and new keys up to the root. Rows
   above that changed too bring their own keys, so the present rows are enough.
3. Run the product's SQL for these roots only: one statement for each product.
4. Store the fingerprints of the documents, and send those whose fingerprint differs.

Promises: the primary key of each table, and an index of the columns on both sides of each join. Does not: order two
publishers of one document, or send documents after a crash between the commit and the sending.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import psutil
import psycopg
from psycopg.types.string import TextLoader

from benchmarks.peers.old_ways.way import DocumentTopics, WayCounts, digest, last_changes, places
from processor.engine.plan.plan import Plan, ProductPlan
from processor.language.product.sql_printer import product_sql, quote, sql_type, table_ddl, table_name
from processor.values.entity import Entity
from processor.values.record import Record, Value
from statestore import keys

SENT = "create table sent (product text, root text, hash text, primary key (product, root))"
REMEMBER = """
insert into sent select %s, * from unnest(%s::text[], %s::text[])
on conflict (product, root) do update set hash = excluded.hash where sent.hash <> excluded.hash returning root
"""
FORGET = "delete from sent where product = %s and root = any(%s) returning root"
ROWS_READ = "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables"
Keys = set[tuple[Any, ...]]


class RowsInPostgres:
    """A loop over an empty database. `server`: the main process of Postgres."""

    def __init__(self, url: str, server: int, plan: Plan) -> None:
        self._plan, self._server = plan, psutil.Process(server)
        self._connection = psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1))
        self._connection.adapters.register_loader("json", TextLoader)
        self._topics = DocumentTopics()
        self._statements = self._batches = 0
        self._entities = plan.declared_entities
        self._queries = {name: self._query(product) for name, product in plan.products.items()}
        for statement in ("set timezone to 'UTC'", SENT, *self._tables()):
            self._connection.execute(statement.encode())
        self._connection.commit()

    def process(self, records: list[Record]) -> None:
        self._batches += 1
        below: dict[tuple[str, int], Keys] = defaultdict(set)
        roots: dict[str, Keys] = defaultdict(set)
        for entity, old, new in self._store(records):
            for product, index in places(self._plan, entity, old, new):
                node = None if index is None else self._plan.products[product].nodes[index]
                columns = self._entities[entity].key if node is None else node.child_columns
                found = {tuple(row[column] for column in columns) for row in (old, new) if row}
                if index is None:
                    roots[product] |= found
                else:
                    below[product, index] |= {key for key in found if None not in key}
        for (product, index), wanted in below.items():
            if wanted:
                roots[product] |= self._roots(self._plan.products[product], index, wanted)
        for product, keys_ in roots.items():
            self._publish(product, keys_)
        self._connection.commit()
        if self._batches & (self._batches - 1) == 0:  # the tables have doubled, so the planner needs other statistics
            self._connection.execute("analyze")
            self._connection.commit()

    def finish(self) -> None:
        """Does nothing: no batch leaves work."""

    def counts(self) -> WayCounts:
        self._connection.execute("select pg_stat_force_next_flush()")
        self._connection.commit()
        (rows,) = self._connection.execute(ROWS_READ).fetchone() or (0,)
        self._connection.commit()
        return WayCounts(
            requests=self._statements, rows=int(rows), documents=self._topics.sent, server_cpu=self._server_cpu()
        )

    def documents(self) -> dict[str, dict[str, Value]]:
        return self._topics.documents()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        self._statements += 1
        return self._connection.execute(statement.encode(), values).fetchall()

    def _server_cpu(self) -> float:
        """CPU seconds of Postgres: of the main process, of the processes that it had, and of those that it has."""
        main, now = self._server.cpu_times(), self._server.children()
        ended = main.user + main.system + main.children_user + main.children_system
        return float(ended + sum(sum(process.cpu_times()[:2]) for process in now))

    def _tables(self) -> list[str]:
        made = []
        for name, entity in self._entities.items():
            made += [table_ddl(entity), f"alter table {table_name(name, None)} add primary key ({_list(entity.key)})"]
        sides = {side for product in self._plan.products.values() for node in product.nodes for side in node.sides()}
        joined = {(name, columns) for name, _, columns in sides if columns != self._entities[name].key}
        return made + [
            f"create index on {table_name(name, None)} ({_list(columns)})" for name, columns in sorted(joined)
        ]

    def _store(self, records: list[Record]) -> list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
        """The old and the new row of each changed row, by entity; None where there is none."""
        gone: dict[str, list[Any]] = defaultdict(list)
        kept: dict[str, list[Any]] = defaultdict(list)
        for (name, _), change in last_changes(records, self._plan).items():
            if change.row is None:
                gone[name].append(change.key)
            else:
                kept[name].append([change.row[column] for column in self._entities[name].columns])
        found = []
        for name in gone.keys() | kept.keys():
            entity = self._entities[name]
            returned: list[tuple[Any, ...]] = []
            if name in kept:
                returned += self._run(_upsert(entity), *_arrays(kept[name]))
            if name in gone:
                returned += self._run(_delete(entity), *_arrays(gone[name]))
            width = len(entity.columns)
            found += [(name, _row(entity, row[:width]), _row(entity, row[width:])) for row in returned]
        return found

    def _roots(self, product: ProductPlan, index: int, wanted: Keys) -> Keys:
        """The keys of the roots above the rows of a join that have one of the keys `wanted`."""
        columns = product.nodes[index].child_columns
        types = [self._entities[product.nodes[index].join.entity].columns[column] for column in columns]
        below, text = "changed", f"from {_unnest(map(sql_type, types))} as changed({_list(columns)})"
        place: int | None = index
        while place is not None:
            node, above = product.nodes[place], f"above_{place}"
            pairs = zip(node.parent_columns, node.child_columns, strict=True)
            joined = " and ".join(f"{above}.{quote(parent)} = {below}.{quote(child)}" for parent, child in pairs)
            text += f"\njoin {table_name(node.above, None)} as {above} on {joined}"
            below, place = above, node.parent
        selected = ", ".join(f"{below}.{quote(column)}" for column in self._entities[product.product.root].key)
        return set(self._run(f"select distinct {selected}\n{text}", *_arrays(wanted)))

    def _query(self, product: ProductPlan) -> str:
        """The product's SQL, with the root's table cut to the roots that the parameters give. Its first alias is the root's."""
        root = self._entities[product.product.root]
        table = table_name(root.name, None)
        given = f"({_list(root.key)}) in (select * from {_unnest(sql_type(root.columns[c]) for c in root.key)})"
        text = product_sql(product.product, self._entities).replace("%", "%%")
        return text.replace(f"FROM {table} AS t0", f"FROM (select * from {table} where {given}) AS t0", 1)

    def _publish(self, product: str, roots: Keys) -> None:
        answer = self._run(self._queries[product], *_arrays(roots))
        texts = {_encode(row[:-1]): row[-1].encode() for row in answer}
        if texts:
            for (root,) in self._run(REMEMBER, product, list(texts), [digest(text) for text in texts.values()]):
                self._topics.send(product, root, texts[root])
        if gone := {_encode(root) for root in roots} - texts.keys():
            for (root,) in self._run(FORGET, product, list(gone)):
                self._topics.send(product, root, None)


def _arrays(rows: Collection[Sequence[Any]]) -> list[list[Any]]:
    """One array for each column, as the parameters of `_unnest`."""
    return [list(column) for column in zip(*rows, strict=True)]


def _list(columns: Collection[str]) -> str:
    return ", ".join(map(quote, columns))


def _unnest(types: Any) -> str:
    return f"unnest({', '.join(f'%s::{name}[]' for name in types)})"


def _upsert(entity: Entity) -> str:
    """Writes rows, and returns those that changed: the columns before, then the columns after."""
    table, columns = table_name(entity.name, None), _list(entity.columns)
    rows = _unnest(map(sql_type, entity.columns.values()))
    changed = ", ".join(f"{quote(column)} = excluded.{quote(column)}" for column in entity.columns)
    differs = " or ".join(f"t.{quote(c)} is distinct from excluded.{quote(c)}" for c in entity.columns)
    return (
        f"insert into {table} as t ({columns}) select * from {rows} on conflict ({_list(entity.key)})\n"
        f"do update set {changed} where {differs} {_returning(entity)}"
    )


def _delete(entity: Entity) -> str:
    rows = _unnest(sql_type(entity.columns[column]) for column in entity.key)
    return (
        f"delete from {table_name(entity.name, None)} where ({_list(entity.key)}) in (select * from {rows}) "
        f"{_returning(entity)}"
    )


def _returning(entity: Entity) -> str:
    return "returning " + ", ".join(f"{side}.{quote(column)}" for side in ("old", "new") for column in entity.columns)


def _row(entity: Entity, values: Sequence[Any]) -> dict[str, Any] | None:
    """The row with these columns; None where all key columns are null: there is no row."""
    row = dict(zip(entity.columns, values, strict=True))
    return row if row[entity.key[0]] is not None else None


def _encode(key: Sequence[Any]) -> str:
    return keys.encode(key) or ""
