"""The target at an address: a table in Postgres, or an index of OpenSearch or Elasticsearch."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import product_of
from processor.errors import SettingError
from processor.job.landing.landing_tables import NAME_BYTES, OWN_COLUMNS
from processor.job.landing.postgres_target import PostgresTarget
from processor.job.landing.search_target import SearchTarget
from processor.job.landing.target import Target
from processor.language.product.document_type import document_schema, index_mapping
from processor.language.product.product import Product
from processor.values.entity import Entity


def open_target(
    url: str, name: str, plan: Plan, product: str, indexes: Sequence[str], *, versions: bool = True
) -> Target:
    """The target of a product of the plan. `indexes`: members that get a column and an index in Postgres. `versions`: whether the
    plan knows the version of its products. Raises SettingError, LandingError."""
    planned = product_of(plan, product)
    entities = plan.declared_entities
    if urlsplit(url).scheme not in ("http", "https"):
        kinds = _indexes(planned.product, entities, indexes)
        return PostgresTarget(url, name, kinds, planned.version if versions else 0)
    if indexes:
        raise SettingError("--index is for Postgres: an index of OpenSearch has every declared member")
    return SearchTarget(url, name, planned.version, index_mapping(planned.product, entities))


def _indexes(product: Product, entities: Mapping[str, Entity], indexes: Sequence[str]) -> Mapping[str, str]:
    """The members that get an index, and their types in the product's JSON Schema."""
    members = document_schema(product, entities)["properties"]
    for member in indexes:
        if member not in members:
            raise SettingError(f"--index {member}: documents of {product.name} have the members {', '.join(members)}")
        if member in OWN_COLUMNS:
            raise SettingError(
                f"--index {member}: each table of a landing has a column of this name; let the product show the member "
                "under another one, or make an index of your own on document"
            )
        if len(member.encode()) > NAME_BYTES:
            raise SettingError(
                f"--index {member}: a column in Postgres has a name of at most {NAME_BYTES} bytes; let the product show the "
                "member under a shorter one, or make an index of your own on document"
            )
    types = {member: members[member].get("type", "") for member in indexes}
    return {name: type_ if isinstance(type_, str) else type_[0] for name, type_ in types.items()}
