"""A product file: one document definition."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from processor.definitions.columns import Level
from processor.definitions.errors import Problems, suggest
from processor.definitions.joins import read_joins
from processor.definitions.selection import check_members, read_selection, read_where
from processor.definitions.shape import as_map, as_name, as_text, as_topic, check_keys
from processor.definitions.sql_product import read_sql
from processor.definitions.yaml_nodes import Map, Node
from processor.model.entity import Entity
from processor.model.product import Product

_KEYS = ("product", "root", "topic", "where", "fields", "value", "join", "embed", "sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a product is called, with the nodes that say so: known even when its tree has problems."""

    name: str
    name_node: Node
    topic: str
    topic_node: Node


def read_product(
    root: Node, entities: Mapping[str, Entity | None], problems: Problems
) -> tuple[Heading | None, Product | None]:
    """The product of a file; None where there are problems."""
    before = len(problems)
    cure = "write `product: name`, `root: entity` and what it shows; files that are no products belong elsewhere"
    body = as_map(root, "a product file", cure, problems)
    if body is None:
        return None, None
    if "product" not in body.entries:
        problems.add(body, "the file has no `product:`", cure)
        return None, None
    check_keys(body, "a product", _KEYS, problems)
    heading = _read_heading(body, problems)
    if "sql" in body.entries:
        body = read_sql(body, entities, problems)
    entity = _read_root(body, entities, problems) if body else None
    if body is None or entity is None:
        return heading, None
    level = Level(entities=entities, entity=entity)
    joins = read_joins(body, level, True, problems)
    level = replace(level, joins=joins)
    selection = read_selection(body, level, problems)
    where = read_where(body.get("where"), level, problems)
    check_members(body, selection, joins, level, problems)
    if heading is None or len(problems) > before:
        return heading, None
    found = tuple(join for join in joins.values() if join is not None)
    product = Product(
        name=heading.name, topic=heading.topic, root=entity, selection=selection, joins=found, where=where
    )
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
        problems.add(body.key("product"), "the product has no `root`", "write `root: entity`")
        return None
    entity = as_text(node, "`root`", "write the name of an entity", problems)
    if entity is not None and entity not in entities:
        problems.add(node, f"there is no entity `{entity}`", suggest(entity, entities))
        return None
    return entity
