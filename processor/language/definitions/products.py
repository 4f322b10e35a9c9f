"""Reads a product file: one document definition, with `publish`, which says when its documents go out."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, get_args

from processor.language.definitions.entities import read_column, read_compare, with_computed
from processor.language.definitions.groups import read_group, scope_of_group
from processor.language.definitions.joins import read_joins
from processor.language.definitions.names import NameScope
from processor.language.definitions.problems import Problems, suggest
from processor.language.definitions.selections import check_members, read_selection, read_where
from processor.language.definitions.shape import (
    PRODUCT,
    PUBLISH,
    as_map,
    as_name,
    as_text,
    as_topic,
    check_keys,
    read_duration,
    write_duration,
)
from processor.language.definitions.yaml import Map, Scalar, YamlNode
from processor.language.product.product import (
    AT_MOST,
    OPEN,
    Compares,
    DocumentFormat,
    Gate,
    GroupColumn,
    Product,
    compared_by_entity,
)
from processor.values.entity import ColumnType, Compare, ComputedColumn, Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The name and the topic of a product, with their nodes. The reader knows them even when the product's tree has problems."""

    name: str
    name_node: YamlNode
    topic: str
    topic_node: YamlNode


def read_product(
    root: YamlNode, entities: Mapping[str, Entity | None], problems: Problems
) -> tuple[Heading | None, Product | None]:
    """The heading and the product of a file. Each is None where it has problems."""
    before = len(problems)
    cure = "write at least `product: name` and `root: entity`; move a file that is not a product elsewhere"
    body = as_map(root, "a product file", cure, problems)
    if body is None:
        return None, None
    if "product" not in body.entries:
        problems.add(body, "the file has no `product:`", cure)
        return None, None
    check_keys(body, "a product", PRODUCT, problems)
    heading = _read_heading(body, problems)
    if (compare := body.get("compare")) is not None:
        entities = _read_compares(compare, entities, problems)
    if (computed := body.get("computed")) is not None:
        entities = _read_computed(computed, entities, problems)
    if "sql" in body.entries:
        from processor.language.definitions.sql import read_sql  # few products need it: `check` starts sooner

        body = read_sql(body, entities, problems)
    reads: set[tuple[str, str]] = set()
    by: tuple[GroupColumn, ...] = ()
    if body and isinstance(groups := body.get("root"), Map):
        grouped = read_group(groups, body, entities, reads, problems)
        if grouped is None:
            return heading, None
        entity, by, body = grouped.group.rows, grouped.by, grouped.body
        scope = scope_of_group(grouped.group, entities, reads)
    else:
        named = _read_root(body, entities, problems) if body else None
        if body is None or named is None:
            return heading, None
        entity, scope = named, NameScope(entities=entities, entity=named, reads=reads)
    joins = read_joins(body, scope, problems)
    scope = replace(scope, joins=joins)
    selection = read_selection(body, scope, problems)
    where = read_where(body.get("where"), scope, problems)
    check_members(body, selection, joins, scope, problems)
    document_format = _read_format(body, problems)
    gate = read_gate(body.get("publish"), problems)
    if heading is None or len(problems) > before:
        return heading, None
    valid_joins = tuple(join for join in joins.values() if join is not None)
    product = Product(
        name=heading.name,
        topic=heading.topic,
        root=entity,
        selection=selection,
        joins=valid_joins,
        where=where,
        format=document_format,
        gate=gate,
        by=by,
    )
    product = replace(product, compare=_compares(product, entities), computed=_computed(reads, entities))
    if gate.whole:
        _check_transactions(body, product, entities, problems)
    if document_format == "avro":
        _check_names(body, product, entities, problems)
    return heading, product


