"""The column of a field of slots or edges. Pure.

A field is a column (`code`), the elements of one (`ids[]`, `inner[].id::number`), or text of either that compares in its own way
(`code::ci`, `tags[]::ci+trimmed`).
"""

import re

_ELEMENTS = re.compile(r"(.+?)\[\](?:\..+?)?(?:::[\w+]+)?")
_COMPARED = re.compile(r"(.+)::(?:ci|trimmed|ci\+trimmed)")


def column_of(field: str) -> str:
    """The column of a field."""
    if "::" not in field and "[]" not in field:
        return field
    found = _ELEMENTS.fullmatch(field) or _COMPARED.fullmatch(field)
    return found.group(1) if found else field
