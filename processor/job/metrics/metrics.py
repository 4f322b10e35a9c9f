"""All metrics: a row has a metric's kind, meaning, reader and alarm. The documentation, the dashboard, the alarms, the endpoint
and the lines for CloudWatch are made from the table.

`read` takes the value from the report of a job (`run.monitor`), or of a landing. The labels have few values: topics,
products and requests that exist, and fixed words. No label holds a value of a row. Pure.

The lines are in CloudWatch's embedded metric format (EMF): the log of the job carries them, and CloudWatch reads them. Source:
the page "Specification: Embedded metric format" of AWS. A line has at most 100 metrics, and a metric at most 100 values. AWS
charges each metric for each combination of its dimensions. So the only dimension is the job, and the values of a metric with
labels become one: their sum, of ages the greatest. A counter is the count since the line before. Of a histogram the line has up
to 100 values, at equal steps through its quantiles, so CloudWatch's percentiles hold and its sample count does not.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, get_args

from processor.counts import (
    ASSEMBLED_OF,
    BATCH,
    BYTES_OF,
    DEAD_LETTERS_OF,
    IGNORED_AS,
    IN_TOPIC,
    MESSAGES_OF,
    NULLED_OF,
    OUTCOMES,
    READS_OF,
    RENDER_OF,
    REQUEST,
    STAGE,
    STAGES,
    WRITES_OF,
    Count,
)
from processor.engine.rounds.round_counts import (
    AGE_BOUNDS,
    AGE_BUCKETS,
    AGE_SUM,
    LAG_BOUNDS,
    LAG_BUCKETS,
    LAG_SUM,
    SURE_LETTERS,
)
from processor.values.reasons import REASONS
from statestore.store import HALF_UNITS, RETRIES, THROTTLES

Kind = Literal["gauge", "counter", "histogram"]
Severity = Literal["critical", "warning"]
Report = Mapping[str, Any]
Values = Mapping[tuple[str, ...], float]
"""Values of the labels -> value; the empty tuple for a metric without labels."""
WRITES: Final = ("UpdateItem", "DeleteItem")
READS: Final = ("BatchGetItem", "Query")
WORK: Final[Mapping[str, tuple[str, float]]] = {
    "made": (ASSEMBLED_OF, 1),
    "messages": (MESSAGES_OF, 1),
    "bytes": (BYTES_OF, 1),
    "writes": (WRITES_OF, 1e-3),
    "reads": (READS_OF, 1e-3),
    "seconds": (RENDER_OF, 1e-6),
}
"""What a run did for a product: the documents made, also those equal to the last message; messages; their bytes; writes to the
ledger; reads for documents; and seconds of rendering. Each with its counter, and the unit of the counter."""
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
    group: str = ""
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
    lasting: bool
    """The registry keeps the value between runs. So the last value counts while a job that ends again and again writes none, and
    the alarm comes at once."""


Read = Callable[[Report], Values | Histogram]
AlarmOf = Callable[[Metric], Alarm]


def _metric(
    kind: Kind,
    name: str,
    unit: str,
    meaning: str,
    *of: str,
    labels: tuple[str, ...] = (),
    read: "Read | None" = None,
    alarm: "AlarmOf | None" = None,
) -> Metric:
    """A row. `of`: in place of `read`, the counters that a counter adds up, or the number of the report that a gauge shows."""
    reads = read or (_counted(*of) if kind == "counter" else _member(*of))
    return Metric(
        name=f"statestore_{name}", kind=kind, unit=unit, meaning=meaning, labels=labels, read=reads, alarm=alarm
    )


_gauge, _counter, _histogram = (partial(_metric, kind) for kind in get_args(Kind))


def _group(name: str, *metrics: Metric) -> tuple[Metric, ...]:
    """The metrics of a heading."""
    return tuple(replace(metric, group=name) for metric in metrics)


def _alarm(
    name: str,
    severity: Severity,
    meaning: str,
    *,
    limit: int = 0,
    limit_name: str = "",
    silent: bool = False,
    lasting: bool = False,
) -> AlarmOf:
    """The alarm of its row."""
    return lambda metric: Alarm(
        name=name,
        metric=metric,
        severity=severity,
        meaning=meaning,
        limit=limit,
        limit_name=limit_name,
        silent=silent,
        lasting=lasting,
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


def counts_after(prefix: str, counts: Mapping[str, int]) -> dict[str, int]:
    """The counters that begin with a prefix, by the rest of their names, in order."""
    return {name.removeprefix(prefix): count for name, count in sorted(counts.items()) if name.startswith(prefix)}


def _by_product(word: str) -> Read:
    """The work of each product that the run published documents of. `word`: of WORK."""
    prefix, unit = WORK[word]
    return lambda report: {(name,): count * unit for name, count in counts_after(prefix, report["counts"]).items()}


def _buckets(bounds: tuple[float, ...], buckets: Sequence[str], total: str) -> Read:
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


def _retention_used(report: Report) -> Values:
    return {
        (topic,): 100 * lag["seconds"] / max(lag["retention"], 1)
        for topic, lag in report["topics"].items()
        if lag["seconds"] is not None and lag.get("retention") is not None
    }


def _pauses(report: Report) -> Values:
    return {(one["kind"], one["name"]): max(0.0, report["at"] - one["at"]) for one in report["pauses"]}


def _since_failed(report: Report) -> Values:
    at = report["past"].get("last_failure")
    return {} if at is None else _one(max(0.0, report["at"] - at))


def _stalled(report: Report) -> Values:
    """No value while only the broker could tell."""
    return {} if report["stalled_seconds"] is None else _one(report["stalled_seconds"])


def _events(report: Report) -> Values:
    counts = report["counts"]
    topics = {*report["topics"], *(name.partition(IN_TOPIC)[2] for name in counts if IN_TOPIC in name)}
    return {
        (topic, outcome.replace(Count.DEAD_LETTERS, "dead_letter")): counts.get(f"{outcome}{IN_TOPIC}{topic}", 0)
        for topic in sorted(topics)
        for outcome in OUTCOMES
    }


def _letters_waiting(report: Report) -> Values:
    """No value while the registry does not say. A report of an older release has none."""
    groups = report.get("letters_waiting")
    if groups is None:
        return {}
    waiting: dict[tuple[str, ...], float] = {(topic,): 0 for topic in report["topics"]}
    for one in groups:
        waiting[one["topic"],] = waiting.get((one["topic"],), 0) + one["letters"]
    return waiting


def _dead_letter_percent(report: Report) -> Values:
    shares = {(topic,): 0.0 for topic in report["topics"]}
    found = (one for one in report.get("rejects", ()) if one["dead"] > SURE_LETTERS)
    return shares | {(one["topic"],): 100 * one["dead"] / max(one["read"], 1) for one in found}


def _ignored(report: Report) -> Values:
    found = ((*name.partition(IN_TOPIC), count) for name, count in counts_after(IGNORED_AS, report["counts"]).items())
    return dict(sorted(((topic, why), count) for why, _, topic, count in found if topic))


def _absent_columns(report: Report) -> Values:
    found = report.get("absent_columns", {}).values()
    return {(one["entity"], one["column"]): one["records"] for one in found if not one["choice"]}


def _nulled(report: Report) -> Values:
    return {tuple(place.split(".", 1)): count for place, count in counts_after(NULLED_OF, report["counts"]).items()}


def _gate_ages(report: Report) -> Values:
    ages = {
        product: 0.0 if gate["since"] is None else report["at"] - gate["since"]
        for product, gate in report["gates"].items()
    }
    return {(product,): max(0.0, age) for product, age in ages.items()}


def _since_landed(report: Report) -> Values:
    landed_at = report["landed_at"]
    return {} if landed_at is None else _one(report["at"] - landed_at)


_STATUS = "`statestore status` says which and why."
RESTARTS: Final = "restarts_total"
RETENTION_PERCENT: Final = 75
"""The share of a topic's retention from which a person must act."""

