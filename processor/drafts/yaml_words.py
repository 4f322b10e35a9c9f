"""Writes text as YAML: a word, a list in flow style, a comment. Pure."""

import json
import re
from collections.abc import Iterable, Mapping

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TYPE = re.compile(r"[a-z]+(\([a-z0-9,]+\))?(\[\])?")
_READ_OTHERWISE = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
WIDTH = 120
"""Characters of a comment; a longer one is cut."""


def word(text: str) -> str:
    """The text as a scalar, in quotes where YAML, or an older reader of YAML, takes it for something else."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _READ_OTHERWISE
    return text if plain else quoted(text)


def quoted(text: str) -> str:
    """The text as a scalar in quotes, each sign that nobody sees as its escape."""
    return "".join(c if c.isprintable() else _escaped(c) for c in json.dumps(text, ensure_ascii=False))


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}" if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"


def type_word(text: str) -> str:
    """A column type as a scalar in block style."""
    return text if _TYPE.fullmatch(text) else word(text)


def flow_list(items: Iterable[str]) -> str:
    """`[a, b]`."""
    return f"[{', '.join(map(word, items))}]"


def flow_map(items: Mapping[str, str]) -> str:
    """`{a: b}`."""
    return f"{{{', '.join(f'{word(key)}: {word(value)}' for key, value in items.items())}}}"


def one_line(text: str) -> str:
    """The text in one line, with a blank for each other space and each sign that nobody sees."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def comment(text: str) -> str:
    """`# text` in one line; without text nothing."""
    line = one_line(text)
    return f"# {line[:WIDTH]}{'...' if len(line) > WIDTH else ''}" if line else ""


def with_comment(line: str, text: str) -> str:
    """The line, and the comment behind it."""
    return f"{line}  {comment(text)}" if comment(text) else line
