"""How far a job is behind, and which topics it misses, in words, from its report (`processor.job.monitor`). Pure.

A record that its producer wrote long before the job began does not wait for the job: an old topic is read from its first record.
Such a record is old, and the words say its age.
"""

from collections.abc import Mapping
from typing import Any

from processor.wording.durations import DAY, duration_text

OLD_SECONDS = DAY
"""A record that is older than the run by more than this is an old record."""


def lag_text(report: Mapping[str, Any], topic: str) -> str:
    """The lag of a topic: its unread records, and how long the oldest waits or how old it is."""
    lag = report["topics"][topic]
    if lag["records"] is None:
        return "unknown"
    wait = "" if not lag["records"] or lag["seconds"] is None else f", {age_text(report, lag['seconds'])}"
    return f"{lag['records']:,} records{wait}"


def age_text(report: Mapping[str, Any], seconds: float) -> str:
    """How long a record waits; of an old record its age."""
    old = seconds - (report["at"] - report["began"]) > OLD_SECONDS
    return duration_text(seconds) + (" old" if old else "")


def oldest_text(report: Mapping[str, Any]) -> str:
    """The age of the oldest change whose documents are not all published."""
    if (oldest := report["oldest_unpublished"]) is not None:
        return age_text(report, max(0.0, report["at"] - oldest))
    return "unknown" if unknown_topics(report) else "none"


def unknown_topics(report: Mapping[str, Any]) -> list[str]:
    """The topics whose lag is unknown: the broker does not show their ends."""
    return [topic for topic, lag in report["topics"].items() if lag["records"] is None]


def missing_text(report: Mapping[str, Any], topic: str) -> str:
    """A topic that does not exist: the nearest name of the broker, and what is empty meanwhile."""
    missing = report["missing_topics"][topic]
    near = f"; the broker has {missing['near']}" if missing["near"] else ""
    empty = "".join(f", and product {name} no document" for name in missing["products"])
    return f"does not exist{near}: entity {missing['entity']} has no rows yet{empty}"
