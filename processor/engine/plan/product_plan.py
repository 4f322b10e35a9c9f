"""A product of the plan, compiled against the registry's slot assignments: its joins, each with its access paths.

Both sides of a join encode their keys alike. So a key from one row's slot serves as it is in the other side's slot, sort key or
edges. `processor.engine.plan.compile_plan` makes these values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from processor.language.product.join_fields import join_keys
from processor.language.product.product import OPEN, Columns, Gate, Join, Product
from processor.values.record import Value
from registry.model import JoinSpec, PlannedPath


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan:
    """A join of a product, compiled: a node of its tree. `spec`: the join as the registry stores it. `parent`: the index of the
    node above it, None for the root.
    `own_slot`: the slot (or the fields of edges) of the child that holds the join key, None when the join's columns are
    the child's primary key. Either `child_columns` or `parent_columns` may hold elements of an array
    (`processor.language.product.join_fields`). `child_converted`, `parent_converted`: what has another form in their keys."""

    join: Join
    spec: JoinSpec
    parent: int | None
    above: str
    child_columns: Columns
    parent_columns: Columns
    down: PlannedPath
    up: PlannedPath
    own_slot: int | str | None
    used: frozenset[str] | None
    below: tuple[int, ...]
    child_converted: Columns = ()
    parent_converted: Columns = ()

    def child_keys(self, columns: Mapping[str, Value]) -> list[str | None]:
        """The keys by which a row of the child joins."""
        return join_keys(self.child_columns, columns, self.child_converted)

    def parent_keys(self, columns: Mapping[str, Value]) -> list[str | None]:
        """The keys by which a row above joins."""
        return join_keys(self.parent_columns, columns, self.parent_converted)

    def sides(self) -> Iterator[tuple[str, PlannedPath, Columns]]:
        """Both sides of the join: the entity whose rows a lookup finds, its access path, and the fields that hold the
        key."""
        yield self.join.entity, self.down, self.child_columns
        yield self.above, self.up, self.parent_columns


class LedgerPlace(NamedTuple):
    """The place of a product in the ledger. `root`: its root entity; `number`: the product's there, never given to another."""

    root: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan:
    """A product, compiled: nodes parents first; `top`: the nodes right below the root; `used`: the root's columns it
    reads. `number`: of its ledger entries, among the products of its root. `paused`: the job publishes none of its documents for
    now; `retracted`: no root has a document any more."""

    product: Product
    version: int
    number: int
    nodes: tuple[JoinPlan, ...]
    top: tuple[int, ...]
    used: frozenset[str] | None
    paused: bool = False
    retracted: bool = False

    @property
    def gate(self) -> Gate:
        """The gate of its documents. Tombstones of a retracted product wait for nothing: the job removes it after its walk."""
        return OPEN if self.retracted else self.product.gate

    @property
    def ledger(self) -> LedgerPlace:
        """The place of the product in the ledger."""
        return LedgerPlace(self.product.root, self.number)

    def paths(self) -> list[str]:
        """The names of the nodes from the root on: `stars.repo`."""
        found: list[str] = []
        for node in self.nodes:
            found.append(node.join.name if node.parent is None else f"{found[node.parent]}.{node.join.name}")
        return found