def _read_compares(
    node: YamlNode, entities: Mapping[str, Entity | None], problems: Problems
) -> Mapping[str, Entity | None]:
    """The entities with the columns as they compare in the product. A column that `compare` does not name compares as it is."""
    said: dict[tuple[str, str], Compare] = {}
    cure = "write `compare: {entity: {column: ci}}`"
    body = None if isinstance(node, Map) and not node.entries else as_map(node, "`compare`", cure, problems)
    for name, (key, of_entity) in body.entries.items() if body else ():
        columns = as_map(of_entity, f"`compare` of `{name}`", cure, problems)
        entity = entities.get(name)
        if name not in entities:
            problems.add(key, f"there is no entity `{name}`", suggest(name, entities))
        for column, (column_key, words) in columns.entries.items() if columns and entity else ():
            said[name, column] = read_compare(words, problems)
            declared = entity.columns.get(column) if entity else None
            if entity and declared is None:
                problems.add(column_key, f"entity `{name}` has no column `{column}`", suggest(column, entity.columns))
            elif declared and declared.name != "string":
                what = f"`{name}.{column}` is {declared}, which has no text to compare"
                problems.add(column_key, what, "name columns of type string in `compare`")
    return {name: entity and _compared(entity, said, problems) for name, entity in entities.items()}


def _read_computed(
    node: YamlNode, entities: Mapping[str, Entity | None], problems: Problems
) -> Mapping[str, Entity | None]:
    """The entities with the computed columns of the product, in place of their own."""
    cure = "write `computed: {entity: {column: {type: T, as: expression}}}`"
    body = as_map(node, "`computed`", cure, problems)
    found: dict[str, dict[str, tuple[ColumnType, YamlNode]]] = {}
    for name, (key, of_entity) in body.entries.items() if body else ():
        if name not in entities:
            problems.add(key, f"there is no entity `{name}`", suggest(name, entities))
        columns = as_map(of_entity, f"`computed` of `{name}`", cure, problems)
        for column, (column_key, said) in columns.entries.items() if columns else ():
            declared, expression = (
                read_column(column_key, said, problems),
                said.get("as") if isinstance(said, Map) else None,
            )
            if expression is None:
                problems.add(column_key, f"column `{column}` has no `as`", cure)
            elif declared:
                found.setdefault(name, {})[column] = declared, expression
    return {name: entity and with_computed(entity, found.get(name, {}), problems) for name, entity in entities.items()}


def _computed(
    reads: Iterable[tuple[str, str]], entities: Mapping[str, Entity | None]
) -> Mapping[str, Mapping[str, ComputedColumn]]:
    """The computed columns that the product reads, with those that their expressions name, in the order of their entities."""
    named: dict[str, set[str]] = {}
    for name, column in reads:
        named.setdefault(name, set()).add(column)
    found: dict[str, dict[str, ComputedColumn]] = {}
    for name in sorted(named):
        entity = entities[name]
        computed = entity.computed if entity else {}
        for column, made in reversed(list(computed.items())):  # an expression names columns before it
            if column in named[name]:
                named[name] |= {other for other in computed if re.search(rf"\b{re.escape(other)}\b", made.text)}
        found[name] = {column: made for column, made in computed.items() if column in named[name]}
    return found


def _compared(entity: Entity, said: Mapping[tuple[str, str], Compare], problems: Problems) -> Entity:
    found = {name: said.get((entity.name, name), ()) for name in entity.columns}
    if all(column.compare == found[name] for name, column in entity.columns.items()):
        return entity
    columns = {name: replace(column, compare=found[name]) for name, column in entity.columns.items()}
    again = {name: (replace(c.type, compare=c.compare), _text_node(c.text)) for name, c in entity.computed.items()}
    return with_computed(replace(entity, columns=columns), again, problems)


def _text_node(text: str) -> Scalar:
    return Scalar(file="entities.yaml", line=1, value=text, text=text)


def _compares(product: Product, entities: Mapping[str, Entity | None]) -> Compares:
    """How the columns compare that the product compares, without those that compare as they are."""
    found: dict[str, dict[str, Compare]] = {}
    for name, columns in compared_by_entity(product).items():
        entity = entities[name]
        for column in sorted(columns) if entity else ():
            if entity and (declared := entity.columns.get(column)) and declared.compare:
                found.setdefault(name, {})[column] = declared.compare
    return found