METRICS = (
    *_group(
        "Lag",
        _gauge(
            "lag_records",
            "records",
            "Unread offsets of a topic, with those of open transactions. No value while the broker does not show them.",
            labels=("topic",),
            read=lambda report: _of_lags(report, "records"),
        ),
        _gauge(
            "lag_seconds",
            "seconds",
            "Seconds for which the oldest unread record of a topic waits, 0 without one. No value while the "
            "broker does not show it.",
            labels=("topic",),
            read=lambda report: _of_lags(report, "seconds"),
            alarm=_alarm("lag", "warning", "The job is behind its topics.", limit=300, limit_name="lag_seconds"),
        ),
        _gauge(
            "retention_used_percent",
            "percent",
            "Age of the oldest unread record as a share of the topic's `retention.ms`, 0 without one: above 100 the broker may "
            "delete it unread. Paused topics count. No value where no age ends records, or the broker does not show it.",
            labels=("topic",),
            read=_retention_used,
            alarm=_alarm(
                "retention",
                "critical",
                "The broker soon deletes records that the job has not read: `statestore status` says when.",
                limit=RETENTION_PERCENT,
                limit_name="retention_used_percent",
            ),
        ),
        _gauge(
            "oldest_unpublished_seconds",
            "seconds",
            "Age of the oldest change whose documents are not all published: an unread record, or the oldest follow-up work. "
            "No value while the broker does not show the lag.",
            read=_oldest,
            alarm=_alarm(
                "unpublished",
                "warning",
                "A change waits for its documents.",
                limit=300,
                limit_name="unpublished_seconds",
            ),
        ),
    ),
    *_group(
        "Records",
        _counter(
            "events_total",
            "records",
            "Records that the job read. Outcome: applied, superseded, ignored or dead_letter.",
            labels=("topic", "outcome"),
            read=_events,
        ),
        _counter(
            "ignored_total",
            "records",
            "Records that changed no row. Reason: control, truncate, other table (than the entity's), erased or unknown topic.",
            labels=("topic", "reason"),
            read=_ignored,
        ),
        _counter(
            "dead_letters_total",
            "records",
            "Dead letters. Reason: one of the codes of docs/dead-letters.md.",
            labels=("reason",),
            read=lambda report: {(code,): report["counts"].get(f"{DEAD_LETTERS_OF}{code}", 0) for code in REASONS},
        ),
        _gauge(
            "dead_letter_percent",
            "percent",
            f"Dead letters among the records of a topic, of the last `reject_window_seconds`; 0 with at most {SURE_LETTERS} of "
            "them. Above `max_reject_share` the job stops.",
            labels=("topic",),
            read=_dead_letter_percent,
            alarm=_alarm(
                "dead_letters",
                "warning",
                "A large share of a topic's records breaks its contract, and the job may stop: `statestore status` says which.",
                limit=2,
                limit_name="dead_letter_percent",
            ),
        ),
        _gauge(
            "dead_letters_waiting",
            "records",
            "Dead letters that wait for a person, also those of earlier runs: each record once.",
            labels=("topic",),
            read=_letters_waiting,
        ),
        _gauge(
            "absent_columns",
            "records",
            "Records in a row that lack a declared column, of each column that the source sends no more. None where the "
            "entity says `absent` of it.",
            labels=("entity", "column"),
            read=_absent_columns,
            alarm=_alarm("absent_columns", "warning", f"Records lack a declared column: {_STATUS}"),
        ),
        _counter(
            "unrepresentable_values_total",
            "values",
            "Values that the declared type of their column cannot hold, and which are null because the entity says "
            "`unrepresentable`.",
            labels=("entity", "column"),
            read=_nulled,
        ),
    ),
    *_group(
        "Documents",
        _counter(
            "documents_total", "documents", "Published documents and tombstones.", Count.PUBLISHED, Count.CORRECTIONS
        ),
        _counter(
            "suppressed_documents_total",
            "documents",
            "Documents equal to the last message, so none went out.",
            Count.UNCHANGED,
        ),
        _counter(
            "corrections_total",
            "documents",
            "Published documents that only settling found. More than a few: an index is later than W.",
            Count.CORRECTIONS,
        ),
        _histogram(
            "document_latency_seconds",
            "seconds",
            "From Kafka's time of the oldest record that led to a document until the broker committed it. "
            "Without follow-up work.",
            read=_buckets(AGE_BOUNDS, AGE_BUCKETS, AGE_SUM),
        ),
        _counter(
            "message_bytes_total",
            "bytes",
            "Keys and values of the messages of a product, before the broker's compression.",
            labels=("product",),
            read=_by_product("bytes"),
        ),
        _counter(
            "render_seconds_total",
            "seconds",
            "Time of rendering and encoding a product's documents. A part that several products show counts for the first one.",
            labels=("product",),
            read=_by_product("seconds"),
        ),
        _counter(
            "ledger_writes_total",
            "writes",
            "Writes to the ledger. One that several products share is divided equally.",
            labels=("product",),
            read=_by_product("writes"),
        ),
        _counter(
            "document_reads_total",
            "reads",
            "Items and joins read for the documents of a product, with the ledger. A read that several products share is "
            "divided equally. A request may have several reads.",
            labels=("product",),
            read=_by_product("reads"),
        ),
    ),
    *_group(
        "Requests to the table",
        _counter(
            "requests_total",
            "requests",
            "Requests to the table, with pages and retries. Request: its name in DynamoDB's API, in Postgres too.",
            labels=("request",),
            read=_by_request(REQUEST),
        ),
        _counter(
            "read_units_total",
            "units",
            "Read units that DynamoDB consumed.",
            labels=("request",),
            read=_by_request(HALF_UNITS, READS, 0.5),
        ),
        _counter(
            "write_units_total",
            "units",
            "Write units that DynamoDB consumed, with those of indexes. Without those of refused writes, which no answer names.",
            labels=("request",),
            read=_by_request(HALF_UNITS, WRITES, 0.5),
        ),
        _counter(
            "throttles_total",
            "answers",
            "Answers in which DynamoDB refused work because there was too much, in whole or in part.",
            labels=("request",),
            read=_by_request(THROTTLES),
            alarm=_alarm("throttles", "warning", "The store throttles requests of the job.", limit_name="throttles"),
        ),
        _counter(
            "retries_total",
            "requests",
            "Requests that went out again after a failure.",
            labels=("request",),
            read=_by_request(RETRIES),
        ),
        _histogram(
            "index_lag_seconds",
            "seconds",
            "Age of a change that an index answer lacked. Only answers that lag count, 0 s in the round that wrote the row.",
            read=_buckets(LAG_BOUNDS, LAG_BUCKETS, LAG_SUM),
        ),
    ),
    *_group(
        "Follow-up work",
        _gauge("open_changes", "rows", "Rows in the overlay: changes that an index may not show yet.", "open_changes"),
        _gauge("settle_due", "rows", "Open changes that wait for settling now.", "settle_due"),
        _counter("settled_changes_total", "rows", "Open changes that the job settled.", Count.SETTLED),
        _gauge("fan_outs", "fan-outs", "Fan-outs with pages left.", "fan_outs"),
        _counter("fan_out_pages_total", "pages", "Pages of fan-outs that later rounds did.", Count.FAN_OUT_PAGES),
        _gauge("backlog_documents", "documents", "Roots of stopped products, and of earlier runs.", "backlog"),
        _gauge("walks", "walks", "Walks that are not done.", read=_how_many("walks")),
        _counter("walked_rows_total", "rows", "Stored rows that walks read.", Count.WALKED),
        _counter(
            "truncated_rows_total", "rows", "Stored rows deleted because the source emptied their table.", Count.DELETED
        ),
    ),
    *_group(
        "Gates (`publish` of products)",
        _gauge(
            "gate_documents",
            "documents",
            "Documents that wait at the gate of a product.",
            labels=("product",),
            read=lambda report: {(product,): gate["waiting"] for product, gate in report["gates"].items()},
        ),
        _gauge(
            "gate_oldest_seconds",
            "seconds",
            "For how long the oldest of them waits, 0 without one.",
            labels=("product",),
            read=_gate_ages,
        ),
        _counter(
            "gate_held_total",
            "documents",
            "Times that a round left a document to its gate, also one that waits.",
            Count.HELD,
        ),
        _counter("gate_released_total", "documents", "Documents that gates let go.", Count.RELEASED),
        _counter(
            "gate_released_incomplete_total",
            "documents",
            "Those that went out at `at_most`, and may show a part of a transaction.",
            Count.RELEASED_INCOMPLETE,
            alarm=_alarm(
                "released_incomplete",
                "warning",
                "Documents went out at `at_most`, and may show a part of a transaction: docs/formats.md#gates has the causes.",
                limit_name="released_incomplete",
            ),
        ),
    ),
    *_group(
        "Job",
        _counter("batches_total", "batches", "Micro-batches that ended.", Count.BATCHES),
        _counter(
            "batch_seconds_total",
            "seconds",
            "Time of the micro-batches, from their begin to their end.",
            read=lambda report: _one(report["counts"].get(STAGE + BATCH, 0) / 1000),
        ),
        _counter(
            "stage_seconds_total",
            "seconds",
            "Time of the tasks of a stage, which is write or publish. Tasks that run side by side add up.",
            labels=("stage",),
            read=lambda report: {(stage,): report["counts"].get(f"{STAGE}{stage}", 0) / 1000 for stage in STAGES},
        ),
        _counter(
            RESTARTS,
            "runs",
            "Runs of the job that failed or died, by the registry: a restart does not begin at 0.",
            read=lambda report: _one(report["past"]["restarts"]),
            alarm=_alarm(
                "restarts",
                "warning",
                "Runs of the job fail, although some of them work: `statestore status` says why the last one failed.",
                limit=5,
                limit_name="restarts",
                lasting=True,
            ),
        ),
        _gauge(
            "failed_runs",
            "runs",
            "Runs that failed or died one after the other, by the registry; 0 once a run works.",
            read=lambda report: _one(report["past"]["failed"]),
            alarm=_alarm(
                "failed_runs",
                "critical",
                "The job fails and starts again, over and over: `statestore status` says why.",
                limit=2,
                limit_name="failed_runs",
                lasting=True,
            ),
        ),
        _gauge(
            "last_failure_seconds",
            "seconds",
            "Time since a run failed or died last, by the registry. No value before the first failure.",
            read=_since_failed,
        ),
        _gauge(
            "stalled_seconds",
            "seconds",
            "Time since the last batch ended, or since the oldest unread record, while records wait; 0 while none waits. A "
            "restart does not begin at 0. No value while the broker does not show the lag.",
            read=_stalled,
            alarm=_alarm(
                "stalled",
                "critical",
                "Records wait, and the job ends no batch: `statestore status` says why.",
                limit=600,
                limit_name="stalled_seconds",
                lasting=True,
            ),
        ),
        _gauge("registry_version", "version", "The registry version that the job applied.", "registry_version"),
        _gauge(
            "refused_version",
            "version",
            "The registry version that the job cannot run by, 0 without one.",
            "refused_version",
            alarm=_alarm(
                "refused_version",
                "critical",
                "The job cannot run by the newest registry version: `statestore status` says why.",
            ),
        ),
        _gauge(
            "stopped_products",
            "products",
            "Products that stopped: a person must act.",
            read=_how_many("stopped_products"),
            alarm=_alarm("stopped_product", "critical", f"The job stopped a product: {_STATUS}"),
        ),
        _gauge(
            "unfit_documents",
            "documents",
            "Documents that do not fit their topic, found in this run: a person must act.",
            read=lambda report: _one(sum(report["unfit_documents"].values())),
            alarm=_alarm(
                "unfit_documents",
                "critical",
                "Documents do not fit their topic: `statestore dead-letters list --each` says why.",
            ),
        ),
        _gauge(
            "stopped_walks",
            "walks",
            "Walks that stopped: a person must act.",
            read=_how_many("stopped_walks"),
            alarm=_alarm("stopped_walk", "critical", f"The job stopped a walk: {_STATUS}"),
        ),
        _gauge(
            "troubles",
            "flag",
            "1 while the job waits for a part outside of it, such as the registry: it continues by itself. No value without one.",
            labels=("part",),
            read=lambda report: {(trouble["part"],): 1.0 for trouble in report["troubles"]},
            alarm=_alarm(
                "degraded", "warning", "The job waits for a part outside of it: `statestore status` names the part."
            ),
        ),
        _gauge(
            "paused",
            "flag",
            "1 while all work is paused, else 0.",
            read=lambda report: _one(report["doing"] == "paused"),
        ),
        _gauge(
            "pause_seconds",
            "seconds",
            "For how long an operator's pause lasts. Kind: topic or product. No value without one.",
            labels=("kind", "name"),
            read=_pauses,
        ),
        _gauge(
            "lease_age_seconds",
            "seconds",
            "Time since the last renewal; above lease_seconds the job counts as dead.",
            "lease_age",
            alarm=_alarm(
                "lease",
                "critical",
                "The job does not renew its lease, or writes no metrics: it may be dead.",
                limit=60,
                limit_name="lease_age_seconds",
                silent=True,
            ),
        ),
        _gauge(
            "job_info",
            "flag",
            "Always 1. The labels name the job and its release.",
            labels=("name", "version"),
            read=lambda report: {(report["job"], report["statestore"]): 1.0},
        ),
    ),
)

