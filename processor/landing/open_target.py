"""The target at an address: a table in Postgres, or an index of OpenSearch or Elasticsearch."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from processor.errors import SettingError
from processor.landing.postgres_target import PostgresTarget
from processor.landing.search_target import SearchTarget
from processor.landing.target import Target
from processor.plan.plan import Plan
from processor.plan.planning import product_of
from processor.product.index_mapping import index_mapping
from processor.product.json_schema import document_schema
from processor.product.product import Product
from processor.records.entity import Entity


def open_target(url: str, name: str, plan: Plan, product: str, indexes: Sequence[str]) -> Target:
    """The target of a product of the plan. `indexes`: members that get a column and an index in Postgres. Raises SettingError,
    LandingError."""
    planned = product_of(plan, product)
    entities = plan.declared_entities
    if urlsplit(url).scheme not in ("http", "https"):
        return PostgresTarget(url, name, _indexes(planned.product, entities, indexes))
    if indexes:
        raise SettingError("--index is for Postgres: an index of OpenSearch has every declared member")
    return SearchTarget(url, name, planned.version, index_mapping(planned.product, entities))


def _indexes(product: Product, entities: Mapping[str, Entity], indexes: Sequence[str]) -> Mapping[str, str]:
    """The members that get an index, and their types in the product's JSON Schema."""
    members = document_schema(product, entities)["properties"]
    for member in indexes:
        if member not in members:
            raise SettingError(f"--index {member}: documents of {product.name} have the members {', '.join(members)}")
    types = {member: members[member].get("type", "") for member in indexes}
    return {name: type_ if isinstance(type_, str) else type_[0] for name, type_ in types.items()}
