"""JSON Schemas of entities.yaml, product files, tests and the settings file (TOML), made from the rules of their readers.

A schema refuses no file that the readers take. It knows the shape of a file; names of entities and columns, and expressions, stay
the readers' own: `statestore check` names their mistakes.

From the root of a checkout, `python -m processor.language.definitions.json_schemas` writes the files that the package ships. The
rest of the module is pure.

`write_schemas` copies the shipped files into a directory of definitions, whose files name them: a path into the package would be
another one on each machine.
"""

import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from processor.environment.settings.kafka import MECHANISMS, NAMES, PROTOCOLS, REFERENCES, SECRET_NAME
from processor.environment.settings.schema_registry import IDS, KINDS, SCHEMA_REGISTRY_NAMES
from processor.environment.settings.settings import FORMER, GROUPS
from processor.language.definitions.shape import (
    ENTITY,
    EXPRESSION,
    FILE,
    JOIN,
    NAME_TEXT,
    PART,
    PRODUCT,
    TEST,
    THROUGH,
    UNION,
    JsonSchema,
    mapping,
)

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
"""The editors' language servers know this draft best."""
_ENTITY: Final[JsonSchema] = {"$ref": "#/definitions/entity"}
_NOT_BOTH: Final[JsonSchema] = {"not": {"anyOf": [{"required": ["value", other]} for other in ("fields", "except")]}}


def entities_schema() -> JsonSchema:
    """Of entities.yaml."""
    words = {name: {"anyOf": [word.schema, _ENTITY], "description": word.meaning} for name, word in FILE.items()}
    entities = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": NAME_TEXT,
        "properties": words,
        "additionalProperties": _ENTITY,
    }
    entity = mapping(ENTITY, "key", "columns")
    return _file("entities.yaml: the tables of the source", entities) | {"definitions": {"entity": entity}}


def product_schema() -> JsonSchema:
    """Of a product file."""
    of_sql = ("root", "where", "fields", "except", "value", "join", "embed")
    product = mapping(PRODUCT, "product") | {
        "oneOf": [{"required": ["root"]}, {"required": ["sql"]}],
        "allOf": [_NOT_BOTH, *({"not": {"required": ["sql", name]}} for name in of_sql)],
    }
    one_or_many = {"oneOf": [{"required": ["one"]}, {"required": ["many"]}]}
    join = mapping(JOIN, "on") | one_or_many | _NOT_BOTH
    joins = {"type": "object", "minProperties": 1, "additionalProperties": join}
    embeds = joins | {"additionalProperties": {"anyOf": [join, mapping(UNION, "union")]}}
    of = {"$ref": "#/definitions/member"}
    nested = [{"type": "object", "minProperties": 1, "additionalProperties": of}, {"type": "array", "items": of}]
    member = {"anyOf": [EXPRESSION, *nested]}
    definitions = {
        "joins": joins,
        "embeds": embeds,
        "part": mapping(PART, "many", "on", "fields"),
        "through": mapping(THROUGH, "on") | one_or_many,
        "member": member,
    }
    return _file("a product: one document for each row of its root", product) | {"definitions": definitions}


def tests_schema() -> JsonSchema:
    """Of a file of tests."""
    expects = {"anyOf": [{"required": ["expect"]}, {"required": ["contains"]}]}
    return _file("tests of products", {"type": "array", "items": mapping(TEST, "test") | expects})


def _file(title: str, schema: JsonSchema) -> JsonSchema:
    return {"$schema": DRAFT, "title": f"statestore: {title}", **schema}


_VALUE: Final[JsonSchema] = {"type": ["string", "integer", "boolean"]}
_CHOICES: Final = {
    "security.protocol": list(PROTOCOLS), "sasl.mechanism": list(MECHANISMS), "kind": list(KINDS), "ids": list(IDS),
}  # fmt: skip


def settings_schema() -> JsonSchema:
    """Of the settings file. Secrets are references, and the reader checks them."""
    settings = {f.name: f for group in GROUPS.values() for f in fields(group)}
    found = {name: _setting(f) for name, f in settings.items()}
    found |= {old: _setting(settings[new]) | {"description": f"now `{new}`"} for old, new in FORMER.items()}
    kafka = "How the clients of Kafka connect; [kafka.librdkafka] and [kafka.java] are for one client."
    registry = "The registry of schemas of records, and how a client proves who it is."
    found |= {"kafka": _table(kafka, NAMES), "schema_registry": _table(registry, SCHEMA_REGISTRY_NAMES)}
    reference = {"type": "string", "pattern": f"^({'|'.join(REFERENCES)})"}
    found["secrets"] = {
        "type": "object",
        "description": "The secrets of `hmac_sha256(x, :name)`: the name of each, and where its value is.",
        "patternProperties": {f"^{SECRET_NAME.pattern}$": reference},
        "additionalProperties": False,
    }
    return {
        "$schema": DRAFT,
        "title": "statestore: the settings file",
        "type": "object",
        "properties": found,
        "additionalProperties": False,
    }


def _setting(f: Any) -> JsonSchema:
    """The schema of a setting. The reader takes a number or a boolean as text, too."""
    said = {"description": f.metadata["help"], **({} if f.default == "" else {"default": f.default})}
    match f.default:
        case bool():
            return {"enum": [True, False, "true", "false"], **said}
        case int() | float():
            kind, text = ("integer", r"^\s*[+-]?[\d_]+\s*$") if isinstance(f.default, int) else ("number", r"\d")
            limits = {"minimum": f.metadata["low"], "maximum": f.metadata["high"]}
            return {"anyOf": [{"type": kind, **limits}, {"type": "string", "pattern": text}], **said}
    return {"type": ["string", "integer"], **said}


def _table(description: str, names: tuple[str, ...]) -> JsonSchema:
    """A table with names like "ssl.ca.pem". Without quotes such a name is a table in TOML, which the reader takes, too."""
    named = {name: {"enum": _CHOICES[name]} if name in _CHOICES else _VALUE for name in names}
    return {
        "type": "object",
        "description": description,
        "properties": named,
        "additionalProperties": {"type": "object"},
    }


FILES = Path("processor/language/definitions/schemas")


def generated_schemas() -> dict[str, str]:
    """The text of each schema by its name."""
    made = {
        "entities": entities_schema(),
        "product": product_schema(),
        "tests": tests_schema(),
        "settings": settings_schema(),
    }
    return {name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in made.items()}


if __name__ == "__main__":
    for name, text in generated_schemas().items():
        (FILES / f"{name}.json").write_text(text, encoding="utf-8")


FOLDER: Final = ".schemas"
SCHEMAS: Final = ("entities", "product", "tests", "settings")


def schema_text(name: str) -> str:
    """The text of a schema that the package ships."""
    return (files("processor.language.definitions") / "schemas" / f"{name}.json").read_text(encoding="utf-8")


def schema_line(name: str) -> str:
    """The first line of a file in the directory, which names its schema for the YAML language server of an editor."""
    return f"# yaml-language-server: $schema={FOLDER}/{name}.json"


def write_schemas(directory: Path) -> None:
    """Puts the copies of this release into the directory."""
    folder = directory / FOLDER
    folder.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
