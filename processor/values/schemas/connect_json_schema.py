"""Reads a JSON Schema as Kafka Connect's JsonSchemaConverter writes it: gives the schema in the form of the JsonConverter.

Kafka Connect names a type by `title`, its base by `connect.type`, and its parameters by `connect.parameters`. A schema of another
writer has none of these, and says nothing about how to read a value.

A `$ref` leads into the document (`#/definitions/Row`, `#`), or to a schema that the registry keeps as a reference, by its name or
its `$id`. One that leads nowhere becomes a schema that refuses the values of its column, and names the reference.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urljoin

from processor.values.schemas.chosen_branches import union_schema
from processor.values.schemas.connect_values import DECIMAL
from processor.values.schemas.schema_readings import UNKNOWN_REFERENCE

_WORDS: Final = ("title", "connect.type", "connect.parameters")
_NO_REFERENCES: Final[Mapping[str, Any]] = {}


def connect_schema(schema: Any, references: Mapping[str, Any] = _NO_REFERENCES) -> dict[str, Any]:
    """The schema by Kafka Connect; empty for a schema that says nothing. `references`: name -> the parsed schema of each other
    document that the registry keeps for it."""
    return _Reader(references).read(schema, schema)


class _Reader:
    """Reads the schemas of a document and of those that it refers to. A schema that contains itself says nothing there."""

    def __init__(self, references: Mapping[str, Any]) -> None:
        self._references = references
        self._made: dict[int, dict[str, Any]] = {}

    def read(self, schema: Any, document: Any) -> dict[str, Any]:
        """The schema, which is in this document."""
        if not isinstance(schema, dict):
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._referred(schema, document)
        whole = schema.get("allOf")
        if isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], dict):
            return self.read(whole[0] | {name: value for name, value in schema.items() if name != "allOf"}, document)
        choice: list[Any] = next(
            (schema[word] for word in ("oneOf", "anyOf") if isinstance(schema.get(word), list)), []
        )
        branches = [branch for branch in choice if isinstance(branch, dict) and branch.get("type") != "null"]
        if branches:  # Kafka Connect writes what may be null as a choice of two
            return union_schema([self.read(branch, document) for branch in branches])
        return self._single(schema, document)

    def _single(self, schema: Mapping[str, Any], document: Any) -> dict[str, Any]:
        kind, title = schema.get("connect.type", schema.get("type")), schema.get("title")
        made: dict[str, Any] = {"type": kind}
        if isinstance(title, str) and (title != DECIMAL or kind == "bytes"):
            made["name"] = title  # decimals may also come as numbers
        if isinstance(schema.get("connect.parameters"), dict):
            made["parameters"] = schema["connect.parameters"]
        if kind == "array":
            made["items"] = self.read(schema.get("items"), document)
        elif isinstance(properties := schema.get("properties"), dict):
            fields = [{**self.read(inner, document), "field": name} for name, inner in properties.items()]
            made |= {"type": "struct", "fields": fields}
        return made

    def _referred(self, schema: Mapping[str, Any], document: Any) -> dict[str, Any]:
        """The schema that a reference means, with the words of Kafka Connect next to the reference."""
        where, _, pointer = schema["$ref"].partition("#")
        target_document = self._document(where, document)
        target = _at(target_document, unquote(pointer))
        if target is None:
            return {"type": UNKNOWN_REFERENCE, "name": schema["$ref"]}
        if id(target) not in self._made:
            self._made[id(target)] = {}
            self._made[id(target)] = self.read(target, target_document)
        own = self._single({name: schema[name] for name in _WORDS if name in schema}, document)
        return self._made[id(target)] | {name: value for name, value in own.items() if value is not None}

    def _document(self, where: str, document: Any) -> Any:
        """The document with this name or `$id`; None where nobody has it."""
        base = document.get("$id") if isinstance(document, dict) else None
        whole = urljoin(base, where) if isinstance(base, str) else where
        if not where or whole == base:
            return document
        for name, known in self._references.items():
            if name in (where, whole) or (isinstance(known, dict) and known.get("$id") in (where, whole)):
                return known
        return None


def _at(document: Any, pointer: str) -> dict[str, Any] | None:
    """The schema at a pointer (`/definitions/Row`), or with this anchor; empty: the document."""
    if pointer and not pointer.startswith("/"):
        return next(
            (one for one in _anchored(document) if pointer in (one.get("$anchor"), one.get("$id", "")[1:])), None
        )
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and step.isascii() and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            document = document.get(step) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else None


def _anchored(document: Any) -> Iterator[dict[str, Any]]:
    for word in ("$defs", "definitions"):
        found = document.get(word) if isinstance(document, dict) else None
        yield from (one for one in (found.values() if isinstance(found, dict) else ()) if isinstance(one, dict))
