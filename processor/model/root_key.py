"""The key of a document as people write it: a JSON object (`{"email": "a@example.org"}`), or its one value (`a@example.org`)."""

from processor.model import canonical_json
from processor.model.change import Value
from processor.model.entity import Entity
from processor.model.values import canonical


def read_root_key(root: Entity, text: str) -> tuple[Value, ...]:
    """The key's canonical values, in the key's order. Raises ValueError with what is wrong and what would be right."""
    try:
        parts = canonical_json.loads(text)
    except ValueError:
        parts = text
    if not isinstance(parts, dict):
        if len(root.key) > 1:
            raise ValueError(f"the key of {root.name} has {len(root.key)} parts; give it as JSON: {_example(root)}")
        parts = {root.key[0]: text if root.columns[root.key[0]].name == "string" else parts}
    if set(parts) != set(root.key):
        raise ValueError(f"the key of {root.name} is {', '.join(root.key)}; give it as JSON: {_example(root)}")
    try:
        values = tuple(canonical(parts[column], root.columns[column]) for column in root.key)
    except ValueError as error:
        raise ValueError(f"the key {text} of {root.name}: {error}") from None
    if None in values:
        raise ValueError(f"the key {text} of {root.name} has a null part; no row has that")
    return values


def _example(root: Entity) -> str:
    return canonical_json.dumps(dict.fromkeys(root.key, "..."))
