"""The documents of a product over plain tables, by nested loops: the meaning of a product, without its fetch steps.

`tests/simulator/test_oracle.py` compares it with the product's SQL, run by Postgres.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from processor.model import canonical_json
from processor.model.document import GONE, Match, Renderer
from processor.model.entity import Entity
from processor.model.product import Definitions, Join, Product
from tests.simulator.history import Tables
from tests.simulator.shapes import Row


def documents(product: Product, definitions: Definitions, tables: Tables) -> dict[str, Any]:
    """The documents of all roots, by message key, as they come back from JSON."""
    renderer = Renderer(product=product, entities=definitions.entities, tally=Counter())
    key = definitions.entities[product.root].key
    found = {}
    for row in tables[product.root].values():
        document = renderer.document(_match(row, product.joins, definitions, product.root, tables))
        if document is not GONE:
            found[canonical_json.dumps({c: row[c] for c in key})] = canonical_json.loads(canonical_json.dumps(document))
    return found


def _match(row: Row, joins: Iterable[Join], definitions: Definitions, entity: str, tables: Tables) -> Match:
    declared = definitions.entities[entity].columns
    columns = {c: _canonical(definitions.entities[entity], c, row.get(c)) for c in declared}
    match = Match(columns=columns, more={})
    for join in joins:
        match.found[join.name] = [
            _match(other, join.joins, definitions, join.entity, tables)
            for other in tables[join.entity].values()
            if not _keys(other, join.child_columns).isdisjoint(_keys(row, join.parent_columns))
        ]
    return match


def _keys(row: Row, fields: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """The values by which a row joins: those of its columns, or one of each element of an array; none with a null."""
    array = next((field.split("[]")[0] for field in fields if "[]" in field), None)
    found = {
        tuple(row.get(f) if "[]" not in f else _member(one, f.partition("[].")[2]) for f in fields)
        for one in ([None] if array is None else row.get(array) or [])
    }
    return {key for key in found if None not in key}


def _member(one: Any, name: str) -> Any:
    return one if not name else one.get(name) if isinstance(one, dict) else None


def _canonical(entity: Entity, column: str, value: Any) -> Any:
    return Decimal(repr(value)) if entity.columns[column].name == "float" and value is not None else value
