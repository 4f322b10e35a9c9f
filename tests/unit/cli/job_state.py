"""The state of a run, as its monitor reports it."""

from typing import Any

STATE: dict[str, Any] = {
    "at": 1_767_323_045.0,
    "began": 1_767_320_000.0,
    "doing": "reads its topics",
    "oldest_unpublished": None,
    "topics": {"repo": {"records": 0, "seconds": 0.0}, "star": {"records": 1234, "seconds": 17.4}},
    "missing_topics": {},
    "no_topic": "",
    "paused_topics": [],
    "events_per_second": 120.5,
    "documents_per_second": 30.0,
    "open_changes": 7,
    "fan_outs": 1,
    "gates": {},
    "dead_letters": 0,
    "last_dead_letter": "",
    "letters_waiting": [],
    "stopped_products": {},
    "stopped_walks": {},
    "waiting_products": [],
}
