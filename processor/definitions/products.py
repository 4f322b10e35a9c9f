"""Reads a product file: one document definition."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import get_args

from processor.definitions.expression_reader.names import NameScope
from processor.definitions.joins import read_joins
from processor.definitions.members import PRODUCT
from processor.definitions.problems import Problems, suggest
from processor.definitions.read_gate import read_gate
from processor.definitions.selection import check_members, read_selection, read_where
from processor.definitions.shape import as_map, as_name, as_text, as_topic, check_keys
from processor.definitions.yaml_nodes import Map, YamlNode
from processor.product.product import DocumentFormat, Product
from processor.records.entity import Entity


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
    if "sql" in body.entries:
        from processor.definitions.sql_reader.sql_product import read_sql  # few products need it: `check` starts sooner

        body = read_sql(body, entities, problems)
    entity = _read_root(body, entities, problems) if body else None
    if body is None or entity is None:
        return heading, None
    scope = NameScope(entities=entities, entity=entity)
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
    )
    if gate.whole:
        _check_transactions(body, product, entities, problems)
    if document_format == "avro":
        _check_names(body, product, entities, problems)
    return heading, product


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
    from processor.product.avro_document import NAMES_CURE, avro_schema  # few products need it: `check` starts sooner

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
