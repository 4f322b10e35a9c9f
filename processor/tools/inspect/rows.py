"""Stored rows: what the table knows of a row, the row as text and as one JSON object, lists of rows, and references to a row.

The table knows the change that wrote a row last, and why a column of it has no value. A list reads at most as many items as its
limit, a page at a time. The references are the rows of other entities that hold a join key of a row: by the joins of all
products, from both sides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from processor.engine.plan.plan import EntityPlan, JoinPlan, Plan, ProductPlan
from processor.engine.plan.row_image import declared_columns, group_of_item, held_undeclared, undeclared_columns
from processor.engine.plan.step import Step
from processor.engine.protocol.ledger import NO_DOCUMENT, message_key, read_entry
from processor.language.product.product import Columns
from processor.text import table_lines
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import NO_TIMESTAMP
from registry.fields import shown_fields
from registry.model import EpochBoundary, KeyPath, PlannedPath
from statestore import keys
from statestore.items import DELETED, decode_version, entity_of_item, key_of_item, read_row, slot_name, version_of_item
from statestore.keys import Key
from statestore.store import Item, Page, Store

FormerTopics = Mapping[tuple[str, int], str]
"""(entity, epoch) -> the topic that the entity read in this epoch. Without an entry, the entity's own topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The record that wrote a row last. A row keeps this position, and no time."""

    topic: str
    epoch: int
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}, epoch {self.epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyColumn:
    """A column of a row without a value. `why`: the record that left it so, or the reason that no record gave it one. `lost`: the
    row may have had a value, which `keep: declared` did not store."""

    column: str
    why: str
    lost: bool = False

    def __str__(self) -> str:
        return f"{self.column} ({self.why})"


def former_topics(boundaries: Iterable[EpochBoundary]) -> FormerTopics:
    """The topics of the entities by their epochs."""
    return {(boundary.entity, boundary.epoch): boundary.topic for boundary in boundaries if boundary.entity}


def origin_of(item: Item, entity: EntityPlan, topics: FormerTopics) -> Origin:
    """The record that wrote the row, or its delete marker."""
    return origin_at(version_of_item(item), entity, topics)


def absence_text(entity: EntityPlan, sk: str) -> str:
    """What can be the cause where the table has neither the row nor its delete marker. `sk`: the row's encoded key."""
    return (
        f"the table has no row {entity.name} {sk}: no record of it came from topic {entity.entity.topic}, "
        "`statestore dead-letters list` has it, or a delete or an erasure is long ago"
    )


def empty_columns(
    item: Item, entity: EntityPlan, columns: Iterable[str], topics: FormerTopics
) -> tuple[EmptyColumn, ...]:
    """Those of the columns that have no value in the row, in their order."""
    shown = declared_columns(item, entity) or {}
    return tuple(_empty_column(item, entity, name, topics) for name in columns if shown.get(name) is None)


def _empty_column(item: Item, entity: EntityPlan, column: str, topics: FormerTopics) -> EmptyColumn:
    row = read_row(item)
    if column in (row.columns or {}) or row.more.get(column, "") is None:
        wrote = origin_at(row.since.get(column, row.version), entity, topics)
        same = wrote.epoch == decode_version(row.version)[0]
        place = f"offset {wrote.offset}" if same else str(wrote)
        return EmptyColumn(column=column, why=f"null since {place} or longer")
    older = "the row is older than the declaration of the column"
    if column in row.more:
        return EmptyColumn(column=column, why=f"{older}, and its value has another type")
    if entity.entity.keeps_undeclared:
        return EmptyColumn(column=column, why="no record of the row had a value")
    cure = f"a new snapshot of topic {entity.entity.topic} brings it back"
    return EmptyColumn(column=column, why=f"{older}, and `keep: declared` did not store it: {cure}", lost=True)


def origin_at(version: str, entity: EntityPlan, topics: FormerTopics) -> Origin:
    """The record of a version of a row."""
    epoch, partition, offset = decode_version(version)
    topic = topics.get((entity.name, epoch), entity.entity.topic)
    return Origin(topic=topic, epoch=epoch, partition=partition, offset=offset)


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
    return f"of {shown_fields(columns[name])}" if name in columns else "no product uses it"


def page_of(store: Store, partitions: Sequence[str], after: Key | None, limit: int) -> Page:
    """At most `limit` items of these partitions, one partition after the other, strongly consistent. Starts behind `after`."""
    items: list[Item] = []
    begin = partitions.index(after.pk) if after is not None else 0
    for partition in partitions[begin:]:
        place = after if after is not None and after.pk == partition else None
        while True:
            page = store.page(partition, place, limit - len(items))
            items += page.items
            if len(items) >= limit:
                return Page(items, key_of_item(items[-1]))
            if page.after is None:
                break
            place = page.after
    return Page(items, None)


def recorded_rows(items: Iterable[Item], entity: EntityPlan, topics: FormerTopics) -> Iterator[Record]:
    """The rows as plain records of their topics, without deleted rows. A row keeps no timestamp."""
    for item in items:
        columns = declared_columns(item, entity)
        if columns is not None:
            origin = origin_of(item, entity, topics)
            yield Record(
                topic=origin.topic,
                partition=origin.partition,
                offset=origin.offset,
                timestamp=NO_TIMESTAMP,
                key=canonical_json.encode({name: columns[name] for name in entity.entity.key}),
                value=canonical_json.encode({**columns, **undeclared_columns(item, entity)}),
            )


def document_keys(items: Iterable[Item], number: int) -> Iterator[str]:
    """The keys of the roots that have a document of the product with this number, by the items of its ledger group."""
    for item in items:
        entry = read_entry(item, number)
        if entry.mark is not None and entry.hash != NO_DOCUMENT:
            yield message_key(item)


def roots_in(store: Store, plan: Plan, product: ProductPlan) -> Iterator[str]:
    """The encoded keys of the roots in the table: of the stored rows, or of their groups."""
    entity, found = plan.entities[product.product.root], set[str | None]([None])
    for partition in entity.partitions():
        if product.group is None:
            yield from (key.sk for key in store.walk(partition, DELETED))
            continue
        for item in store.items(partition):
            group = group_of_item(item, entity, product.group)
            if group is not None and group not in found:
                found.add(group)
                yield group


class Reference(NamedTuple):
    """The rows of `entity` whose `columns` hold a join key of the row: their primary keys, column by column."""

    entity: str
    columns: Columns
    keys: tuple[Mapping[str, Any], ...]


class _Side(NamedTuple):
    """The other side of a join of the row: its entity and columns, how to find its rows, and the keys to ask for."""

    entity: str
    columns: Columns
    access: PlannedPath
    keys: tuple[str, ...]
    node: JoinPlan
    below: bool


def references(plan: Plan, entity: str, columns: Mapping[str, Any]) -> Step[tuple[Reference, ...]]:
    """The rows that refer to a row of `entity` with these columns, and those that it refers to, by entity and columns."""
    found: dict[tuple[str, Columns], dict[tuple[Any, ...], Mapping[str, Any]]] = {}
    for side in _sides(plan, entity, columns):
        other = plan.entities[side.entity]
        rows = found.setdefault((side.entity, side.columns), {})
        answers = yield tuple(plan.request(side.entity, side.access, key) for key in side.keys)
        for key, answer in zip(side.keys, answers, strict=True):
            for row in _rows(answer, other):
                held = side.node.child_keys(row) if side.below else side.node.stored_keys(row)
                if key in held and (side.entity != entity or _key_of(row, other) != _key_of(columns, other)):
                    primary = _key_of(row, other)
                    rows[tuple(primary.values())] = primary
    return tuple(Reference(*at, tuple(rows.values())) for at, rows in sorted(found.items()))


def _sides(plan: Plan, entity: str, columns: Mapping[str, Any]) -> Iterator[_Side]:
    for product in plan.products.values():
        for node in product.nodes:
            if node.above == entity:
                keys = tuple(key for key in node.stored_keys(columns) if key is not None)
                yield _Side(node.join.entity, node.child_columns, node.down, keys, node, True)
            if node.join.entity == entity and not (node.above_columns and isinstance(node.up, KeyPath)):
                keys = tuple(key for key in node.child_keys(columns) if key is not None)
                yield _Side(node.above, node.above_columns or node.parent_columns, node.up, keys, node, False)


def _rows(answer: Any, entity: EntityPlan) -> Iterator[Mapping[str, Any]]:
    items = answer.items if isinstance(answer, Page) else [answer] if answer is not None else []
    for item in items:
        if entity_of_item(item) == entity.name and (row := declared_columns(item, entity)) is not None:
            yield row


def _key_of(row: Mapping[str, Any], entity: EntityPlan) -> dict[str, Any]:
    return {name: row[name] for name in entity.entity.key}
