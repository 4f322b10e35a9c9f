"""Reads the values of all metrics from the report of a job (`processor.job.monitor`). Pure.

The labels have few values: topics, products and requests that exist, and fixed words. No label holds a value of a row.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from processor.metrics.metrics import METRICS
from processor.records.reject_reasons import REASONS
from processor.rounds import freshness
from processor.rounds.account import DEAD_LETTERS, IN_TOPIC, OUTCOMES
from processor.rounds.index_lag import LAG_BOUNDS, LAG_BUCKETS, LAG_SUM
from processor.rounds.spending import REQUEST
from processor.rounds.stage_times import BATCH, STAGE, STAGES
from statestore.store import HALF_UNITS, RETRIES, THROTTLES

WRITES = ("UpdateItem", "DeleteItem")
READS = ("BatchGetItem", "Query")
Values = Mapping[tuple[str, ...], float]
"""Values of the labels -> value; the empty tuple for a metric without labels."""


class Histogram(NamedTuple):
    """A histogram. `counts`: how many in each bucket, one more than there are `bounds`; `total`: the sum of all values."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @property
    def cumulative(self) -> list[int]:
        """How many are in each bucket or below it."""
        return list(accumulate(self.counts))


def read_metrics(report: Mapping[str, Any]) -> dict[str, Values | Histogram]:
    """Metric -> its values. A counter that nothing counted is 0."""
    counts: Mapping[str, int] = report["counts"]
    topics = sorted({*report["topics"], *(name.partition(IN_TOPIC)[2] for name in counts if IN_TOPIC in name)})
    lags = report["topics"]
    values: dict[str, Values | Histogram] = {
        "lag_records": {(topic,): lag["records"] for topic, lag in lags.items() if lag["records"] is not None},
        "lag_seconds": {(topic,): lag["seconds"] for topic, lag in lags.items() if lag["seconds"] is not None},
        "oldest_unpublished_seconds": _oldest(report),
        "events_total": {
            (topic, outcome.replace("dead letters", "dead_letter")): counts.get(f"{outcome}{IN_TOPIC}{topic}", 0)
            for topic in topics
            for outcome in OUTCOMES
        },
        "dead_letters_total": {(code,): counts.get(f"{DEAD_LETTERS}{code}", 0) for code in REASONS},
        "absent_columns": {
            (one["entity"], one["column"]): one["records"]
            for one in report.get("absent_columns", {}).values()
            if not one["choice"]
        },
        "documents_total": _one(counts.get("published", 0) + counts.get("corrections", 0)),
        "suppressed_documents_total": _one(counts.get("unchanged", 0)),
        "corrections_total": _one(counts.get("corrections", 0)),
        "document_latency_seconds": _histogram(counts, freshness.BOUNDS, freshness.BUCKETS, freshness.SUM),
        "requests_total": _by_request(counts, REQUEST),
        "read_units_total": _by_request(counts, HALF_UNITS, READS, 0.5),
        "write_units_total": _by_request(counts, HALF_UNITS, WRITES, 0.5),
        "throttles_total": _by_request(counts, THROTTLES),
        "retries_total": _by_request(counts, RETRIES),
        "index_lag_seconds": _histogram(counts, LAG_BOUNDS, LAG_BUCKETS, LAG_SUM),
        "open_changes": _one(report["open_changes"]),
        "settle_due": _one(report["settle_due"]),
        "settled_changes_total": _one(counts.get("settled", 0)),
        "fan_outs": _one(report["fan_outs"]),
        "fan_out_pages_total": _one(counts.get("fan-out pages", 0)),
        "backlog_documents": _one(report["backlog"]),
        "walks": _one(len(report["walks"])),
        "walked_rows_total": _one(counts.get("walked", 0)),
        "truncated_rows_total": _one(counts.get("deleted", 0)),
        "gate_documents": {(product,): gate["waiting"] for product, gate in report["gates"].items()},
        "gate_oldest_seconds": {
            (product,): 0.0 if gate["since"] is None else max(0.0, report["at"] - gate["since"])
            for product, gate in report["gates"].items()
        },
        "gate_held_total": _one(counts.get("held", 0)),
        "gate_released_total": _one(counts.get("released", 0)),
        "gate_released_incomplete_total": _one(counts.get("released incomplete", 0)),
        "batches_total": _one(counts.get("batches", 0)),
        "batch_seconds_total": _one(counts.get(STAGE + BATCH, 0) / 1000),
        "stage_seconds_total": {(stage,): counts.get(f"{STAGE}{stage}", 0) / 1000 for stage in STAGES},
        "registry_version": _one(report["registry_version"]),
        "refused_version": _one(report["refused_version"]),
        "stopped_products": _one(len(report["stopped_products"])),
        "unfit_documents": _one(sum(report["unfit_documents"].values())),
        "stopped_walks": _one(len(report["stopped_walks"])),
        "troubles": {(trouble["part"],): 1.0 for trouble in report["troubles"]},
        "paused": _one(report["doing"] == "paused"),
        "lease_age_seconds": _one(report["lease_age"]),
        "job_info": {(report["job"], report["statestore"]): 1.0},
    }
    return {metric.name: values[metric.name.removeprefix("statestore_")] for metric in METRICS}


def _oldest(report: Mapping[str, Any]) -> Values:
    """The age of the oldest change without its documents; no value while only the broker could tell."""
    oldest = report["oldest_unpublished"]
    if oldest is None and any(lag["records"] is None for lag in report["topics"].values()):
        return {}
    return _one(0.0 if oldest is None else max(0.0, report["at"] - oldest))


def _one(value: float) -> Values:
    return {(): value}


def _by_request(
    counts: Mapping[str, int], prefix: str, requests: Iterable[str] = (*WRITES, *READS), each: float = 1
) -> Values:
    return {(name,): counts.get(prefix + name, 0) * each for name in requests}


def _histogram(counts: Mapping[str, int], bounds: tuple[float, ...], buckets: Sequence[str], total: str) -> Histogram:
    return Histogram(bounds, tuple(counts.get(name, 0) for name in buckets), counts.get(total, 0) / 1000)
