"""Makes the documents of a product from plain tables, by nested loops: the meaning of a product, without its requests.

`tests/simulator/test_oracle.py` compares these documents with the answer of Postgres to the product's SQL.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from processor.language.product.document import GONE, Match, Renderer, message_key
from processor.language.product.expressions.expression import ClockTime
from processor.language.product.join_fields import convert
from processor.language.product.product import Definitions, GroupEntity, Join, Product, root_entity
from processor.values import canonical_json
from processor.values.entity import Compare, Entity
from registry.fields import column_of, computed_column
from tests.simulator.history import Tables
from tests.simulator.shapes import Row


def documents(
    product: Product,
    definitions: Definitions,
    tables: Tables,
    clock: int = 0,
    changes: dict[str, int | None] | None = None,
) -> dict[str, Any]:
    """The documents of all roots, by message key, as a reader decodes them from JSON. Fails where the text of a document is
    another JSON than that of its value. `clock`: of the product, in seconds since 1970. `changes`: gets the tick of each root
    from which on its document may differ."""
    renderer = Renderer(product=product, entities=definitions.entities, tally=Counter(), clock=ClockTime(clock))
    root = root_entity(product, definitions.entities)
    found = {}
    for row in roots(root, tables, definitions):
        match = _match(row, product.joins, definitions, root, tables)
        document = renderer.document(match)
        if changes is not None:
            changes[canonical_json.dumps({c: row[c] for c in root.key})] = renderer.clock.changes
        text = renderer.text(match)
        if text is not GONE:
            assert text == canonical_json.dumps(document)
            key = message_key(product, canonical_json.dumps({c: row[c] for c in root.key}))
            found[key] = canonical_json.loads(text)
    return found


def roots(root: Entity, tables: Tables, definitions: Definitions) -> Iterable[Row]:
    """The rows of the root entity; of groups, the value of each."""
    if not isinstance(root, GroupEntity):
        return tables[root.name].values()
    rows = definitions.entities[root.rows]
    values = (
        root.of_row({c: _canonical(rows, c, row.get(c)) for c in rows.columns}) for row in tables[rows.name].values()
    )
    return {tuple(value.values()): value for value in values if None not in value.values()}.values()


def canonical_row(row: Row, entity: Entity) -> Row:
    """The columns of a row as the job stores them."""
    return {c: _canonical(entity, c, row.get(c)) for c in entity.columns}


def _match(row: Row, joins: Iterable[Join], definitions: Definitions, entity: Entity, tables: Tables) -> Match:
    match = Match(columns=canonical_row(row, entity), more={})
    for join in joins:
        below = definitions.entities[join.entity]
        match.found[join.name] = [
            _match(other, join.joins, definitions, below, tables)
            for other in tables[join.entity].values()
            if not _keys(_with_computed(other, join.child_columns, below), join.child_columns, join).isdisjoint(
                _keys(_with_computed(row, join.parent_columns, entity), join.parent_columns, join)
            )
        ]
    return match


def _with_computed(row: Row, fields: tuple[str, ...], entity: Entity) -> Row:
    """The row with the values of expressions that are fields of a join."""
    computed = [column for column in map(column_of, fields) if computed_column(column)]
    if not computed:
        return row
    columns = {c: _canonical(entity, c, row.get(c)) for c in entity.columns}
    return {**row, **{column: convert(columns, (column,))[column] for column in computed}}


def _keys(row: Row, fields: tuple[str, ...], join: Join) -> set[tuple[Any, ...]]:
    """The join keys of a row: one from its columns, or one from each element of an array. A key with a null joins nothing."""
    array = next((field.split("[]")[0] for field in fields if "[]" in field), None)
    found = {
        tuple(row.get(f) if "[]" not in f else _member(element, f.partition("[].")[2]) for f in fields)
        for element in ([None] if array is None else row.get(array) or [])
    }
    compares = join.compare or ((),) * len(fields)
    return {tuple(map(_folded, key, compares)) for key in found if None not in key}


def _folded(value: Any, compare: Compare) -> Any:
    if not isinstance(value, str):
        return value
    value = value.lower() if "ci" in compare else value
    return value.rstrip(" ") if "trimmed" in compare else value


def _member(element: Any, name: str) -> Any:
    value = element if not name else element.get(name) if isinstance(element, dict) else None
    return None if isinstance(value, dict | list) else value


def _canonical(entity: Entity, column: str, value: Any) -> Any:
    return Decimal(repr(value)) if entity.columns[column].name == "float" and value is not None else value
