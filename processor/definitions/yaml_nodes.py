"""YAML 1.2 text (JSON included) as a tree of nodes that know their file and line.

A line of JSON, the form in which the registry keeps definitions, is read as JSON: it is the same tree, many times sooner.
Only this module imports ruamel.yaml. Keys are text and unique; what is not is a problem. Anchors and aliases work;
merge keys (`<<`) are not YAML 1.2 and come out as a key of that name. Tags are looked at on plain scalars only.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as YamlNode

from processor.definitions.errors import Problems

_TRUE = {"true", "on", "yes", "y"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value: `value` as YAML types it (a float stays text, and is marked `real`), `text` as it was written. `block`: the
    lines after `line`, as they are (`|`)."""

    file: str
    line: int
    value: str | int | bool | None
    text: str
    real: bool = False
    block: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A list."""

    file: str
    line: int
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A mapping, in the order written: each value with the node of its key."""

    file: str
    line: int
    entries: Mapping[str, tuple[Scalar, "Node"]]

    def get(self, key: str) -> "Node | None":
        """The value of a key, None without it."""
        entry = self.entries.get(key)
        return entry[1] if entry else None

    def key(self, key: str) -> Scalar:
        """The node of a key that is there."""
        return self.entries[key][0]


Node = Scalar | Sequence | Map


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    file: str
    line: int


def read_yaml(file: str, text: str, problems: Problems) -> Node | None:
    """The one document of a file; None, with a problem noted, when it is empty or no YAML."""
    if (stored := _json(text)) is not None:
        return _node(file, stored)
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(str(part) for part in (error.context, error.problem) if part)
        line = min(mark.line + 1, len(text.splitlines()) or 1) if mark else 1  # the end of the file is on its last line
        problems.add(_Start(file=file, line=line), f"this is not YAML: {what}", _cure(what))
        return None
    except YAMLError as error:
        problems.add(
            _Start(file=file, line=1), f"this is not YAML: {str(error).splitlines()[0]}", "save it as UTF-8 text"
        )
        return None
    if root is None or (isinstance(root, ScalarNode) and root.value == ""):
        problems.add(_Start(file=file, line=1), "the file is empty", "write a definition, or remove the file")
        return None
    return _Converter(file, problems).node(root)


def _json(text: str) -> dict[str, Any] | None:
    """What a line of JSON holds, an object of text, integers, booleans and nulls; None for anything that YAML is to judge."""
    if not text.startswith("{") or "\n" in text:
        return None
    try:
        found: dict[str, Any] = json.loads(
            text, object_pairs_hook=_unique, parse_float=_refused, parse_constant=_refused
        )
        return found
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refused("a key is written twice")


def _refused(text: str) -> Any:
    raise ValueError(text)


def _node(file: str, value: Any) -> Node:
    match value:
        case dict():
            entries = {_whole(key): (_scalar(file, key), _node(file, inner)) for key, inner in value.items()}
            return Map(file=file, line=1, entries=entries)
        case list():
            return Sequence(file=file, line=1, items=tuple(_node(file, item) for item in value))
        case _:
            return _scalar(file, value)


def _scalar(file: str, value: str | int | bool | None) -> Scalar:
    if isinstance(value, str):
        return Scalar(file=file, line=1, value=_whole(value), text=_whole(value))
    return Scalar(file=file, line=1, value=value, text=json.dumps(value))


def _cure(what: str) -> str:
    if "another document" in what:
        return "write one definition a file"
    if "flow" in what or "[" in what:
        return "close the bracket, or quote text with brackets, commas or braces in it"
    return "check indentation, colons and quotes near that line"


class _Converter:
    """Turns ruamel's nodes into ours, each shared (anchored) node once."""

    def __init__(self, file: str, problems: Problems) -> None:
        self._file = file
        self._problems = problems
        self._done: dict[int, Node | None] = {}

    def node(self, node: YamlNode) -> Node:
        line = node.start_mark.line + 1
        if id(node) in self._done:
            if (known := self._done[id(node)]) is not None:
                return known
            place = _Start(file=self._file, line=line)
            self._problems.add(place, "an anchor contains an alias to itself", "write the value out")
            return Scalar(file=self._file, line=line, value=None, text="")
        self._done[id(node)] = None
        made = self._make(node, line)
        self._done[id(node)] = made
        return made

    def _make(self, node: YamlNode, line: int) -> Node:
        match node:
            case MappingNode():
                return Map(file=self._file, line=line, entries=self._entries(node))
            case SequenceNode():
                return Sequence(file=self._file, line=line, items=tuple(self.node(item) for item in node.value))
            case _:
                real = str(node.tag).endswith(":float")
                block = isinstance(node, ScalarNode) and node.style == "|"
                value, text = _value(node), _whole(node.value)
                return Scalar(file=self._file, line=line, value=value, text=text, real=real, block=block)

    def _entries(self, node: MappingNode) -> dict[str, tuple[Scalar, Node]]:
        entries: dict[str, tuple[Scalar, Node]] = {}
        for yaml_key, yaml_value in node.value:
            key, value = self.node(yaml_key), self.node(yaml_value)
            if not isinstance(key, Scalar):
                self._problems.add(
                    key, "a key is a list or a mapping", "write a name before the colon, quoted if need be"
                )
                continue
            name = self._name(key)
            if name in entries:
                what = f"the key `{name}` is written twice (first on line {entries[name][0].line})"
                self._problems.add(key, what, "remove one of them")
                continue
            if isinstance(value, Scalar) and value.text == "" and value.value is None:
                value = Scalar(
                    file=self._file, line=key.line, value=None, text=""
                )  # YAML puts nothing on the next line
            entries[name] = (replace(key, value=name), value)
        return entries

    def _name(self, key: Scalar) -> str:
        """The text of a key; one that YAML reads as another type is a problem, read as what was probably meant."""
        if isinstance(key.value, str):
            return key.value
        if isinstance(key.value, bool):
            what, cure = f"the key `{key.text}` is a YAML boolean", "remove `%YAML 1.1`, or quote the key"
            if key.text.lower() == "true":
                cure = (
                    "write `on` (an old YAML editor may have turned it into true), or quote a name that is really meant"
                )
            self._problems.add(key, what, cure)
            return "on" if key.value else key.text
        self._problems.add(key, f"the key `{key.text}` is not text", f'quote it: "{key.text}"')
        return key.text


def _value(node: YamlNode) -> str | int | bool | None:
    text = _whole(node.value)
    match str(node.tag).rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() in _TRUE
        case "int" if re.fullmatch(r"[-+]?[0-9]+", text):
            return int(text)
        case "int" if re.fullmatch(r"0[xo][0-9a-fA-F]+", text):
            return int(text, 0)
        case _:
            return text


def _whole(text: str) -> str:
    """The text with surrogate pairs, JSON's two escapes, joined to one character; a lone half becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
