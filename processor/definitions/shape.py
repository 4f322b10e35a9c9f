"""Checks of form: whether a node is a mapping, text, a list of text, a number or a name.

In each function, `subject` names the node in a problem's text ("`on`", "a test"), and `cure` says what would be right.
"""

import re
from collections.abc import Collection

from processor.definitions.problems import Problems, suggest
from processor.definitions.yaml_nodes import Map, Scalar, Sequence, YamlNode

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
TOPIC = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,249}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONTROL_IN_PROSE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MAX_SHOWN = 60


def as_map(node: YamlNode | None, subject: str, cure: str, problems: Problems) -> Map | None:
    """The node as a mapping with at least one entry. For another node: adds a problem and returns None. None gives None."""
    if isinstance(node, Map) and node.entries:
        return node
    if node is not None:
        problems.add(node, _mismatch(subject, node, "a mapping"), cure)
    return None


def as_text(node: YamlNode, subject: str, cure: str, problems: Problems) -> str | None:
    """The node as text that is not empty and has no control characters. For another node: adds a problem and returns None."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value and not _CONTROL.search(node.value):
        return node.value
    problems.add(node, _mismatch(subject, node, "text"), cure)
    return None


def as_prose(node: YamlNode | None, subject: str, problems: Problems) -> str:
    """The node as text of one or several lines; empty for None. For another node: adds a problem and returns empty text."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and not _CONTROL_IN_PROSE.search(node.value):
        return node.value.strip()
    if node is not None:
        problems.add(node, _mismatch(subject, node, "text"), "write text, in quotes if it has a colon or a comma")
    return ""


def as_texts(node: YamlNode, subject: str, cure: str, problems: Problems) -> list[tuple[YamlNode, str]]:
    """The node as a list of texts, each with its node. Leaves out every item that is not text, and adds a problem for it."""
    if not isinstance(node, Sequence):
        problems.add(node, _mismatch(subject, node, "a list"), cure)
        return []
    read = [(item, as_text(item, f"an item of {subject}", cure, problems)) for item in node.items]
    return [(item, text) for item, text in read if text is not None]


def as_count(node: YamlNode, subject: str, most: int | None, problems: Problems) -> int | None:
    """The node as an integer from 1 to `most` (None: no limit). For another node: adds a problem and returns None."""
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 and (most is None or value <= most):
        return value
    cure = f"write an integer from 1 to {most}" if most else "write an integer above 0"
    if isinstance(value, str) and value.isdecimal():
        cure = f"write {value} without quotes: quotes make a text of it"
    problems.add(node, f"{subject} is {describe_node(node)}", cure)
    return None


def as_flag(body: Map, word: str, problems: Problems, place: str = "") -> bool:
    """The value of a word as true or false; false without the word. For another value: adds a problem and returns false. `place`:
    behind the word in a problem's text."""
    node = body.get(word)
    if node is None or (isinstance(node, Scalar) and isinstance(node.value, bool)):
        return isinstance(node, Scalar) and bool(node.value)
    problems.add(node, f"`{word}`{place} is {describe_node(node)}", f"write `{word}: true`, or leave it out")
    return False


def as_name(node: YamlNode, subject: str, problems: Problems) -> str | None:
    """The node as the name of an entity or a product. For another node: adds a problem and returns None."""
    cure = "use letters, digits, `_`, `-` and `.`, and begin with a letter or `_`"
    text = as_text(node, subject, cure, problems)
    if text is None or NAME.fullmatch(text):
        return text
    problems.add(node, f"{subject} is `{text}`, which is not a valid name", cure)
    return None


def as_topic(node: YamlNode, problems: Problems, key: str = "topic") -> str | None:
    """The node as the name of a Kafka topic. For another node: adds a problem and returns None."""
    cure = "use at most 249 letters, digits, `_`, `-` and `.`, and not `.` or `..` alone"
    text = as_text(node, f"`{key}`", cure, problems)
    if text is None or TOPIC.fullmatch(text):
        return text
    problems.add(node, f"`{text}` is not a valid Kafka topic name", cure)
    return None


def check_keys(node: Map, subject: str, known: Collection[str], problems: Problems) -> None:
    """Adds a problem for each unknown key of the mapping."""
    for name, (key, _) in node.entries.items():
        if name not in known:
            problems.add(key, f"{subject} has no key `{name}`", suggest(name, known))


def _mismatch(subject: str, node: YamlNode, expected: str) -> str:
    is_empty = describe_node(node) == "empty" or (isinstance(node, Map) and not node.entries)
    return f"{subject} is empty" if is_empty else f"{subject} is {describe_node(node)}, not {expected}"


def describe_node(node: YamlNode) -> str:
    """The words for a node in a problem's text: "a list", "`7`", "empty"."""
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
            return f"`{node.text}`" if len(node.text) <= _MAX_SHOWN else f"`{node.text[:_MAX_SHOWN]}...`"
