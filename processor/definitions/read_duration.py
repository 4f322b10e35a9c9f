"""Durations as authors write them: `500 ms`, `2 s`, `5 min`, `1 h`. Pure."""

import re
from typing import Final

from processor.definitions.problems import Problems
from processor.definitions.shape import as_text
from processor.definitions.yaml_nodes import Scalar, YamlNode

_SECONDS: Final = {"ms": 0.001, "s": 1, "min": 60, "h": 3_600}
DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?(ms|s|min|h)")
MOST_SECONDS: Final = 86_400.0


def read_duration(node: YamlNode, subject: str, problems: Problems) -> float | None:
    """The seconds of a duration from 1 ms to a day. For another node: adds a problem and returns None."""
    cure = "write a duration with its unit: `500 ms`, `2 s`, `5 min` or `1 h`"
    if isinstance(node, Scalar) and type(node.value) in (int, float):
        problems.add(node, f"{subject} is `{node.text}`, which has no unit", cure)
        return None
    text = as_text(node, subject, cure, problems)
    if text is None:
        return None
    match = DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not match:
        problems.add(node, f"{subject} is `{text}`, which is no duration", cure)
    elif not 0.001 <= seconds <= MOST_SECONDS:
        problems.add(node, f"{subject} is `{text}`", "write a duration from 1 ms to 24 h")
    else:
        return round(seconds, 3)
    return None


def write_duration(seconds: float) -> str:
    """The duration as an author writes it, in the largest unit that holds it as a whole number."""
    for unit in ("h", "min", "s"):
        if seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:.0f} {unit}"
    return f"{seconds * 1000:.0f} ms"
