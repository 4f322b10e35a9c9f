"""The list of all metrics. The documentation, the dashboard, the endpoint and the lines for CloudWatch are made from it."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric. `name`: by the rules of Prometheus; `group`: its heading in the documentation; `labels`: their names. A counter
    counts since the start of the run."""

    name: str
    kind: Kind
    unit: str
    group: str
    meaning: str
    labels: tuple[str, ...] = ()


def _metric(kind: Kind, name: str, unit: str, group: str, meaning: str, *labels: str) -> Metric:
    return Metric(name=f"statestore_{name}", kind=kind, unit=unit, group=group, meaning=meaning, labels=labels)


LAG, RECORDS, DOCUMENTS = "Lag", "Records", "Documents"
TABLE, FOLLOW_UP, JOB, LANDING = "Requests to the table", "Follow-up work", "Job", "A landing (`land --status-port`)"
GATES = "Gates (`publish` of products)"

METRICS = (
    _metric(
        "gauge",
        "lag_records",
        "records",
        LAG,
        "Unread offsets of a topic, with those of open transactions. No value while the broker does not show them.",
        "topic",
    ),
    _metric(
        "gauge",
        "lag_seconds",
        "seconds",
        LAG,
        "Seconds for which the oldest unread record of a topic waits, 0 without one. No value while the broker does not show it.",
        "topic",
    ),
    _metric(
        "gauge",
        "oldest_unpublished_seconds",
        "seconds",
        LAG,
        "Age of the oldest change whose documents are not all published: an unread record, or the oldest follow-up work. "
        "No value while the broker does not show the lag.",
    ),
    _metric(
        "counter",
        "events_total",
        "records",
        RECORDS,
        "Records that the job read. Outcome: applied, superseded, ignored or dead_letter.",
        "topic",
        "outcome",
    ),
    _metric(
        "counter",
        "dead_letters_total",
        "records",
        RECORDS,
        "Dead letters. Reason: one of the codes of docs/dead-letters.md.",
        "reason",
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
    ),
    _metric("counter", "documents_total", "documents", DOCUMENTS, "Published documents and tombstones."),
    _metric(
        "counter",
        "suppressed_documents_total",
        "documents",
        DOCUMENTS,
        "Documents equal to the last message, so none went out.",
    ),
    _metric(
        "counter",
        "corrections_total",
        "documents",
        DOCUMENTS,
        "Published documents that only settling found. More than a few: an index is later than W.",
    ),
    _metric(
        "histogram",
        "document_latency_seconds",
        "seconds",
        DOCUMENTS,
        "From Kafka's time of the oldest record that led to a document until the broker committed it. Without follow-up work.",
    ),
    _metric(
        "counter",
        "requests_total",
        "requests",
        TABLE,
        "Requests to the table, with pages and retries. Request: its name in DynamoDB's API, in Postgres too.",
        "request",
    ),
    _metric("counter", "read_units_total", "units", TABLE, "Read units that DynamoDB consumed.", "request"),
    _metric(
        "counter",
        "write_units_total",
        "units",
        TABLE,
        "Write units that DynamoDB consumed, with those of indexes. Without those of refused writes, which no answer names.",
        "request",
    ),
    _metric(
        "counter",
        "throttles_total",
        "answers",
        TABLE,
        "Answers by which DynamoDB refused work because there was too much, in whole or in part.",
        "request",
    ),
    _metric("counter", "retries_total", "requests", TABLE, "Requests that went out again after a failure.", "request"),
    _metric(
        "histogram",
        "index_lag_seconds",
        "seconds",
        TABLE,
        "Age of a change that an index answer lacked. Only answers that lag count, 0 s in the round that wrote the row.",
    ),
    _metric("gauge", "open_changes", "rows", FOLLOW_UP, "Rows in the overlay: changes that an index may not show yet."),
    _metric("gauge", "settle_due", "rows", FOLLOW_UP, "Open changes that wait for settling now."),
    _metric("counter", "settled_changes_total", "rows", FOLLOW_UP, "Open changes that the job settled."),
    _metric("gauge", "fan_outs", "fan-outs", FOLLOW_UP, "Fan-outs with pages left."),
    _metric("counter", "fan_out_pages_total", "pages", FOLLOW_UP, "Pages of fan-outs that later rounds did."),
    _metric(
        "gauge",
        "backlog_documents",
        "documents",
        FOLLOW_UP,
        "Roots of stopped products, and of earlier runs.",
    ),
    _metric("gauge", "walks", "walks", FOLLOW_UP, "Walks that are not done."),
    _metric("counter", "walked_rows_total", "rows", FOLLOW_UP, "Stored rows that walks read."),
    _metric(
        "counter",
        "truncated_rows_total",
        "rows",
        FOLLOW_UP,
        "Stored rows deleted because the source emptied their table.",
    ),
    _metric("gauge", "gate_documents", "documents", GATES, "Documents that wait at the gate of a product.", "product"),
    _metric(
        "gauge",
        "gate_oldest_seconds",
        "seconds",
        GATES,
        "For how long the oldest of them waits, 0 without one.",
        "product",
    ),
    _metric(
        "counter",
        "gate_held_total",
        "documents",
        GATES,
        "Times that a round left a document to its gate, also one that waits.",
    ),
    _metric("counter", "gate_released_total", "documents", GATES, "Documents that gates let go."),
    _metric(
        "counter",
        "gate_released_incomplete_total",
        "documents",
        GATES,
        "Those that went out at `at_most`, and may show a part of a transaction.",
    ),
    _metric("counter", "batches_total", "batches", JOB, "Micro-batches that ended."),
    _metric(
        "counter", "batch_seconds_total", "seconds", JOB, "Time of the micro-batches, from their begin to their end."
    ),
    _metric(
        "counter",
        "stage_seconds_total",
        "seconds",
        JOB,
        "Time of the tasks of a stage, which is write or publish. Tasks that run side by side add up.",
        "stage",
    ),
    _metric("gauge", "registry_version", "version", JOB, "The registry version that the job applied."),
    _metric(
        "gauge", "refused_version", "version", JOB, "The registry version that the job cannot run by, 0 without one."
    ),
    _metric("gauge", "stopped_products", "products", JOB, "Products that stopped: a person must act."),
    _metric(
        "gauge",
        "unfit_documents",
        "documents",
        JOB,
        "Documents that do not fit their topic, found in this run: a person must act.",
    ),
    _metric("gauge", "stopped_walks", "walks", JOB, "Walks that stopped: a person must act."),
    _metric(
        "gauge",
        "troubles",
        "flag",
        JOB,
        "1 while the job waits for a part outside of it, such as the registry: it goes on by itself. No value without one.",
        "part",
    ),
    _metric("gauge", "paused", "flag", JOB, "1 while all work is paused, else 0."),
    _metric(
        "gauge",
        "lease_age_seconds",
        "seconds",
        JOB,
        "Time since the last renewal; above lease_seconds the job counts as dead.",
    ),
    _metric(
        "gauge",
        "job_info",
        "flag",
        JOB,
        "Always 1. The labels name the job and its release.",
        "name",
        "version",
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
    ),
    _metric(
        "gauge",
        "landing_lag_messages",
        "messages",
        LANDING,
        "Messages of its partitions that this process has not read.",
    ),
    _metric(
        "gauge",
        "landing_last_seconds",
        "seconds",
        LANDING,
        "Time since the last batch landed. No value before the first.",
    ),
    _metric(
        "gauge",
        "landing_troubles",
        "flag",
        LANDING,
        "1 while the landing waits for a part outside of it. No value without one.",
        "part",
    ),
)
