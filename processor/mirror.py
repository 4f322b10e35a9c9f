"""The state's rows in plain tables of Postgres, where a product's SQL answers what its documents should be.

Promises: rows are read from the table's own partitions, strongly consistent, by no index and none of the steps, and held a page
at a time; an entity is read once for all products, until `forget`. Does not: read all rows at one moment.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from processor.model.change import Value
from processor.model.elements import array_of
from processor.model.plan import EntityPlan, Plan
from processor.model.product import Product
from statestore.items import read_columns
from statestore.keys import partitions
from statestore.store import Store


class Tables(Protocol):
    """Tables of entities that SQL can be run over; `processor.oracle.Oracle` is one."""

    def fill(self, name: str, rows: Iterable[Mapping[str, Value]], indexes: Collection[tuple[str, ...]]) -> None:
        """Makes the table of an entity anew, with these rows and with indexes of these columns."""

    def answer(self, product: Product) -> Iterator[tuple[str, str]]:
        """The key and the document, as JSON, of each root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A copy of the rows in `tables`. `report`: told which entity is being read."""

    plan: Plan
    store: Store
    tables: Tables
    report: Callable[[str], None]
    _read: set[str] = field(default_factory=set)

    def documents(self, product: Product) -> Iterator[tuple[str, str]]:
        """The key and the document, as JSON, of each root, as the product's SQL answers them."""
        for name in sorted({product.root, *(join.entity for _, join in product.walk())} - self._read):
            entity = self.plan.entities[name]
            self.report(f"reading the rows of {name} into Postgres")
            self.tables.fill(name, self._rows(entity), _indexes(entity))
            self._read.add(name)
        return self.tables.answer(product)

    def forget(self) -> None:
        """Has rows read anew."""
        self._read.clear()

    def _rows(self, entity: EntityPlan) -> Iterator[Mapping[str, Value]]:
        for pk in partitions(entity.name, entity.entity.shards):
            for item in self.store.items(pk):
                columns = read_columns(item)
                if columns is not None:
                    yield columns


def _indexes(entity: EntityPlan) -> set[tuple[str, ...]]:
    """The columns that joins find rows by, but for keys and elements of arrays."""
    return {columns for columns in (*entity.slots.values(), *entity.edges.values()) if array_of(columns) is None}
