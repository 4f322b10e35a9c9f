"""The nodes of YAML and JSON text: each knows its file and line."""

from collections.abc import Mapping
from dataclasses import dataclass


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
