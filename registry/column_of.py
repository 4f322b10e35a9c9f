"""The column of a field of slots or edges, which is a column or the elements of one (`ids[]`, `inner[].id::number`). Pure."""

import re

_ELEMENTS = re.compile(r"(.+?)\[\](?:\..+?)?(?:::\w+)?")


def column_of(field: str) -> str:
    """The column of a field."""
    elements = _ELEMENTS.fullmatch(field)
    return elements.group(1) if elements else field
