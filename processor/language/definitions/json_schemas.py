"""JSON Schemas of entities.yaml, product files, tests and the settings file (TOML), made from the rules of their readers.

A schema refuses no file that the readers take. It knows the shape of a file; names of entities and columns, and expressions, stay
the readers' own: `statestore check` names their mistakes.

From the root of a checkout, `python -m processor.language.definitions.json_schemas` writes the files that the package ships. The
rest of the module is pure.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, get_args

from processor.environment.settings import schema_registry_access
from processor.environment.settings.kafka_security import MECHANISMS, NAMES, PROTOCOLS
from processor.environment.settings.settings import GROUPS
from processor.language.definitions.entities import KEEP, MOST_SHARDS, TRANSACTIONS, UNAVAILABLE
from processor.language.definitions.joins import MAX_LIMIT
from processor.language.definitions.products import DURATIONS
from processor.language.definitions.shape import (
    COLUMN,
    DURATION,
    ENTITY,
    FLAG,
    JOIN,
    NAME,
    NOTE,
    PAUSE,
    PRODUCT,
    PUBLISH,
    TEST,
    TOPIC,
    Members,
)
from processor.language.product.product import DocumentFormat
from processor.values.entity import (
    AbsentChoice,
    CompareWord,
    DecimalForm,
    KeepChoice,
    RecordFormat,
    TimestampUnit,
    TruncateChoice,
    TypeName,
)
from statestore.values import MAX_COLUMNS

JsonSchema = dict[str, Any]
DRAFT: Final = "http://json-schema.org/draft-07/schema#"
"""The editors' language servers know this draft best."""

_TEXT: Final[JsonSchema] = {"type": "string", "minLength": 1}
_NOTE: Final[Mapping[str, JsonSchema]] = {name: {"type": "string"} for name in NOTE}
_FLAG: Final[JsonSchema] = {"type": "boolean", "default": False}
_NAME: Final[JsonSchema] = {"type": "string", "pattern": f"^{NAME.pattern}$"}
_TOPIC: Final[JsonSchema] = {"type": "string", "pattern": f"^{TOPIC.pattern}$"}
_DURATION: Final[JsonSchema] = {"type": "string", "pattern": f"^{DURATION.pattern}$"}
_EXPRESSION: Final[JsonSchema] = {"type": ["string", "number", "boolean", "null"]}
_COLUMNS: Final[JsonSchema] = {"type": "array", "items": _TEXT}
_KEEP_TEXT: Final = "The columns that rows of all entities store, where an entity does not say it. Default: all."
_TRANSACTIONS_TEXT: Final = (
    "The topic of the transaction metadata of all entities that do not name another. Default: none."
)
_UNAVAILABLE_TEXT: Final = (
    "The unavailable.value.placeholder of the connector, of all entities that do not say it. Default: Debezium's."
)
_ENTITY: Final[JsonSchema] = {"$ref": "#/definitions/entity"}
_COMPARE: Final[JsonSchema] = {
    "anyOf": [
        {"enum": list(get_args(CompareWord))},
        {"type": "array", "items": {"enum": list(get_args(CompareWord))}},
    ]
}
_COMPARES: Final[JsonSchema] = {
    "type": "object",
    "additionalProperties": {"type": "object", "minProperties": 1, "additionalProperties": _COMPARE},
}
_JOINS: Final[JsonSchema] = {"$ref": "#/definitions/joins"}
_SELECTION: Final[Mapping[str, JsonSchema]] = {
    "where": _EXPRESSION,
    "fields": {"anyOf": [{**_COLUMNS, "uniqueItems": True}, {"type": "object", "additionalProperties": _EXPRESSION}]},
    "value": _EXPRESSION,
    "join": _JOINS,
    "embed": _JOINS,
}
_NOT_BOTH: Final[JsonSchema] = {"not": {"required": ["fields", "value"]}}


def entities_schema() -> JsonSchema:
    """Of entities.yaml."""
    columns = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": MAX_COLUMNS,
        "additionalProperties": _column(),
    }
    form, keep = {"enum": list(get_args(DecimalForm))}, {"enum": list(get_args(KeepChoice))}
    absent: JsonSchema = {"enum": [*get_args(AbsentChoice), None]}
    value = {"type": ["string", "number", "boolean"]}
    flag = _mapping(
        FLAG, {"column": _TEXT, "values": {"type": "array", "minItems": 1, "items": value}}, required=("column",)
    )
    entity = _mapping(
        ENTITY,
        {
            "topic": _TOPIC,
            "key": {**_COLUMNS, "minItems": 1, "uniqueItems": True},
            "columns": columns,
            "shards": {"type": "integer", "minimum": 1, "maximum": MOST_SHARDS, "default": 1},
            "format": {"enum": list(get_args(RecordFormat))},
            "decimals": {"anyOf": [form, {"type": "object", "additionalProperties": form}]},
            "truncate": {"enum": list(get_args(TruncateChoice)), "default": "refuse"},
            "source": _TEXT,
            "table": _TEXT,
            "deleted": {"anyOf": [flag, {"type": "array", "items": flag}]},
            **_NOTE,
            KEEP: keep,
            TRANSACTIONS: _TOPIC,
            UNAVAILABLE: _TEXT,
            "absent": {"anyOf": [absent, {"type": "object", "additionalProperties": absent}]},
        },
        required=("key", "columns"),
    )
    return _file(
        "entities.yaml: the tables of the source",
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": _NAME,
            "properties": {
                KEEP: {"anyOf": [keep, _ENTITY], "description": _KEEP_TEXT},
                TRANSACTIONS: {"anyOf": [_TOPIC, _ENTITY], "description": _TRANSACTIONS_TEXT},
                UNAVAILABLE: {"anyOf": [_TEXT, _ENTITY], "description": _UNAVAILABLE_TEXT},
            },
            "additionalProperties": _ENTITY,
        },
    ) | {"definitions": {"entity": entity}}


