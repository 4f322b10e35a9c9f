"""The plan that a job runs: its products compiled against the registry's slot assignments, each join with its access
paths.

Reads are by key, by edges, or by one query of the slot that the registry assigned (`registry.model.PlannedPath`). Both sides
of a join encode their keys alike. So a key from one row's slot serves as it is in the other side's slot, sort key or
edges. `processor.engine.plan.compile_plan` makes plans.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from processor.engine.plan.product_plan import ProductPlan
from processor.engine.plan.step import Lookup
from processor.engine.plan.tree import RootTree, places_of, trees_of
from processor.language.product.join_fields import convert, join_keys
from processor.language.product.product import Columns
from processor.values.entity import Entity
from processor.values.record import Value
from registry.model import EdgePath, KeyPath, PlannedPath, SlotPath, column_of
from statestore import keys
from statestore.items import Edge, slot_name
from statestore.keys import Key
from statestore.store import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPlan:
    """An entity as the job stores it. `used`: the columns that some product reads, None for all of them. `indexed`: those that
    it reads through an index, and the key columns; none without slots. `edges`: the
    fields that edges name its rows by, as `keys.field_names` encodes them. `layout`: the registry version at which a slot or
    an edge of its rows was written first. `converted`: what has another form in the keys of slots and edges than in the row
    (`join_fields.converted_of`). `dropped`: columns that the entity declares no more, and that rows of older plans hold as
    declared ones. `unread`: the declared columns that no
    product reads, no key has, and no slot or edge holds."""

    entity: Entity
    declared: Columns
    slots: Mapping[int, Columns]
    used: frozenset[str] | None
    edges: Mapping[str, Columns]
    layout: int
    converted: Columns = ()
    dropped: Columns = ()
    indexed: frozenset[str] | None = frozenset()
    unread: Columns = ()

    @property
    def name(self) -> str:
        """The entity's name."""
        return self.entity.name

    def key(self, sk: str) -> Key:
        """The key of the row with this encoded primary key."""
        return keys.row_key(self.entity.name, self.entity.shards, sk)

    def partitions(self) -> list[str]:
        """The partitions of the table that hold the rows."""
        return keys.partitions(self.entity.name, self.entity.shards)

    def concerns_indexes(self, changed: frozenset[str] | None) -> bool:
        """Whether a change of these columns (None: of all) changes what the indexes show of a row."""
        return bool(self.slots) and (
            changed is None or bool(changed if self.indexed is None else changed & self.indexed)
        )

    def joined(self) -> frozenset[str]:
        """The columns that slots and edges hold."""
        indexed = [*self.slots.values(), *self.edges.values()]
        return frozenset(column_of(field) for fields in indexed for field in fields)

    def edges_of(self, columns: Mapping[str, Value] | None) -> frozenset[Edge] | None:
        """The edges of a row with these columns (None: a deleted row); None when the entity has no edges."""
        if not self.edges:
            return None
        edges = self.edges if columns is not None else {}
        found = {name: join_keys(fields, columns or {}, self.converted) for name, fields in edges.items()}
        return frozenset((name, key) for name, join_keys_ in found.items() for key in join_keys_ if key is not None)

    def slots_of(self, columns: Mapping[str, Value]) -> dict[int, str | None]:
        """The key of a row with these columns in each slot; None where the row has no key."""
        columns = convert(columns, self.converted)
        return {slot: keys.encode([*map(columns.get, assigned)]) for slot, assigned in self.slots.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a worker needs to know, as plain data. `version` is the registry's. `occurrences`: entity -> its places
    in products, as (product, node), node None for the root. `trees`: root entity -> the tree of its products; `places`: entity ->
    its places in these trees, as (root entity, node), node None for the root."""

    version: int
    entities: Mapping[str, EntityPlan]
    products: Mapping[str, ProductPlan]
    occurrences: Mapping[str, tuple[tuple[str, int | None], ...]] = field(default_factory=dict)
    trees: Mapping[str, RootTree] = field(default_factory=dict)
    places: Mapping[str, tuple[tuple[str, int | None], ...]] = field(default_factory=dict)

    @property
    def declared_entities(self) -> dict[str, Entity]:
        """The entities as the definitions declare them."""
        return {name: planned.entity for name, planned in self.entities.items()}

    def without(self, products: Collection[str]) -> "Plan":
        """The plan of a job that writes the same rows, and publishes no document of these products."""
        if not products:
            return self
        kept = {name: product for name, product in self.products.items() if name not in products}
        occurrences = {
            entity: tuple(place for place in places if place[0] in kept) for entity, places in self.occurrences.items()
        }
        trees = trees_of(kept.values())
        return replace(self, products=kept, occurrences=occurrences, trees=trees, places=places_of(trees))

    def with_topics(self, topics: Mapping[str, str]) -> "Plan":
        """The plan of a job that reads these entities from other topics than theirs. `topics`: entity -> topic."""
        moved = {
            name: replace(self.entities[name], entity=replace(self.entities[name].entity, topic=topic))
            for name, topic in topics.items()
        }
        return replace(self, entities={**self.entities, **moved}) if moved else self

    def request(self, entity: str, access: PlannedPath, key: str) -> Key | Lookup:
        """The request for the rows of `entity` that hold `key`."""
        if isinstance(access, KeyPath):
            return self.entities[entity].key(key)
        return Lookup(self.source(entity, access, key))

    def source(self, entity: str, access: SlotPath | EdgePath, key: str) -> Query | str:
        """The index query, or the partition of edges, that finds the rows of `entity` that hold `key`."""
        if isinstance(access, EdgePath):
            return keys.edge_partition(entity, keys.field_names(access.fields), key)
        return self.query(entity, access, key)

    def query(self, entity: str, access: SlotPath, key: str) -> Query:
        """The index query that finds the rows of `entity` that hold `key`."""
        return Query(slot_name(access.slot), key, entity if access.pinned else None)
