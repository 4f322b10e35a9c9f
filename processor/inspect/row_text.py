"""A stored row as text, and as one JSON object: its columns, its slots with their keys, and the record that wrote it last."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from processor.inspect.stored_row import FormerTopics, empty_columns, origin_of
from processor.plan.declared_columns import declared_columns, held_undeclared
from processor.plan.plan import EntityPlan
from processor.records import canonical_json
from processor.wording.text_table import table_lines
from statestore import keys
from statestore.items import read_row, slot_name
from statestore.store import Item


def row_object(item: Item, entity: EntityPlan, topics: FormerTopics) -> dict[str, Any]:
    """The row as JSON values. `columns` is null for a deleted row; a slot without a key is null; `former`: keys that the row had,
    and that the job still looks at."""
    row, origin = read_row(item), origin_of(item, entity, topics)
    columns = declared_columns(item, entity)
    return {
        "entity": entity.name,
        "key": row.key.sk,
        "origin": asdict(origin),
        "columns": columns,
        "undeclared": {} if columns is None else held_undeclared(item, entity),
        "slots": {slot_name(k): None if keys.is_no_key(key) else key for k, key in sorted(row.slots.items())},
        "edges": [list(edge) for edge in sorted(row.edges)],
        "former": [[slot_name(one.slot) if isinstance(one.slot, int) else one.slot, one.key] for one in row.pending],
    }


def row_lines(item: Item, entity: EntityPlan, topics: FormerTopics) -> Iterator[str]:
    """The row as a table of its columns, then of its slots."""
    found = row_object(item, entity, topics)
    wrote = f"deleted by {origin_of(item, entity, topics)}" if found["columns"] is None else ""
    yield f"{found['entity']} {found['key']}; {wrote or origin_of(item, entity, topics)}"
    why = {one.column: one.why for one in empty_columns(item, entity, entity.entity.columns, topics)}
    declared = found["columns"] or {}
    rows = [[name, _text(declared.get(name)), why.get(name, "")] for name in entity.entity.columns if declared]
    note = "not declared" if entity.entity.keeps_undeclared else "not declared: the next write of the row drops it"
    rows += [[name, _text(value), note] for name, value in found["undeclared"].items()]
    rows += [[name, key or "no key", _columns_text(entity, name)] for name, key in found["slots"].items()]
    rows += [["edge", key, fields] for fields, key in found["edges"]]
    rows += [["former", key, place] for place, key in found["former"]]
    cells = [[cell.replace("\n", "\\n") for cell in row] for row in rows]  # no text of a row begins a line
    yield from (f"  {line}" for line in table_lines(cells))


def _text(value: Any) -> str:
    return canonical_json.dumps(value)


def _columns_text(entity: EntityPlan, name: str) -> str:
    columns: Mapping[str, tuple[str, ...]] = {slot_name(slot): held for slot, held in entity.slots.items()}
    return f"of {'#'.join(columns[name])}" if name in columns else "no product uses it"
