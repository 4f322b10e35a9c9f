"""The report of `verify`: what differs in the documents, in groups by field, with the first documents of each group."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial, reduce
from operator import getitem

from processor.cli.printing.colour import coloured
from processor.text import shortened, visible_line
from processor.tools.inspect.verification import Difference
from processor.values import canonical_json
from processor.values.record import Value

SHOWN = 5
"""Documents that the report shows of each group."""
LONGEST = 100
"""Characters of a value in a line."""
ABSENT = "no value"

Place = tuple[str | int, ...]
"""The way to a value within a document: names of members, and indexes of elements."""


def difference_lines(differences: Iterable[Difference], sql: bool) -> Iterator[str]:
    """The report as text. A group has the documents of one product that differ in the same fields."""
    groups: dict[tuple[str, str], list[tuple[Difference, list[Place]]]] = {}
    for difference in differences:
        places = _differing_places(difference)
        groups.setdefault((difference.product, _group(difference, places)), []).append((difference, places))
    for (product, group), found in groups.items():
        yield coloured(f"{product}: {group}: {len(found)} {'document' if len(found) == 1 else 'documents'}", "bold")
        for difference, places in found[:SHOWN]:
            yield f"  {visible_line(difference.key)}"
            for place in places[:SHOWN]:
                yield from (f"    {line}" for line in _place_lines(difference, place, sql))
        if len(found) > SHOWN:
            yield f"  and {len(found) - SHOWN} more (--json shows all)"


def _group(difference: Difference, places: list[Place]) -> str:
    if difference.root is None:
        return "the key is not a key of the root: another program writes to this topic"
    if difference.published is None and difference.state is not None:
        return "never published, or deleted in the topic"
    if difference.state is None and difference.published is not None:
        return "published, but the state has no document"
    fields = dict.fromkeys("".join(map(partial(_step, index=""), place)).lstrip(".") for place in places)
    return f"differs in {', '.join(fields) or 'the whole document'}"


def _differing_places(difference: Difference) -> list[Place]:
    """The places where published document and state differ; where these are equal, state and SQL."""
    one, other = (difference.published, difference.state) if difference.stale else (difference.state, difference.sql)
    if one is None or other is None:
        return [()]
    try:
        return list(_differ((), canonical_json.loads(one), canonical_json.loads(other)))
    except ValueError:  # another program wrote a message that is not JSON
        return [()]


def _differ(place: Place, one: Value, other: Value) -> Iterator[Place]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            if name in one and name in other:
                yield from _differ((*place, name), one[name], other[name])
            else:
                yield (*place, name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _differ((*place, index), *pair)
    elif not canonical_json.equal(one, other):
        yield place


def _place_lines(difference: Difference, place: Place, sql: bool) -> Iterator[str]:
    if place:
        yield "".join(map(_step, place)).lstrip(".")
    indent = "  " if place else ""
    yield f"{indent}published {coloured(_text(difference.published, place), 'red')}"
    if difference.root is not None:
        yield f"{indent}state     {coloured(_text(difference.state, place), 'green')}"
        if sql:
            yield f"{indent}sql       {_text(difference.sql, place)}"


def _step(step: str | int, index: str | None = None) -> str:
    """A step of a place as text; `index`: in place of the index of an element."""
    return f".{visible_line(step)}" if isinstance(step, str) else f"[{step if index is None else index}]"


def _text(document: bytes | None, place: Place) -> str:
    """The value at a place of a document, in one line."""
    if document is None:
        return "no document"
    try:
        value = canonical_json.loads(document)
    except ValueError:
        text = document.decode(errors="replace")
    else:
        text = ABSENT
        with suppress(LookupError, TypeError):  # the document has no such place
            text = canonical_json.dumps(reduce(getitem, place, value))
    return visible_line(shortened(text, LONGEST))
