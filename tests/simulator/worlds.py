"""Worlds that make one situation frequent: what a seed draws otherwise, said (`tests.simulator.temper`)."""

from collections.abc import Mapping
from typing import Any

STORY = {
    "shape": "pair",
    "partitions": 1,
    "lag": "none",
    "replicas": 1,
    "tick": 0.1,
    "batch": 1,
    "pieces": 100,
    "publish_slots": 1,
    "faults": 0,
    "zombie": 0,
    "retries": 0,
    "lost_checkpoint": 0,
    "interleaved": 0,
    "pause": 0.95,
    "in_order": True,
    "apart": 0,
    "page": 1_000,
    "answer": 0,
    "unprocessed": 0,
}
"""A history written by hand, in a world where little happens but what a boost adds."""

AFTER_WRITE = {"faults": 2, "fault": 0.6, "aim": "write Key(pk='TABLE#star'", "kinds": {"crash after": 1}}
RESPLIT = {**AFTER_WRITE, "lost_checkpoint": 1.0, "batch": 2}
HOT = {"hot": True, "events": 14, "faults": 5, "fault": 0.05}
CRASHES = {**HOT, "kinds": {"crash before": 1, "crash after": 1}, "batch": 4}
BROKER = {"faults": 3, "fault": 0.05, "kinds": {"acknowledgement lost": 1, "not delivered": 1, "delivered late": 1}}
ZOMBIES = {**HOT, "zombie": 1.0, "acts": 0.6, "kinds": {"task lost": 3, "crash before": 1, "crash after": 1}}
RETRIED = {**ZOMBIES, "retries": 3, "kinds": {"task lost": 1}}
CALM = {"lag": "none", "faults": 0}


def story(plot: str, boost: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {**STORY, "plot": plot, **(boost or {}), **more}
