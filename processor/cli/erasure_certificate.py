"""The certificate of an erasure: what was removed, from which positions on records are new, and what remains until when.

It holds no value of the row but the key that the operator gave, or only the hash of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from processor.inspect.references import Reference
from processor.plan.plan import EntityPlan, Plan
from processor.progress.erasures import erasure_key
from processor.records import canonical_json
from processor.records.record import Value
from processor.settings.settings import Settings
from statestore import keys

if TYPE_CHECKING:
    from processor.job.run_erase import ErasureReport

FOR_EVER = "for ever"
COMPACTION = ("cleanup.policy", "min.compaction.lag.ms", "max.compaction.lag.ms", "segment.ms", "delete.retention.ms")
RETENTION = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """Who erased which row when. `references`: the rows of other entities that joined with it. `shows_key`: whether the
    certificate has the key itself."""

    settings: Settings
    plan: Plan
    entity: EntityPlan
    key: Mapping[str, Value]
    by: str
    at: datetime
    references: Sequence[Reference]
    shows_key: bool

    @property
    def hash(self) -> str:
        """The SHA-256 of entity and encoded key, which the table keeps."""
        return erasure_key(self.entity.name, keys.encode(tuple(self.key.values())) or "").sk


def make_certificate(occasion: Occasion, report: "ErasureReport") -> dict[str, Any]:
    """The certificate as plain JSON values."""
    settings, source = occasion.settings, occasion.entity.entity
    return {
        "certificate": "erasure",
        "complete": not report.left,
        "at": _time(occasion.at),
        "by": occasion.by,
        "job": settings.job,
        "table": settings.table,
        "entity": source.name,
        **({"key": dict(occasion.key)} if occasion.shows_key else {}),
        "sha256": occasion.hash,
        "removed": list(_removed(occasion, report)),
        "new_from": [{"topic": source.topic, "partition": p, "offset": end} for p, end in sorted(report.new.items())],
        "referring": [
            {"entity": one.entity, "columns": list(one.columns), "rows": len(one.keys)} for one in occasion.references
        ],
        "remains": list(_remains(occasion, report)),
        "not_done": list(report.left),
    }


def certificate_lines(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The certificate as text for people."""
    shown = canonical_json.dumps(certificate["key"]) if "key" in certificate else "not shown"
    state = "complete" if certificate["complete"] else "NOT COMPLETE"
    yield f"Erasure of {certificate['entity']} {shown}: {state}"
    yield f"  SHA-256 of entity and key: {certificate['sha256']}"
    yield f"  by {certificate['by']} at {certificate['at']}, job {certificate['job']}, table {certificate['table']}"
    yield "Removed"
    for one in certificate["removed"]:
        yield f"  {one['where']}: {one['what']}"
    yield "Records of this key do not come back if they are older than"
    for one in certificate["new_from"]:
        yield f"  {one['topic']}/{one['partition']} offset {one['offset']}"
    if not certificate["new_from"]:
        yield f"  (no record: the topic of {certificate['entity']} does not exist)"
    if certificate["referring"]:
        yield "Rows of other entities that joined with the row, and stay (`statestore erase ... --referring` before an erasure)"
    for one in certificate["referring"]:
        yield f"  {one['entity']}, by {', '.join(one['columns'])}: {one['rows']} rows"
    yield "What remains"
    for one in certificate["remains"]:
        yield f"  {one['where']}: {one['what']}; until: {one['until']}"
    for reason in certificate["not_done"]:
        yield f"Not done: {reason}"


def _removed(occasion: Occasion, report: "ErasureReport") -> Iterator[dict[str, Any]]:
    table, before = f"table {occasion.settings.table}", report.before
    if before is None:
        yield {"where": table, "what": "no row was stored", "count": 0}
    elif before.columns is None:
        yield {"where": table, "what": "former keys of a row that was deleted before", "count": 1}
    else:
        what = (
            "the row with its columns, join keys, former keys and open changes; the indexes have shown that it is gone"
        )
        yield {"where": table, "what": what, "count": 1}
        if before.edges:
            yield {"where": table, "what": f"{len(before.edges)} edges of the row", "count": len(before.edges)}
    products = occasion.plan.products
    for name, sequence in sorted(report.tombstones.items()):
        topic = products[name].product.topic if name in products else name
        yield {"where": f"topic {topic}", "what": f"the document, by a tombstone with sequence {sequence}", "count": 1}
    what = f"{report.published} messages published: tombstones, and documents of other roots without the row"
    yield {"where": "topics of products", "what": what, "count": report.published}
    letters = report.letters
    at = ", ".join(f"{r.topic}/{r.partition} offset {r.offset}" for r in letters.records)
    what = f"{len(letters.records)} dead letters" + (f" ({at})" if at else "")
    if not letters.refusal:
        yield {"where": f"topic {occasion.settings.rejects_topic}", "what": what, "count": len(letters.records)}


