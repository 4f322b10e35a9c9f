"""All metrics: a row has a metric's kind, meaning, reader and alarm. The documentation, the dashboard, the alarms, the endpoint
and the lines for CloudWatch are made from the table.

`read` takes the value from the report of a job (`run.monitor`), or of a landing. The labels have few values: topics,
products and requests that exist, and fixed words. No label holds a value of a row. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple

from processor.counts import BATCH, DEAD_LETTERS_OF, IN_TOPIC, OUTCOMES, REQUEST, STAGE, STAGES, Count
from processor.engine.rounds import freshness
from processor.engine.rounds.index_lag import LAG_BOUNDS, LAG_BUCKETS, LAG_SUM
from processor.values.reasons import REASONS
from statestore.store import HALF_UNITS, RETRIES, THROTTLES

Kind = Literal["counter", "gauge", "histogram"]
Severity = Literal["critical", "warning"]
Report = Mapping[str, Any]
Values = Mapping[tuple[str, ...], float]
"""Values of the labels -> value; the empty tuple for a metric without labels."""
WRITES: Final = ("UpdateItem", "DeleteItem")
READS: Final = ("BatchGetItem", "Query")
LANDING_OUTCOMES: Final = ("landed", "deleted", "refused", "superseded", "foreign")


class Histogram(NamedTuple):
    """A histogram. `counts`: how many in each bucket, one more than there are `bounds`; `total`: the sum of all values."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @property
    def cumulative(self) -> list[int]:
        """How many are in each bucket or below it."""
        return list(accumulate(self.counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric. A counter counts since the start of the run."""

    name: str
    """By the rules of Prometheus."""
    kind: Kind
    unit: str
    group: str
    """The heading in the documentation."""
    meaning: str
    labels: tuple[str, ...]
    """The names of the labels."""
    read: "Read"
    """Takes the values from a report. A counter that nothing counted is 0."""
    alarm: "AlarmOf | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm over a metric of a job. A gauge alarms after five minutes above its limit, a counter by its sum over five
    minutes."""

    name: str
    metric: Metric
    severity: Severity
    meaning: str
    """For the person who gets the alarm."""
    limit: int
    """The default."""
    limit_name: str
    """A deployment may set another limit under this name. Empty where only 0 makes sense."""
    silent: bool
    """The alarm also comes when the job writes no metrics at all."""


Read = Callable[[Report], Values | Histogram]
AlarmOf = Callable[[Metric], Alarm]


def _metric(
    kind: Kind,
    name: str,
    unit: str,
    group: str,
    meaning: str,
    *labels: str,
    read: Read,
    alarm: AlarmOf | None = None,
) -> Metric:
    return Metric(
        name=f"statestore_{name}",
        kind=kind,
        unit=unit,
        group=group,
        meaning=meaning,
        labels=labels,
        read=read,
        alarm=alarm,
    )


def _alarm(
    name: str, severity: Severity, meaning: str, *, limit: int = 0, limit_name: str = "", silent: bool = False
) -> AlarmOf:
    """The alarm of the row that has it."""
    return lambda metric: Alarm(
        name=name,
        metric=metric,
        severity=severity,
        meaning=meaning,
        limit=limit,
        limit_name=limit_name,
        silent=silent,
    )


def _one(value: float) -> Values:
    return {(): value}


def _counted(*names: str) -> Read:
    """The sum of counters of the tally."""
    return lambda report: _one(sum(report["counts"].get(name, 0) for name in names))


def _member(name: str) -> Read:
    """A number of the report."""
    return lambda report: _one(report[name])


def _how_many(name: str) -> Read:
    """The length of a list of the report."""
    return lambda report: _one(len(report[name]))


def _by_request(prefix: str, requests: Iterable[str] = (*WRITES, *READS), each: float = 1) -> Read:
    return lambda report: {(name,): report["counts"].get(prefix + name, 0) * each for name in requests}


def _histogram(bounds: tuple[float, ...], buckets: Sequence[str], total: str) -> Read:
    def read(report: Report) -> Histogram:
        counts = report["counts"]
        return Histogram(bounds, tuple(counts.get(name, 0) for name in buckets), counts.get(total, 0) / 1000)

    return read


def _of_lags(report: Report, member: str) -> Values:
    """No value of a topic whose lag the broker does not show."""
    return {(topic,): lag[member] for topic, lag in report["topics"].items() if lag[member] is not None}


def _oldest(report: Report) -> Values:
    """The age of the oldest change without its documents; no value while only the broker could tell."""
    oldest = report["oldest_unpublished"]
    if oldest is None and any(lag["records"] is None for lag in report["topics"].values()):
        return {}
    return _one(0.0 if oldest is None else max(0.0, report["at"] - oldest))


def _events(report: Report) -> Values:
    counts = report["counts"]
    topics = {*report["topics"], *(name.partition(IN_TOPIC)[2] for name in counts if IN_TOPIC in name)}
    return {
        (topic, outcome.replace(Count.DEAD_LETTERS, "dead_letter")): counts.get(f"{outcome}{IN_TOPIC}{topic}", 0)
        for topic in sorted(topics)
        for outcome in OUTCOMES
    }


def _absent_columns(report: Report) -> Values:
    found = report.get("absent_columns", {}).values()
    return {(one["entity"], one["column"]): one["records"] for one in found if not one["choice"]}


def _gate_ages(report: Report) -> Values:
    ages = {
        product: 0.0 if gate["since"] is None else report["at"] - gate["since"]
        for product, gate in report["gates"].items()
    }
    return {(product,): max(0.0, age) for product, age in ages.items()}


def _since_landed(report: Report) -> Values:
    landed_at = report["landed_at"]
    return {} if landed_at is None else _one(report["at"] - landed_at)


LAG, RECORDS, DOCUMENTS = "Lag", "Records", "Documents"
TABLE, FOLLOW_UP, JOB, LANDING = "Requests to the table", "Follow-up work", "Job", "A landing (`land --status-port`)"
GATES = "Gates (`publish` of products)"

_STATUS = "`statestore status` says which and why."

METRICS = (
    _metric(
        "gauge",
        "lag_records",
        "records",
        LAG,
        "Unread offsets of a topic, with those of open transactions. No value while the broker does not show them.",
        "topic",
        read=lambda report: _of_lags(report, "records"),
    ),
    _metric(
        "gauge",
        "lag_seconds",
        "seconds",
        LAG,
        "Seconds for which the oldest unread record of a topic waits, 0 without one. No value while the broker does not show it.",
        "topic",
        read=lambda report: _of_lags(report, "seconds"),
        alarm=_alarm("lag", "warning", "The job is behind its topics.", limit=300, limit_name="lag_seconds"),
    ),
    _metric(
        "gauge",
        "oldest_unpublished_seconds",
        "seconds",
        LAG,
        "Age of the oldest change whose documents are not all published: an unread record, or the oldest follow-up work. "
        "No value while the broker does not show the lag.",
        read=_oldest,
        alarm=_alarm(
            "unpublished", "warning", "A change waits for its documents.", limit=300, limit_name="unpublished_seconds"
        ),
    ),
    _metric(
        "counter",
        "events_total",
        "records",
        RECORDS,
        "Records that the job read. Outcome: applied, superseded, ignored or dead_letter.",
        "topic",
        "outcome",
        read=_events,
    ),
    _metric(
        "counter",
        "dead_letters_total",
        "records",
        RECORDS,
        "Dead letters. Reason: one of the codes of docs/dead-letters.md.",
        "reason",
        read=lambda report: {(code,): report["counts"].get(f"{DEAD_LETTERS_OF}{code}", 0) for code in REASONS},
        alarm=_alarm(
            "dead_letters",
            "warning",
            "Records break their contract: `statestore dead-letters list` shows them.",
            limit_name="dead_letters",
        ),
    ),
    _metric(
        "gauge",
        "absent_columns",
        "records",
        RECORDS,
        "Records in a row that lack a declared column, of each column that the source sends no more. None where the entity says "
        "`absent` of it.",
        "entity",
        "column",
        read=_absent_columns,
        alarm=_alarm("absent_columns", "warning", f"Records lack a declared column: {_STATUS}"),
    ),
    _metric(
        "counter",
        "documents_total",
        "documents",
        DOCUMENTS,
        "Published documents and tombstones.",
        read=_counted(Count.PUBLISHED, Count.CORRECTIONS),
    ),
    _metric(
        "counter",
        "suppressed_documents_total",
        "documents",
        DOCUMENTS,
        "Documents equal to the last message, so none went out.",
        read=_counted(Count.UNCHANGED),
    ),
    _metric(
        "counter",
        "corrections_total",
        "documents",
        DOCUMENTS,
        "Published documents that only settling found. More than a few: an index is later than W.",
        read=_counted(Count.CORRECTIONS),
    ),
    _metric(
        "histogram",
        "document_latency_seconds",
        "seconds",
        DOCUMENTS,
        "From Kafka's time of the oldest record that led to a document until the broker committed it. Without follow-up work.",
        read=_histogram(freshness.BOUNDS, freshness.BUCKETS, freshness.SUM),
    ),
    _metric(
        "counter",
        "requests_total",
        "requests",
        TABLE,
        "Requests to the table, with pages and retries. Request: its name in DynamoDB's API, in Postgres too.",
        "request",
        read=_by_request(REQUEST),
    ),
    _metric(
        "counter",
        "read_units_total",
        "units",
        TABLE,
        "Read units that DynamoDB consumed.",
        "request",
        read=_by_request(HALF_UNITS, READS, 0.5),
    ),
    _metric(
        "counter",
        "write_units_total",
        "units",
        TABLE,
        "Write units that DynamoDB consumed, with those of indexes. Without those of refused writes, which no answer names.",
        "request",
        read=_by_request(HALF_UNITS, WRITES, 0.5),
    ),
    _metric(
        "counter",
        "throttles_total",
        "answers",
        TABLE,
        "Answers by which DynamoDB refused work because there was too much, in whole or in part.",
        "request",
        read=_by_request(THROTTLES),
        alarm=_alarm("throttles", "warning", "The store throttles requests of the job.", limit_name="throttles"),
    ),
    _metric(
        "counter",
        "retries_total",
        "requests",
        TABLE,
        "Requests that went out again after a failure.",
        "request",
        read=_by_request(RETRIES),
    ),
    _metric(
        "histogram",
        "index_lag_seconds",
        "seconds",
        TABLE,
        "Age of a change that an index answer lacked. Only answers that lag count, 0 s in the round that wrote the row.",
        read=_histogram(LAG_BOUNDS, LAG_BUCKETS, LAG_SUM),
    ),
    _metric(
        "gauge",
        "open_changes",
        "rows",
        FOLLOW_UP,
        "Rows in the overlay: changes that an index may not show yet.",
        read=_member("open_changes"),
    ),
    _metric(
        "gauge", "settle_due", "rows", FOLLOW_UP, "Open changes that wait for settling now.", read=_member("settle_due")
    ),
    _metric(
        "counter",
        "settled_changes_total",
        "rows",
        FOLLOW_UP,
        "Open changes that the job settled.",
        read=_counted(Count.SETTLED),
    ),
    _metric("gauge", "fan_outs", "fan-outs", FOLLOW_UP, "Fan-outs with pages left.", read=_member("fan_outs")),
    _metric(
        "counter",
        "fan_out_pages_total",
        "pages",
        FOLLOW_UP,
        "Pages of fan-outs that later rounds did.",
        read=_counted(Count.FAN_OUT_PAGES),
    ),
    _metric(
        "gauge",
        "backlog_documents",
        "documents",
        FOLLOW_UP,
        "Roots of stopped products, and of earlier runs.",
        read=_member("backlog"),
    ),
    _metric("gauge", "walks", "walks", FOLLOW_UP, "Walks that are not done.", read=_how_many("walks")),
    _metric(
        "counter", "walked_rows_total", "rows", FOLLOW_UP, "Stored rows that walks read.", read=_counted(Count.WALKED)
    ),
    _metric(
        "counter",
        "truncated_rows_total",
        "rows",
        FOLLOW_UP,
        "Stored rows deleted because the source emptied their table.",
        read=_counted(Count.DELETED),
    ),
    _metric(
        "gauge",
        "gate_documents",
        "documents",
        GATES,
        "Documents that wait at the gate of a product.",
        "product",
        read=lambda report: {(product,): gate["waiting"] for product, gate in report["gates"].items()},
    ),
    _metric(
        "gauge",
        "gate_oldest_seconds",
        "seconds",
        GATES,
        "For how long the oldest of them waits, 0 without one.",
        "product",
        read=_gate_ages,
    ),
    _metric(
        "counter",
        "gate_held_total",
        "documents",
        GATES,
        "Times that a round left a document to its gate, also one that waits.",
        read=_counted(Count.HELD),
    ),
    _metric(
        "counter",
        "gate_released_total",
        "documents",
        GATES,
        "Documents that gates let go.",
        read=_counted(Count.RELEASED),
    ),
    _metric(
        "counter",
        "gate_released_incomplete_total",
        "documents",
        GATES,
        "Those that went out at `at_most`, and may show a part of a transaction.",
        read=_counted(Count.RELEASED_INCOMPLETE),
        alarm=_alarm(
            "released_incomplete",
            "warning",
            "Documents went out at `at_most`, and may show a part of a transaction: docs/gates.md has the causes.",
            limit_name="released_incomplete",
        ),
    ),
    _metric("counter", "batches_total", "batches", JOB, "Micro-batches that ended.", read=_counted(Count.BATCHES)),
    _metric(
        "counter",
        "batch_seconds_total",
        "seconds",
        JOB,
        "Time of the micro-batches, from their begin to their end.",
        read=lambda report: _one(report["counts"].get(STAGE + BATCH, 0) / 1000),
    ),
    _metric(
        "counter",
        "stage_seconds_total",
        "seconds",
        JOB,
        "Time of the tasks of a stage, which is write or publish. Tasks that run side by side add up.",
        "stage",
        read=lambda report: {(stage,): report["counts"].get(f"{STAGE}{stage}", 0) / 1000 for stage in STAGES},
    ),
    _metric(
        "gauge",
        "registry_version",
        "version",
        JOB,
        "The registry version that the job applied.",
        read=_member("registry_version"),
    ),
    _metric(
        "gauge",
        "refused_version",
        "version",
        JOB,
        "The registry version that the job cannot run by, 0 without one.",
        read=_member("refused_version"),
        alarm=_alarm(
            "refused_version",
            "critical",
            "The job cannot run by the newest registry version: `statestore status` says why.",
        ),
    ),
    _metric(
        "gauge",
        "stopped_products",
        "products",
        JOB,
        "Products that stopped: a person must act.",
        read=_how_many("stopped_products"),
        alarm=_alarm("stopped_product", "critical", f"The job stopped a product: {_STATUS}"),
    ),
    _metric(
        "gauge",
        "unfit_documents",
        "documents",
        JOB,
        "Documents that do not fit their topic, found in this run: a person must act.",
        read=lambda report: _one(sum(report["unfit_documents"].values())),
        alarm=_alarm(
            "unfit_documents",
            "critical",
            "Documents do not fit their topic: `statestore dead-letters list --each` says why.",
        ),
    ),
    _metric(
        "gauge",
        "stopped_walks",
        "walks",
        JOB,
        "Walks that stopped: a person must act.",
        read=_how_many("stopped_walks"),
        alarm=_alarm("stopped_walk", "critical", f"The job stopped a walk: {_STATUS}"),
    ),
    _metric(
        "gauge",
        "troubles",
        "flag",
        JOB,
        "1 while the job waits for a part outside of it, such as the registry: it goes on by itself. No value without one.",
        "part",
        read=lambda report: {(trouble["part"],): 1.0 for trouble in report["troubles"]},
        alarm=_alarm(
            "degraded", "warning", "The job waits for a part outside of it: `statestore status` names the part."
        ),
    ),
    _metric(
        "gauge",
        "paused",
        "flag",
        JOB,
        "1 while all work is paused, else 0.",
        read=lambda report: _one(report["doing"] == "paused"),
    ),
    _metric(
        "gauge",
        "lease_age_seconds",
        "seconds",
        JOB,
        "Time since the last renewal; above lease_seconds the job counts as dead.",
        read=_member("lease_age"),
        alarm=_alarm(
            "lease",
            "critical",
            "The job does not renew its lease, or writes no metrics: it may be dead.",
            limit=60,
            limit_name="lease_age_seconds",
            silent=True,
        ),
    ),
    _metric(
        "gauge",
        "job_info",
        "flag",
        JOB,
        "Always 1. The labels name the job and its release.",
        "name",
        "version",
        read=lambda report: {(report["job"], report["statestore"]): 1.0},
    ),
)

LANDING_METRICS = (
    _metric(
        "counter",
        "landing_messages_total",
        "messages",
        LANDING,
        "Messages that this process took. Outcome: landed, deleted, refused, superseded, or foreign: not of the product.",
        "outcome",
        read=lambda report: {(name,): report["counts"].get(name, 0) for name in LANDING_OUTCOMES},
    ),
    _metric(
        "gauge",
        "landing_lag_messages",
        "messages",
        LANDING,
        "Messages of its partitions that this process has not read.",
        read=_member("behind"),
    ),
    _metric(
        "gauge",
        "landing_last_seconds",
        "seconds",
        LANDING,
        "Time since the last batch landed. No value before the first.",
        read=_since_landed,
    ),
    _metric(
        "gauge",
        "landing_troubles",
        "flag",
        LANDING,
        "1 while the landing waits for a part outside of it. No value without one.",
        "part",
        read=lambda report: {(part,): 1 for part in report["troubles"]},
    ),
)

_ORDER = (
    *("lag", "unpublished", "degraded"),
    *("stopped_product", "stopped_walk", "refused_version", "unfit_documents", "lease"),
    *("dead_letters", "absent_columns", "released_incomplete", "throttles"),
)
"""Of the alarms in the generated files: delays, then work that ended, then the rest. An alarm that is not here comes last."""
ALARMS = tuple(
    sorted(
        (metric.alarm(metric) for metric in METRICS if metric.alarm is not None),
        key=lambda alarm: _ORDER.index(alarm.name) if alarm.name in _ORDER else len(_ORDER),
    )
)


def read_metrics(report: Report, metrics: Sequence[Metric] = METRICS) -> dict[str, Values | Histogram]:
    """Metric -> its values in the report of a job, or of a landing for its metrics."""
    return {metric.name: metric.read(report) for metric in metrics}
