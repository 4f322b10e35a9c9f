"""Reads a document's key as people write it: a JSON object (`{"email": "a@example.org"}`), or its one value (`a@example.org`)."""

from collections.abc import Mapping

from processor.records import canonical_json
from processor.records.entity import Entity
from processor.records.record import Value
from processor.records.values import canonical_value

_EXAMPLES: Mapping[str, Value] = {"int": 7, "decimal": 7, "float": 7, "bool": True}


def read_root_key(root: Entity, text: str) -> tuple[Value, ...]:
    """The key's canonical values, in the key's order. Raises ValueError, which names the error and the correct form."""
    try:
        parts = canonical_json.loads_typed(text)
    except ValueError as error:
        if text.lstrip().startswith("{"):
            raise ValueError(
                f"the key {text} is {error}: write '{_example(root)}', with names and texts in double quotes, and "
                "single quotes around it for the shell"
            ) from None
        parts = text
    if not isinstance(parts, dict):
        if len(root.key) > 1:
            raise ValueError(f"the key of {root.name} has {len(root.key)} parts; give it as JSON: {_example(root)}")
        parts = {root.key[0]: text if root.columns[root.key[0]].name == "string" else parts}
    if set(parts) != set(root.key):
        raise ValueError(f"the key of {root.name} is {', '.join(root.key)}; give it as JSON: {_example(root)}")
    try:
        values = tuple(canonical_value(parts[column], root.columns[column]) for column in root.key)
    except ValueError as error:
        raise ValueError(f"the key {text} of {root.name}: {error}") from None
    if None in values:
        raise ValueError(
            f"the key {text} of {root.name} has a null part: write a value for each of {', '.join(root.key)}"
        )
    return values


def _example(root: Entity) -> str:
    """A key of the root as JSON: numbers and truth without quotes, as the key takes them."""
    kinds = {column: root.columns[column].name for column in root.key}
    return canonical_json.dumps({column: _EXAMPLES.get(kind, "...") for column, kind in kinds.items()})
