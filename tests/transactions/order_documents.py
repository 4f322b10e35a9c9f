"""The invariant of the orders: whether a document shows a state that its transactions left. Pure."""

from collections.abc import Iterator
from typing import Any


def broken(document: Any) -> list[str]:
    """What in a document contradicts its order; empty where nothing does, and of an order that is gone."""
    return [] if document is None else list(_contradictions(document))


def _contradictions(document: Any) -> Iterator[str]:
    lines, payments, shipments = document["lines"], document["payments"], document["shipments"]
    pairs = {
        "total": (document["total"], sum(lines)),
        "line_count": (document["line_count"], len(lines)),
        "paid": (document["paid"], sum(payments)),
        "parcels": (document["parcels"], len(shipments)),
        "revision": (document["revision"], document["receipt"]),
    }
    for name, (said, found) in pairs.items():
        if said != found:
            yield f"{name}: the order says {said}, its rows {found}"
