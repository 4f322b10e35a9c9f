"""The JSON Schema of the settings file (TOML), made from the settings and their limits. Pure."""

from dataclasses import fields
from typing import Any, Final

from processor.editors.json_schemas import DRAFT, JsonSchema
from processor.settings import schema_registry_access
from processor.settings.kafka_security import MECHANISMS, NAMES, PROTOCOLS
from processor.settings.settings import GROUPS

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
