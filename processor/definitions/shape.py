"""Checks of form: is a node a mapping, a name, a list of names, a number; what is not is noted with its cure."""

import re
from collections.abc import Collection

from processor.definitions.errors import Problems, suggest
from processor.definitions.yaml_nodes import Map, Node, Scalar, Sequence

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def as_map(node: Node | None, what: str, cure: str, problems: Problems) -> Map | None:
    """The node as a mapping with at least one entry; None, with a problem noted, when it is none."""
    if isinstance(node, Map) and node.entries:
        return node
    if node is not None:
        problems.add(node, _unlike(what, node, "a mapping"), cure)
    return None


def as_text(node: Node, what: str, cure: str, problems: Problems) -> str | None:
    """The node as text that is not empty and has no control characters; None, with a problem noted, when it is none."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value and not _CONTROL.search(node.value):
        return node.value
    problems.add(node, _unlike(what, node, "a name"), cure)
    return None


def as_texts(node: Node, what: str, cure: str, problems: Problems) -> list[tuple[Node, str]]:
    """The node as a list of names, each with its node; what is none is left out, with a problem noted."""
    if not isinstance(node, Sequence):
        problems.add(node, _unlike(what, node, "a list"), cure)
        return []
    read = [(item, as_text(item, f"an item of {what}", cure, problems)) for item in node.items]
    return [(item, text) for item, text in read if text is not None]


def as_count(node: Node, what: str, most: int | None, problems: Problems) -> int | None:
    """The node as an integer from 1 to `most` (None: any); None, with a problem noted, when it is none."""
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 and (most is None or value <= most):
        return value
    cure = f"write an integer from 1 to {most}" if most else "write an integer above 0"
    problems.add(node, f"{what} is {describe(node)}", cure)
    return None


def as_name(node: Node, what: str, problems: Problems) -> str | None:
    """The node as the name of an entity or a product; None, with a problem noted, when it is none."""
    cure = "use letters, digits, `_`, `-` and `.`, a letter or `_` first"
    text = as_text(node, what, cure, problems)
    if text is None or _NAME.fullmatch(text):
        return text
    problems.add(node, f"{what} is `{text}`, which is no name", cure)
    return None


def as_topic(node: Node, problems: Problems) -> str | None:
    """The node as the name of a Kafka topic; None, with a problem noted, when it is none."""
    cure = "use at most 249 letters, digits, `_`, `-` and `.`, and not `.` or `..` alone"
    text = as_text(node, "`topic`", cure, problems)
    if text is None or (_TOPIC.fullmatch(text) and text not in {".", ".."}):
        return text
    problems.add(node, f"`{text}` is no Kafka topic name", cure)
    return None


def check_keys(node: Map, what: str, known: Collection[str], problems: Problems) -> None:
    """Note each key of the mapping that is unknown."""
    for name, (key, _) in node.entries.items():
        if name not in known:
            problems.add(key, f"{what} has no key `{name}`", suggest(name, known))


def _unlike(what: str, node: Node, wanted: str) -> str:
    is_empty = describe(node) == "empty" or (isinstance(node, Map) and not node.entries)
    return f"{what} is empty" if is_empty else f"{what} is {describe(node)}, not {wanted}"


def describe(node: Node) -> str:
    """What a node is, in a message."""
    match node:
        case Map(entries=entries):
            return "a mapping" if entries else "an empty mapping"
        case Sequence(items=items):
            return "a list" if items else "an empty list"
        case Scalar(value=None) | Scalar(text=""):
            return "empty"
        case Scalar(value=bool()):
            return f"the boolean {node.text}"
        case _:
            return f"`{node.text}`"
