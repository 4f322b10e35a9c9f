"""The names of pages as files."""

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

LONGEST = 100
"""Characters of a name in the name of a file."""


def page_names(names: Iterable[str]) -> dict[str, str]:
    """The file of each name. A long name, and names that only capitals tell apart, get a hash: some file systems know no
    difference."""
    known = list(names)
    alike = Counter(name.lower() for name in known)
    return {
        name: f"{name}.html" if len(name) <= LONGEST and alike[name.lower()] == 1 else f"{_hashed(name)}.html"
        for name in known
    }


def _hashed(name: str) -> str:
    return f"{name[:LONGEST]}-{sha256(name.encode()).hexdigest()[:8]}"