def _remains(occasion: Occasion, report: "ErasureReport") -> Iterator[dict[str, str]]:
    settings, source = occasion.settings, occasion.entity.entity
    table = f"table {settings.table}"
    remover = "a running job removes it" if settings.store == "postgres" else "DynamoDB removes it within days"
    expires = f"{_time(occasion.at + timedelta(days=settings.marker_days))}, then {remover}"
    if not report.expires:
        expires = f"{FOR_EVER}, because the table has no TTL: turn it on for the attribute `ttl`"
    if report.before is not None:
        yield _item(table, "a delete marker: the key and a version, without other values", expires)
    for name in sorted(report.tombstones):
        yield _item(table, f"the ledger entry of {name}: the key and a sequence, without a hash", expires)
    yield _item(table, "the SHA-256 above with positions and sequences: it keeps older records away", FOR_EVER)
    yield _item("backups of the table", "what they held before: statestore does not change them", "you remove them")
    if settings.store == "postgres":
        what = "the former row in pages and in the write-ahead log, which no query shows"
        yield _item("server of the table", what, "VACUUM, and the server recycles the log; you remove archived logs")
    if report.new:
        what = "older records of the key: the topic is not the job's. Delete the row at the source, so that a tombstone follows"
        yield _item(f"topic {source.topic}", what, _retention(report, source.topic, occasion.at))
    for product in sorted({one.product.topic for one in occasion.plan.products.values()}):
        what = "older documents that showed the row, behind the newer message of their key"
        yield _item(f"topic {product}", what, f"the broker compacts them ({_config(report, product, COMPACTION)})")
    rejects, letters = f"topic {settings.rejects_topic}", report.letters
    if letters.refusal:
        what = f"{len(letters.records)} dead letters, which no replay takes: {letters.refusal}"
        yield _item(rejects, what, _retention(report, settings.rejects_topic, occasion.at))
    elif letters.records:
        what = "bytes on the broker's disk, which no consumer can read"
        yield _item(
            rejects, what, f"the broker closes the segment ({_config(report, settings.rejects_topic, ('segment.ms',))})"
        )
    for reference in occasion.references:
        what = f"{', '.join(reference.columns)} of {len(reference.keys)} rows, equal to a join key of the row"
        yield _item(f"{table}, {reference.entity}", what, "you erase these rows, too")
    if settings.log_values:
        yield _item(
            "logs and status of the job", "values that it showed, because log_values is true", "you remove them"
        )
    yield _item(
        "registry", "the most frequent value of each join, if `statistics` has counted", "`statestore statistics`"
    )


def _item(where: str, what: str, until: str) -> dict[str, str]:
    return {"where": where, "what": what, "until": until}


def _retention(report: "ErasureReport", topic: str, at: datetime) -> str:
    """Until when a topic keeps the records that it has now."""
    config = report.configs.get(topic)
    if config is None:
        return "its retention ends; the job may not read its configuration (DescribeConfigs)"
    if "delete" in config.get("cleanup.policy", "") and int(config.get("retention.ms", "-1")) >= 0:
        end = at + timedelta(milliseconds=int(config["retention.ms"]))
        return f"{_time(end)}, then the broker removes their segments ({_config(report, topic, RETENTION)})"
    return f"{FOR_EVER}, or until a compaction or a deletion ({_config(report, topic, RETENTION)})"


def _config(report: "ErasureReport", topic: str, names: Sequence[str]) -> str:
    config = report.configs.get(topic, {})
    return ", ".join(f"{name}={config[name]}" for name in names if name in config) or "its configuration is not known"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
