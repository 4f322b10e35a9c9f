"""The list of all alarms over the metrics of a job. The module for CloudWatch and the rules for Prometheus are made from it.

A gauge alarms after five minutes above its limit, and a counter by its sum over five minutes.
"""

from dataclasses import dataclass
from typing import Literal

from processor.metrics.metrics import METRICS, Metric

Severity = Literal["critical", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm. `limit`: the default; `limit_name`: the name under which a deployment may set another limit, empty where only 0
    makes sense. `silent`: the alarm also comes when the job writes no metrics at all. `meaning`: for the person who gets it."""

    name: str
    metric: Metric
    severity: Severity
    meaning: str
    limit: int = 0
    limit_name: str = ""
    silent: bool = False


_METRICS = {metric.name: metric for metric in METRICS}


def _alarm(
    name: str, metric: str, severity: Severity, meaning: str, limit: int = 0, limit_name: str = "", silent: bool = False
) -> Alarm:
    found = _METRICS[f"statestore_{metric}"]
    return Alarm(
        name=name, metric=found, severity=severity, meaning=meaning, limit=limit, limit_name=limit_name, silent=silent
    )


_STATUS = "`statestore status` says which and why."

ALARMS = (
    _alarm("lag", "lag_seconds", "warning", "The job is behind its topics.", 300, "lag_seconds"),
    _alarm(
        "unpublished",
        "oldest_unpublished_seconds",
        "warning",
        "A change waits for its documents.",
        300,
        "unpublished_seconds",
    ),
    _alarm(
        "degraded", "troubles", "warning", "The job waits for a part outside of it: `statestore status` names the part."
    ),
    _alarm("stopped_product", "stopped_products", "critical", f"The job stopped a product: {_STATUS}"),
    _alarm("stopped_walk", "stopped_walks", "critical", f"The job stopped a walk: {_STATUS}"),
    _alarm(
        "refused_version",
        "refused_version",
        "critical",
        "The job cannot run by the newest registry version: `statestore status` says why.",
    ),
    _alarm(
        "unfit_documents",
        "unfit_documents",
        "critical",
        "Documents do not fit their topic: `statestore rejects list --each` says why.",
    ),
    _alarm(
        "lease",
        "lease_age_seconds",
        "critical",
        "The job does not renew its lease, or writes no metrics: it may be dead.",
        60,
        "lease_age_seconds",
        silent=True,
    ),
    _alarm(
        "dead_letters",
        "dead_letters_total",
        "warning",
        "Records break their contract: `statestore rejects list` shows them.",
        0,
        "dead_letters",
    ),
    _alarm("absent_columns", "absent_columns", "warning", f"Records lack a declared column: {_STATUS}"),
    _alarm(
        "released_incomplete",
        "gate_released_incomplete_total",
        "warning",
        "Documents went out at `at_most`, and may show a part of a transaction: docs/gates.md has the causes.",
        0,
        "released_incomplete",
    ),
    _alarm("throttles", "throttles_total", "warning", "The store throttles requests of the job.", 0, "throttles"),
)
