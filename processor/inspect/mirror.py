"""Copies the state's rows into plain tables of Postgres, where a product's SQL answers the documents that should be published.

Promises: the mirror reads the rows from the table's own partitions, strongly consistent, without an index and without the steps.
It holds one page of rows at a time, and reads an entity once for all products, until `forget`. It leaves out rows that Postgres
cannot hold, and names them. Does not: read all rows at one moment.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from processor.inspect.postgres_values import why_not_held
from processor.plan.declared_columns import declared_row
from processor.plan.plan import EntityPlan, Plan
from processor.product.join_fields import array_of
from processor.product.product import Product
from processor.records.record import Value
from statestore.items import Row
from statestore.keys import partitions
from statestore.store import Store


class SqlTables(Protocol):
    """Tables of entities that SQL runs over. `processor.inspect.oracle.Oracle` implements it."""

    def fill(self, name: str, rows: Iterable[Mapping[str, Value]], indexes: Collection[tuple[str, ...]]) -> None:
        """Replaces the table of an entity by one with these rows and with indexes of these columns."""

    def answer(self, product: Product) -> Iterator[tuple[str, str]]:
        """The key and the document, as JSON, of each root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutRow:
    """A row that the tables lack, because Postgres cannot hold it. `reason`: names the column."""

    entity: str
    row: Row
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A copy of the rows in `tables`. `report`: called with a line of progress before each entity is read. `left_out`: the rows
    that the copy lacks."""

    plan: Plan
    store: Store
    tables: SqlTables
    report: Callable[[str], None]
    left_out: list[LeftOutRow] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)

    def documents(self, product: Product) -> Iterator[tuple[str, str]]:
        """The answer of the product's SQL: the key and the document, as JSON, of each root."""
        for name in sorted({product.root, *(join.entity for _, join in product.walk())} - self._read):
            entity = self.plan.entities[name]
            self.report(f"reading the rows of {name} into Postgres")
            self.tables.fill(name, self._rows(entity), _indexes(entity))
            self._read.add(name)
        return self.tables.answer(product)

    def forget(self) -> None:
        """Forgets which entities were read, so that the next `documents` reads their rows again."""
        self._read.clear()
        self.left_out.clear()

    def _rows(self, entity: EntityPlan) -> Iterator[Mapping[str, Value]]:
        """The rows that Postgres can hold. Columns that no product uses are null."""
        used = None if entity.used is None else {*entity.used, *entity.joined(), *entity.entity.key}
        for pk in partitions(entity.name, entity.entity.shards):
            for item in self.store.items(pk):
                row = declared_row(item, entity)
                if row.columns is None:
                    continue
                if reason := why_not_held(entity.entity, row.columns, used):
                    self.left_out.append(LeftOutRow(entity=entity.name, row=row, reason=reason))
                else:
                    yield row.columns if used is None else {name: row.columns.get(name) for name in used}


def _indexes(entity: EntityPlan) -> set[tuple[str, ...]]:
    """The columns that joins find rows by, except keys and elements of arrays."""
    return {columns for columns in (*entity.slots.values(), *entity.edges.values()) if array_of(columns) is None}
