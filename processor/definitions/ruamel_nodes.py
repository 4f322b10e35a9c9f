"""The doorway to ruamel.yaml: makes the nodes of a YAML text.

Only this module imports ruamel.yaml. Keys are text and unique; any other key is a problem. Anchors and aliases work. Merge keys
(`<<`) are not YAML 1.2 and become a key of that name. Tags count on plain scalars only.
"""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as RuamelNode
from ruamel.yaml.scanner import Scanner

from processor.definitions.flow_commas import whole_value
from processor.definitions.problems import Problems
from processor.definitions.yaml_nodes import FileLine, Map, Scalar, Sequence, YamlNode

_TRUE = {"true", "on", "yes", "y"}
_MAX_INTEGER = 1000
"""Digits of an integer. A longer one stays text: Python refuses to read integers of over 4,300 digits."""
MAX_DEPTH = 100
"""Levels of lists and mappings. Joins 45 deep fit, and readers of definitions need less than Python's stack for them."""


class _BoundedScanner(Scanner):
    """Stops at the first bracket that is too deep: the time of ruamel's scanner grows with the square of the open brackets."""

    def fetch_flow_collection_start(self, *given: Any, **named: Any) -> None:
        """As ruamel's. Raises RecursionError beyond MAX_DEPTH."""
        if len(self.flow_context) >= MAX_DEPTH:
            raise RecursionError
        super().fetch_flow_collection_start(*given, **named)


def compose(file: str, text: str, problems: Problems) -> YamlNode | None:
    """The tree of the one document in a text. Where there is none: adds a problem and returns None. Raises RecursionError for
    more than MAX_DEPTH levels."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _BoundedScanner
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(part) for part in (error.context, error.problem) if part)
        # For an error at the end of the text, ruamel's mark is one line after the last line.
        line = min(mark.line + 1, len(text.splitlines()) or 1) if mark else 1
        problems.add(FileLine(file=file, line=line), f"this is not YAML: {what}", _yaml_cure(what))
        return None
    except YAMLError as error:
        problems.add(
            FileLine(file=file, line=1), f"this is not YAML: {str(error).splitlines()[0]}", "save it as UTF-8 text"
        )
        return None
    if root is None or (isinstance(root, ScalarNode) and root.value == ""):
        problems.add(FileLine(file=file, line=1), "the file is empty", "write a definition, or remove the file")
        return None
    return _Converter(file, problems).node(root)


def _yaml_cure(what: str) -> str:
    if "another document" in what:
        return "write one definition per file"
    if "flow" in what or "[" in what:
        return "close the bracket, or quote text with brackets, commas or braces in it"
    return "check indentation, colons and quotes near that line"


class _Converter:
    """Makes our nodes from ruamel's, once for each shared (anchored) node."""

    def __init__(self, file: str, problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self._converted: dict[int, YamlNode | None] = {}

    def node(self, node: RuamelNode) -> YamlNode:
        line = node.start_mark.line + 1
        if id(node) in self._converted:
            if (known := self._converted[id(node)]) is not None:
                return known
            location = FileLine(file=self._file, line=line)
            self._problems.add(location, "an anchor contains an alias to itself", "write the value out")
            return Scalar(file=self._file, line=line, value=None, text="")
        self._converted[id(node)] = None
        converted = self._convert(node, line)
        self._converted[id(node)] = converted
        return converted

    def _convert(self, node: RuamelNode, line: int) -> YamlNode:
        match node:
            case MappingNode():
                return Map(file=self._file, line=line, entries=self._entries(node))
            case SequenceNode():
                return Sequence(file=self._file, line=line, items=self._items(node))
            case _:
                is_float = str(node.tag).endswith(":float")
                block = isinstance(node, ScalarNode) and node.style == "|"
                value, text = _typed_value(node), join_surrogates(node.value)
                return Scalar(file=self._file, line=line, value=value, text=text, is_float=is_float, block=block)

    def _items(self, node: SequenceNode) -> tuple[YamlNode, ...]:
        items, left = [], deque(node.value)
        while left:
            item = left.popleft()
            items.append(self._cut_value(item, map(_plain_text, left), left) if node.flow_style else self.node(item))
        return tuple(items)

    def _cut_value(self, node: RuamelNode, following: Iterable[str | None], left: deque[Any]) -> YamlNode:
        """The value of a node in flow style. Where a comma cuts it: adds a problem, takes its other parts from `left`, and
        returns the whole value."""
        value, first = self.node(node), _plain_text(node)
        whole = whole_value(first, following) if first and isinstance(value, Scalar) else None
        if whole is None or not isinstance(value, Scalar):
            return value
        text, count = whole
        for _ in range(count):
            left.popleft()
        self._problems.add(
            value, f"in flow style a comma ends the value `{first}`", f'put the whole value in quotes: "{text}"'
        )
        return replace(value, value=text, text=text)

    def _entries(self, node: MappingNode) -> dict[str, tuple[Scalar, YamlNode]]:
        entries: dict[str, tuple[Scalar, YamlNode]] = {}
        left = deque(node.value)
        while left:
            yaml_key, yaml_value = left.popleft()
            key = self.node(yaml_key)
            texts = (_plain_text(later) if _plain_text(empty) == "" else None for later, empty in left)
            value = self._cut_value(yaml_value, texts, left) if node.flow_style else self.node(yaml_value)
            if not isinstance(key, Scalar):
                self._problems.add(
                    key, "a key is a list or a mapping", "write a name before the colon, in quotes if necessary"
                )
                continue
            name = self._name(key)
            if name in entries:
                what = f"the key `{name}` is written twice (first on line {entries[name][0].line})"
                self._problems.add(key, what, "remove one of them")
                continue
            if isinstance(value, Scalar) and value.text == "" and value.value is None:
                # ruamel places an empty value on the next line; an author looks for it on the line of its key.
                value = Scalar(file=self._file, line=key.line, value=None, text="")
            entries[name] = (replace(key, value=name), value)
        return entries

    def _name(self, key: Scalar) -> str:
        """The text of a key. For a key that YAML reads as another type: adds a problem and returns the probable key."""
        if isinstance(key.value, str):
            return key.value
        if isinstance(key.value, bool):
            what, cure = f"the key `{key.text}` is a YAML boolean", "remove `%YAML 1.1`, or quote the key"
            if key.text.lower() == "true":
                cure = (
                    "write `on` (an old YAML editor may have turned it into `true`), or quote the key to keep this name"
                )
            self._problems.add(key, what, cure)
            return "on" if key.value else key.text
        self._problems.add(key, f"the key `{key.text}` is not text", f'quote it: "{key.text}"')
        return key.text


def _plain_text(node: RuamelNode) -> str | None:
    """The text of a scalar without quotes; None of another node."""
    return join_surrogates(node.value) if isinstance(node, ScalarNode) and not node.style else None


def _typed_value(node: RuamelNode) -> str | int | bool | None:
    text = join_surrogates(node.value)
    match str(node.tag).rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() in _TRUE
        case "int" if re.fullmatch(rf"[-+]?[0-9]{{1,{_MAX_INTEGER}}}", text):
            return int(text)
        case "int" if re.fullmatch(r"0x[0-9a-fA-F]{1,500}|0o[0-7]{1,500}", text):
            return int(text, 0)
        case _:
            return text


def join_surrogates(text: str) -> str:
    """The text with each surrogate pair (two JSON escapes) joined to one character. A lone surrogate becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