LANDING_METRICS = _group(
    "A landing (`land --status-port`)",
    _counter(
        "landing_messages_total",
        "messages",
        "Messages that this process took. Outcome: landed, deleted, refused, superseded, or foreign: not of the product.",
        labels=("outcome",),
        read=lambda report: {(name,): report["counts"].get(name, 0) for name in LANDING_OUTCOMES},
    ),
    _gauge("landing_lag_messages", "messages", "Messages of its partitions that this process has not read.", "behind"),
    _gauge(
        "landing_last_seconds",
        "seconds",
        "Time since the last batch landed. No value before the first.",
        read=_since_landed,
    ),
    _gauge(
        "landing_troubles",
        "flag",
        "1 while the landing waits for a part outside of it. No value without one.",
        labels=("part",),
        read=lambda report: {(part,): 1 for part in report["troubles"]},
    ),
)

_ORDER = (
    *("failed_runs", "restarts", "stalled", "retention", "lag", "unpublished", "degraded"),
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


MOST_VALUES = 100
EMF_UNITS: Final = {"seconds": "Seconds", "percent": "Percent"}
"""CloudWatch's names of the units whose values do not add up; all others are counts."""


class EmfWriter:
    """Makes the lines of one run. `namespace`: that of CloudWatch; `restarts`: how many the run before knew, whose lines hold
    them."""

    def __init__(self, namespace: str, restarts: int = 0) -> None:
        self._namespace = namespace
        self._before: Mapping[str, Values | Histogram] = {f"statestore_{RESTARTS}": _one(restarts)}

    def line(self, report: Mapping[str, Any]) -> str:
        """The line of a report."""
        values = read_metrics(report)
        found = {
            m: _value(m, values[m.name], self._before.get(m.name)) for m in METRICS if m.name != "statestore_job_info"
        }
        self._before = values
        shown = {metric: value for metric, value in found.items() if value is not None}
        directive = {
            "Namespace": self._namespace,
            "Dimensions": [["job"]],
            "Metrics": [{"Name": m.name, "Unit": EMF_UNITS.get(m.unit, "Count")} for m in shown],
        }
        head = {
            "_aws": {"Timestamp": round(1000 * report["at"]), "CloudWatchMetrics": [directive]},
            "job": report["job"],
        }
        return json.dumps({**head, **{metric.name: value for metric, value in shown.items()}})


def _value(metric: Metric, now: Values | Histogram, before: Values | Histogram | None) -> float | list[float] | None:
    """The value of a metric in a line; None where there is none."""
    if isinstance(now, Histogram):
        counts = before.counts if isinstance(before, Histogram) else (0,) * len(now.counts)
        return _quantiles(now._replace(counts=tuple(a - b for a, b in zip(now.counts, counts, strict=True)))) or None
    if not now:
        return None
    if metric.kind == "counter":
        earlier = before if before is not None and not isinstance(before, Histogram) else {}
        return round(sum(now.values()) - sum(earlier.values()), 3)
    return round((max if metric.unit in EMF_UNITS else sum)(now.values()), 3)


def _quantiles(histogram: Histogram) -> list[float]:
    """Up to 100 values of a histogram: the upper bounds of the buckets of its quantiles."""
    ends, bounds = histogram.cumulative, (*histogram.bounds, histogram.bounds[-1])
    shown = min(ends[-1], MOST_VALUES)
    ranks = [(n + 0.5) / shown * ends[-1] for n in range(shown)]
    return [next(bound for bound, end in zip(bounds, ends, strict=True) if end >= rank) for rank in ranks]
