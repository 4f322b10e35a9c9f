"""How old the state is at most, by the last report of the job. Pure.

The table keeps no time of a row or of a message. A job reports what it has not read of its topics, and since when that waits. So
a reader knows: each change that Kafka had so many seconds ago is in the table.
"""

from collections.abc import Collection, Iterable

from registry.model import JobStatus


def state_age(jobs: Iterable[JobStatus], topics: Collection[str]) -> float | None:
    """The age in seconds, for the rows of these topics. None where no job has reported how far it is in each of them."""
    reports = [(one.report_age, one.report) for one in jobs if one.report is not None and one.report_age is not None]
    if not reports:
        return None
    report_age, report = min(reports, key=lambda one: one[0])
    waits = [report["topics"].get(topic, {}).get("seconds") for topic in topics]
    if None in waits or "looked" not in report:
        return None
    return float(max(0.0, report_age) + (report["at"] - report["looked"]) + max(waits, default=0.0))