def _read_heading(body: Map, problems: Problems) -> Heading | None:
    name_node = body.entries["product"][1]
    name = as_name(name_node, "the name of a product", problems)
    topic_node = body.get("topic")
    if name is None:
        return None
    topic = as_topic(topic_node or name_node, problems)
    return Heading(name=name, name_node=name_node, topic=topic or name, topic_node=topic_node or name_node)


def _read_root(body: Map, entities: Mapping[str, Entity | None], problems: Problems) -> str | None:
    node = body.get("root")
    if node is None:
        problems.add(body.key_node("product"), "the product has no `root`", "write `root: entity`")
        return None
    entity = as_text(node, "`root`", "write the name of an entity", problems)
    if entity is not None and entity not in entities:
        problems.add(node, f"there is no entity `{entity}`", suggest(entity, entities))
        return None
    return entity


def _read_format(body: Map, problems: Problems) -> DocumentFormat:
    node = body.get("format")
    if node is None:
        return "json"
    formats: tuple[DocumentFormat, ...] = get_args(DocumentFormat)
    text = as_text(node, "`format`", f"write one of {', '.join(formats)}", problems)
    found = next((known for known in formats if known == text), None)
    if text is not None and found is None:
        problems.add(node, f"there is no format `{text}`", suggest(text, formats))
    return found or "json"


def _check_names(body: Map, product: Product, entities: Mapping[str, Entity | None], problems: Problems) -> None:
    """Adds a problem where Avro cannot tell two members apart."""
    from processor.language.product.avro import NAMES_CURE, avro_schema  # few products need it: `check` starts sooner

    try:
        avro_schema(product, {name: entity for name, entity in entities.items() if entity is not None})
    except ValueError as error:
        problems.add(body.key_node("format"), str(error), NAMES_CURE)


def _check_transactions(body: Map, product: Product, entities: Mapping[str, Entity | None], problems: Problems) -> None:
    """Adds a problem where no table of the product says where its transactions end."""
    names = {product.root, *(join.entity for _, join in product.walk())}
    read = [entity for entity in map(entities.get, names) if entity is not None]
    if not any(entity.transactions for entity in read):
        problems.add(
            body.key_node("publish"),
            "`transactions: whole` needs the connector's transaction metadata, and no entity of the product names its topic",
            "write `transactions: TOPIC` in entities.yaml, and set provide.transaction.metadata = true in the connector",
        )


DURATIONS: Final = ("quiet", "every", "at_most")


def read_gate(node: YamlNode | None, problems: Problems) -> Gate:
    """The gate of a product; `OPEN` where it has none, or has problems."""
    before = len(problems)
    body = as_map(node, "`publish`", "write one of `transactions`, `quiet` and `every` below it", problems)
    if body is None:
        return OPEN
    check_keys(body, "`publish`", PUBLISH, problems)
    found = {name: _read_wait(body, name, problems) for name in DURATIONS}
    waits = {name: seconds for name, seconds in found.items() if seconds is not None}
    whole = _read_transactions(body, problems)
    longest = max(waits.get("quiet", 0.0), waits.get("every", 0.0))
    at_most = waits.pop("at_most", max(AT_MOST, longest))
    if at_most < longest:
        what = f"`at_most` is {write_duration(at_most)}, and `quiet` or `every` is {write_duration(longest)}"
        problems.add(body.key_node("at_most"), what, f"write `at_most: {write_duration(longest)}` or more")
    if len(problems) == before and not whole and not waits:
        cure = "write one of `transactions: whole`, `quiet: 2 s` and `every: 30 s`"
        problems.add(body.key_node("at_most"), "`at_most` bounds a wait, and `publish` asks for none", cure)
    return Gate(whole=whole, at_most=at_most, **waits) if len(problems) == before else OPEN


def _read_wait(body: Map, name: str, problems: Problems) -> float | None:
    node = body.get(name)
    return None if node is None else read_duration(node, f"`{name}`", problems)


def _read_transactions(body: Map, problems: Problems) -> bool:
    node = body.get("transactions")
    if node is None:
        return False
    cure = "write `transactions: whole`, or leave it out"
    text = as_text(node, "`transactions`", cure, problems)
    if text is not None and text != "whole":
        problems.add(node, f"`transactions` is `{text}`", cure)
    return text == "whole"