def product_schema() -> JsonSchema:
    """Of a product file."""
    shapes = {
        "product": _NAME,
        "root": _TEXT,
        "topic": _TOPIC,
        "format": {"enum": list(get_args(DocumentFormat)), "default": "json"},
        "publish": _publish(),
        "compare": _COMPARES,
        "sql": _TEXT,
        **_NOTE,
        **_SELECTION,
    }
    product = _mapping(PRODUCT, shapes, required=("product",)) | {
        "oneOf": [{"required": ["root"]}, {"required": ["sql"]}],
        "allOf": [_NOT_BOTH, *({"not": {"required": ["sql", name]}} for name in ("root", *_SELECTION))],
    }
    joins = {"type": "object", "minProperties": 1, "additionalProperties": _join()}
    return _file("a product: one document for each row of its root", product) | {"definitions": {"joins": joins}}


def tests_schema() -> JsonSchema:
    """Of a file of tests."""
    row = {"type": "object", "minProperties": 1}
    change = {
        "type": "object",
        "properties": {"topic": _TEXT},
        "required": ["topic"],
        "anyOf": [{"required": ["value"]}, {"required": ["value_base64"]}],
    }
    pause = _mapping(PAUSE, {"after": _DURATION}, required=("after",))
    shapes: dict[str, JsonSchema] = {
        "test": _TEXT,
        "product": _TEXT,
        "given": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "array", "items": row}},
        "changes": {"type": "array", "items": {"anyOf": [change, pause]}},
        "expect": {"type": "object", "minProperties": 1},
        "contains": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "object"}},
    }
    expects = {"anyOf": [{"required": ["expect"]}, {"required": ["contains"]}]}
    test = _mapping(TEST, shapes, required=("test",)) | expects
    return _file("tests of products", {"type": "array", "items": test})


def _publish() -> JsonSchema:
    shapes: dict[str, JsonSchema] = {"transactions": {"enum": ["whole"]}, **dict.fromkeys(DURATIONS, _DURATION)}
    return _mapping(PUBLISH, shapes, required=()) | {"minProperties": 1}


def _join() -> JsonSchema:
    shapes: dict[str, JsonSchema] = {
        "one": _TEXT,
        "many": _TEXT,
        "on": {"type": "object", "minProperties": 1, "additionalProperties": _TEXT},
        "strong": _FLAG,
        "required": _FLAG,
        "order_by": {"anyOf": [_TEXT, _COLUMNS]},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
        "total": _FLAG,
        **_SELECTION,
    }
    kinds = {"oneOf": [{"required": ["one"]}, {"required": ["many"]}]}
    return _mapping(JOIN, shapes, required=("on",)) | kinds | _NOT_BOTH


def _column() -> JsonSchema:
    """A column: its type, or a mapping with it. The common types to choose from, and all that the reader of types takes."""
    names, units = "|".join(get_args(TypeName)), "|".join(get_args(TimestampUnit))
    arguments = rf"decimal\s*\(\s*\d+\s*(,\s*\d+\s*)?\)|timestamp\s*\(\s*({units})\s*\)|json\s*\(\s*text\s*\)|({names})"
    common = [
        *get_args(TypeName),
        "decimal(12,2)",
        "timestamp(ms)",
        "timestamp(us)",
        "json(text)",
        "string[]",
        "int[]",
        "json[]",
    ]
    every = {"type": "string", "pattern": rf"^\s*({arguments})\s*(\[\s*\])?\s*$"}
    alone = {"anyOf": [{"enum": common}, every], "description": COLUMN["type"]}
    shapes = {"type": alone, "compare": _COMPARE, "not_null": _FLAG, "description": _NOTE["description"]}
    described = _mapping(COLUMN, shapes, required=("type",))
    return {"anyOf": [*alone["anyOf"], described], "description": alone["description"]}


def _mapping(members: Members, shapes: Mapping[str, JsonSchema], required: tuple[str, ...]) -> JsonSchema:
    """The schema of a mapping with exactly these members. Raises KeyError for a member without a shape."""
    properties = {name: {**shapes[name], "description": text} for name, text in members.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _file(title: str, schema: JsonSchema) -> JsonSchema:
    return {"$schema": DRAFT, "title": f"statestore: {title}", **schema}


_VALUE: Final[JsonSchema] = {"type": ["string", "integer", "boolean"]}
_CHOICES: Final = {"security.protocol": list(PROTOCOLS), "sasl.mechanism": list(MECHANISMS)}


def settings_schema() -> JsonSchema:
    """Of the settings file. Secrets are references, and the reader checks them."""
    found = {f.name: _setting(f) for group in GROUPS.values() for f in fields(group)}
    kafka = "How the clients of Kafka connect; [kafka.librdkafka] and [kafka.java] are for one client."
    registry = "The registry of schemas of records, and how a client proves who it is."
    found |= {"kafka": _table(kafka, NAMES), "schema_registry": _table(registry, schema_registry_access.NAMES)}
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
