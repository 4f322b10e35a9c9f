"""The kinds of reasons of dead letters: a few, for counts. A reason itself names columns and values."""

from typing import Final

KINDS: Final = {
    "column ": "column",
    "key part ": "key",
    "key: ": "key",
    "value: ": "value",
    "the row is ": "too large",
    "the row does not fit ": "too large",
    "the row has changes from partition ": "partition",
}
"""The begin of a reason -> its kind. All other reasons are of the kind `other`: the shape of an envelope."""


def reason_kind(reason: str) -> str:
    """The kind of a reason."""
    return next((kind for begin, kind in KINDS.items() if reason.startswith(begin)), "other")
