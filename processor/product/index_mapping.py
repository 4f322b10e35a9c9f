"""Writes the mapping of a product's documents for an index of OpenSearch or Elasticsearch.

A text is searched by its words, and under `.keyword` as a whole. A list of rows is an object, as the index itself would choose.
The index keeps every member, but searches only those that are declared: a json column and undeclared columns are not searched.
"""

from collections.abc import Mapping
from typing import Any, Final

from processor.errors import StatestoreError
from processor.product.document_type import DocumentType, ListType, ObjectType, ValueType, document_type
from processor.product.product import Product
from processor.records.entity import Entity

IndexMapping = dict[str, Any]

_KEPT: Final = {"type": "object", "enabled": False}
_KINDS: Final[Mapping[str, IndexMapping]] = {
    "int": {"type": "long"},
    "string": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
    "float": {"type": "double"},
    "decimal": {"type": "double"},
    "bool": {"type": "boolean"},
    "date": {"type": "date", "format": "strict_date"},
    "timestamp": {"type": "date", "format": "strict_date_optional_time"},
    "json": _KEPT,
}


def index_mapping(product: Product, entities: Mapping[str, Entity]) -> IndexMapping:
    """The mapping of a product's documents. Raises StatestoreError for documents that are no objects."""
    shown = document_type(product, entities)
    if not isinstance(shown, ObjectType):
        raise StatestoreError(
            f"documents of {product.name} are single values, and an index takes objects: give it `fields`"
        )
    return {"dynamic": False} | _mapping(shown)


def _mapping(of: DocumentType) -> IndexMapping:
    match of:
        case ValueType(column=column):
            return dict(_KEPT if column is None else _KINDS[column.name])
        case ObjectType(members=members):
            return {"properties": {name: _mapping(member) for name, member in members}}
        case ListType(items=items):
            return _mapping(items)
