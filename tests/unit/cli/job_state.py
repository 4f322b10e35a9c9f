"""The state of a run, as its monitor reports it."""

from typing import Any

STATE: dict[str, Any] = {
    "doing": "reads its topics",
    "topics": {"repo": {"records": 0, "seconds": 0.0}, "star": {"records": 1234, "seconds": 17.4}},
    "missing_topics": [],
    "paused_topics": [],
    "events_per_second": 120.5,
    "documents_per_second": 30.0,
    "open_changes": 7,
    "fan_outs": 1,
    "dead_letters": 0,
    "last_dead_letter": "",
    "stopped_products": {},
    "stopped_walks": {},
    "waiting_products": [],
}
