"""The YAML 1.2 text that authors write (JSON included) as a tree of nodes. Each node knows its file and line.

Only this module imports ruamel.yaml. Promises: keys are text and unique; any other key is a problem. The tree has a size that the
readers of definitions can walk. Anchors and aliases work. Merge keys (`<<`) are not YAML 1.2 and become a key of that name. Tags
count on plain scalars only.

The registry stores each definition as one line of JSON. This module reads such a line as JSON: the tree is the same, and reading
is many times faster.

YAML cuts a value of flow style at a comma, although a bracket is open: `{due: fee - coalesce(discount, 0)}` has the keys `due`
and `0)`. The author meant one value. The readers take it whole (`whole_value`), and the cure of the problem is quotes.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as RuamelNode
from ruamel.yaml.scanner import Scanner

from processor.language.definitions.problems import Problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A single value. `value`: as YAML types it, but a float stays text and has `is_float` set; `text`: as the author wrote it;
    `block`: the value is a literal block (`|`), which begins on the line after `line`."""

    file: str
    line: int
    value: str | int | bool | None
    text: str
    is_float: bool = False
    block: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A list."""

    file: str
    line: int
    items: tuple["YamlNode", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """A mapping, in the order written. Each entry has the node of its key and its value."""

    file: str
    line: int
    entries: Mapping[str, tuple[Scalar, "YamlNode"]]

    def get(self, key: str) -> "YamlNode | None":
        """The value of a key; None for a missing key."""
        entry = self.entries.get(key)
        return entry[1] if entry else None

    def key_node(self, key: str) -> Scalar:
        """The node of a key. Raises KeyError for a missing key."""
        return self.entries[key][0]


YamlNode = Scalar | Sequence | Map


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    """A location without a node."""

    file: str
    line: int


_MOST_PARTS = 20
_CUT_PATH = re.compile(r"[ \t]+(#>>?)")
"""A comment behind a plain value, which begins as json's operators of paths do."""


def whole_value(first: str, following: Iterable[str | None]) -> tuple[str, int] | None:
    """The value that begins with `first`, and how many of the following parts belong to it. `following`: the texts after it, None
    for a part that is no plain text. None where `first` opens no bracket, or no part closes it."""
    if _opened(first) <= 0:
        return None
    text = first
    for count, part in enumerate(following, start=1):
        if part is None or count > _MOST_PARTS:
            return None
        text += f", {part}"
        if _opened(text) <= 0:
            return text, count
    return None


def _opened(text: str) -> int:
    return text.count("(") - text.count(")")


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
    return _Converter(file, text, problems).node(root)


def _yaml_cure(what: str) -> str:
    if "another document" in what:
        return "write one definition per file"
    if "flow" in what or "[" in what:
        return "close the bracket, or quote text with brackets, commas or braces in it"
    return "check indentation, colons and quotes near that line"


class _Converter:
    """Makes our nodes from ruamel's, once for each shared (anchored) node."""

    def __init__(self, file: str, text: str, problems: Problems) -> None:
        self._file, self._text = file, text
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
                if (
                    isinstance(node, ScalarNode)
                    and not node.style
                    and (cut := _CUT_PATH.match(self._text, node.end_mark.index))
                ):
                    what = f"a comment begins at ` #`, so the value is `{node.value}` without its `{cut[1]}`"
                    cure = "put the whole expression in quotes, or write the path with `->`"
                    self._problems.add(FileLine(file=self._file, line=line), what, cure)
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


_MAX_ALIASED = 100_000
"""Values that aliases may add to a file. Readers read a shared value again at each alias, and a few lines can mean billions."""


def read_yaml(file: str, text: str, problems: Problems) -> YamlNode | None:
    """The tree of the one document in a file. For an empty file, or text that is not YAML: adds a problem and returns None."""
    try:
        root = _read_json(file, text) or compose(file, text, problems)
        if root is not None:
            _check_size(root)
        return root
    except RecursionError:
        what, cure = f"the file nests more than {MAX_DEPTH} levels", "write it with fewer levels"
    except _TooManyAliases:
        what, cure = f"its aliases mean more than {_MAX_ALIASED:,} values", "write the values out, or remove aliases"
    problems.add(FileLine(file=file, line=1), what, cure)
    return None


def _read_json(file: str, text: str) -> YamlNode | None:
    stored = _parse_json_line(text)
    return None if stored is None else _json_node(file, stored)


class _TooManyAliases(Exception):
    """The values of a file, with those that aliases repeat, are too many."""


def _check_size(root: YamlNode) -> None:
    """Raises: RecursionError for a tree with too many levels; _TooManyAliases."""
    measured: dict[int, tuple[int, int]] = {}
    size, depth = _measure(root, measured)
    if depth > MAX_DEPTH:
        raise RecursionError
    if size > len(measured) + _MAX_ALIASED:
        raise _TooManyAliases


def _measure(node: YamlNode, measured: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """The number of values in a tree, and its levels. Measures a shared node once, and counts it at each use."""
    if id(node) not in measured:
        match node:
            case Map(entries=entries):
                below = [_measure(value, measured) for _, value in entries.values()]
            case Sequence(items=items):
                below = [_measure(item, measured) for item in items]
            case _:
                below = []
        measured[id(node)] = (1 + sum(size for size, _ in below), 1 + max((depth for _, depth in below), default=0))
    return measured[id(node)]


def _parse_json_line(text: str) -> dict[str, Any] | None:
    """The value of one line of JSON: an object of text, integers, booleans and nulls. For other text: None, and YAML reads it."""
    if not text.startswith("{") or "\n" in text:
        return None
    try:
        found: dict[str, Any] = json.loads(
            text, object_pairs_hook=_check_unique, parse_float=_refuse, parse_constant=_refuse
        )
        return found
    except (ValueError, RecursionError):
        return None


def _check_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _refuse("a key is written twice")


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _json_node(file: str, value: Any) -> YamlNode:
    match value:
        case dict():
            entries = {
                join_surrogates(key): (_json_scalar(file, key), _json_node(file, inner)) for key, inner in value.items()
            }
            return Map(file=file, line=1, entries=entries)
        case list():
            return Sequence(file=file, line=1, items=tuple(_json_node(file, item) for item in value))
        case _:
            return _json_scalar(file, value)


def _json_scalar(file: str, value: str | int | bool | None) -> Scalar:
    if isinstance(value, str):
        return Scalar(file=file, line=1, value=join_surrogates(value), text=join_surrogates(value))
    return Scalar(file=file, line=1, value=value, text=json.dumps(value))
