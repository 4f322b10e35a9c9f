"""YAML 1.2 text (JSON included) as a tree of nodes, of a size that readers of definitions can walk.

The registry stores each definition as one line of JSON. This module reads such a line as JSON: the tree is the same, and reading
is many times faster.
"""

import json
from typing import Any

from processor.definitions.problems import Problems
from processor.definitions.ruamel_nodes import MAX_DEPTH, compose, join_surrogates
from processor.definitions.yaml_nodes import FileLine, Map, Scalar, Sequence, YamlNode

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
