"""Reads `publish` of a product: when its documents go out."""

from typing import Final

from processor.definitions.members import PUBLISH
from processor.definitions.problems import Problems
from processor.definitions.read_duration import read_duration, write_duration
from processor.definitions.shape import as_map, as_text, check_keys
from processor.definitions.yaml_nodes import Map, YamlNode
from processor.product.gate import AT_MOST, OPEN, Gate

DURATIONS: Final = ("quiet", "every", "at_most")


def read_gate(node: YamlNode | None, problems: Problems) -> Gate:
    """The gate of a product; `OPEN` where it has none, or has problems."""
    before = len(problems)
    body = as_map(node, "`publish`", "write one of `transactions`, `quiet` and `every` below it", problems)
    if body is None:
        return OPEN
    check_keys(body, "`publish`", PUBLISH, problems)
    found = {name: _read(body, name, problems) for name in DURATIONS}
    waits = {name: seconds for name, seconds in found.items() if seconds is not None}
    whole = _read_transactions(body, problems)
    longest = max(waits.get("quiet", 0.0), waits.get("every", 0.0))
    at_most = waits.pop("at_most", max(AT_MOST, longest))
    if at_most < longest:
        what = f"`at_most` is {write_duration(at_most)}, and `quiet` or `every` is {write_duration(longest)}"
        problems.add(body.key_node("at_most"), what, f"write `at_most: {write_duration(longest)}` or more")
    if len(problems) == before and not whole and not waits:
        cure = "write one of `transactions: whole`, `quiet: 2 s` and `every: 30 s`"
        problems.add(body.key_node("at_most"), "`at_most` bounds a wait, and `publish` asks for none", cure)
    return Gate(whole=whole, at_most=at_most, **waits) if len(problems) == before else OPEN


def _read(body: Map, name: str, problems: Problems) -> float | None:
    node = body.get(name)
    return None if node is None else read_duration(node, f"`{name}`", problems)


def _read_transactions(body: Map, problems: Problems) -> bool:
    node = body.get("transactions")
    if node is None:
        return False
    cure = "write `transactions: whole`, or leave it out"
    text = as_text(node, "`transactions`", cure, problems)
    if text is not None and text != "whole":
        problems.add(node, f"`transactions` is `{text}`", cure)
    return text == "whole"
