"""The certificate of an erasure: what was removed, from which positions on records are new, and what remains where until when.

What remains is a promise: docs/security.md. The certificate holds no value of the row but the key that the operator gave, or only
the hash of it.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.protocol.erasures import erasure_key
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import kind_of
from processor.tools.inspect.rows import Reference
from processor.values import canonical_json
from processor.values.record import Record, Value
from statestore import keys

if TYPE_CHECKING:
    from processor.job.landing.landing import LandingState
    from processor.tools.operate.erase import ErasureReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureContext:
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


def make_certificate(occasion: ErasureContext, report: "ErasureReport") -> dict[str, Any]:
    """The certificate as plain JSON values."""
    settings, source = occasion.settings, occasion.entity.entity
    return {
        "certificate": "erasure",
        "complete": not report.left,
        "at": time_text(occasion.at),
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
        "remains": list(remains(settings, occasion.plan, occasion.entity, occasion.at, occasion.references, report)),
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


def _removed(occasion: ErasureContext, report: "ErasureReport") -> Iterator[dict[str, Any]]:
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
        yield {"where": f"topic {occasion.settings.dead_letter_topic}", "what": what, "count": len(letters.records)}
    if report.statistics:
        what = f"the most frequent value of {report.statistics} joins, a join key of the row"
        yield {"where": "registry", "what": what, "count": report.statistics}


FOR_EVER = "for ever"
COMPACTION = ("cleanup.policy", "min.compaction.lag.ms", "max.compaction.lag.ms", "segment.ms", "delete.retention.ms")
RETENTION = ("cleanup.policy", "retention.ms", "retention.bytes")
Remain = dict[str, str]
"""`where`, `what` and `until`."""


def remains(
    settings: Settings,
    plan: Plan,
    entity: EntityPlan,
    at: datetime,
    references: Sequence[Reference],
    report: "ErasureReport",
) -> Iterator[Remain]:
    """Everything that remains of the row, place by place."""
    yield from _in_table(settings, at, references, report)
    yield from _in_sources(entity, at, report)
    yield from _in_documents(plan, report)
    yield from _in_landings(report)
    yield from _in_letters(settings, at, report)
    yield from _in_registry(report)
    yield from _elsewhere(settings)


def time_text(at: datetime) -> str:
    """A time as the certificate shows it."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def _in_table(
    settings: Settings, at: datetime, references: Sequence[Reference], report: "ErasureReport"
) -> Iterator[Remain]:
    table = f"table {settings.table}"
    kind = kind_of(settings.store)
    expires = f"{time_text(at + timedelta(days=settings.marker_days))}, then {kind.expiry}"
    if not report.expires:
        expires = f"{FOR_EVER}, because the table has no TTL: turn it on for the attribute `ttl`"
    if report.before is not None:
        yield _item(table, "a delete marker: the key and a version, without other values", expires)
    for name in sorted(report.tombstones.keys() - report.kept):
        yield _item(table, f"the ledger entry of {name}: the key and a sequence, without a hash", expires)
    for name in sorted(report.kept):
        yield _item(
            table, f"the ledger entry of {name}: the key and a sequence, in an item with others", _until_all_end(report)
        )
    for name in report.leftovers.ledgers:
        what = f"the ledger entry of {name}, a product without a definition: the key, sequences and a hash"
        yield _item(table, what, f"you define {name} again, and give this command again")
    for name, columns in report.leftovers.groups:
        what = f"the ledger and the topic of {name}: {columns} of the groups that the row was in, as their keys"
        yield _item(table, what, FOR_EVER)
    yield _item(table, "the SHA-256 above with positions and sequences: it keeps older records away", FOR_EVER)
    for reference in references:
        what = f"{', '.join(reference.columns)} of {len(reference.keys)} rows, equal to a join key of the row"
        yield _item(f"{table}, {reference.entity}", what, "you erase these rows, too")
    if names := [name for name, _ in report.leftovers.joined]:
        what = "former join keys: in rows that joined with the row before, and in notes of replays of such rows"
        yield _item(
            f"{table}, {', '.join(names)}",
            what,
            f"each such row changes again; a note: {settings.marker_days} days at most",
        )
    yield _item(
        "backups and copies of the table",
        "what they held before, also in the former table of `statestore copy`: statestore does not change them",
        "you remove them",
    )
    yield from (_item(*remain) for remain in kind.remains)


def _until_all_end(report: "ErasureReport") -> str:
    """Until when an item of the ledger stays in which a product shows a document of the row."""
    gone = ", ".join(report.leftovers.ledgers)
    cure = f"you define {gone} again, and give" if gone else "all products have their tombstones: give"
    return f"{cure} this command again"


def _in_sources(entity: EntityPlan, at: datetime, report: "ErasureReport") -> Iterator[Remain]:
    source = entity.entity
    if report.new:
        what = "older records of the key: the topic is not the job's. Delete the row at the source, so that a tombstone follows"
        yield _item(f"topic {source.topic}", what, _retention(report, source.topic, at))
    for topic in report.leftovers.source_topics:
        what = f"records of the key from the time when {source.name} had this topic"
        yield _item(f"topic {topic}", what, f"you delete the topic; or {_retention(report, topic, at)}")
    for name, topic in report.leftovers.joined:
        if topic:
            what = f"records of {name} rows that join or joined with the row: the topic is not the job's"
            yield _item(f"topic {topic}", what, _retention(report, topic, at))


def _in_documents(plan: Plan, report: "ErasureReport") -> Iterator[Remain]:
    for topic in sorted({one.product.topic for one in plan.products.values()}):
        what = "older documents that showed the row, behind the newer message of their key"
        yield _item(f"topic {topic}", what, f"the broker compacts them ({_config(report, topic, COMPACTION)})")
    for product, topic in report.leftovers.document_topics:
        what = f"documents that showed the row: {product} published here, and no product does any more"
        yield _item(f"topic {topic}", what, f"you delete the topic ({_config(report, topic, RETENTION)})")


def _in_landings(report: "ErasureReport") -> Iterator[Remain]:
    for one in report.leftovers.landings:
        what = f"documents of {one.product}, until the landing reads their next messages; then a hash of the key"
        runs = "it runs" if one.processes else f"no process of it runs{_removal(one)}"
        more = "all messages of the topic" if one.behind is None else f"{one.behind:,} more messages"
        yield _item(one.place, what, f"the landing has read {more} ({runs}); the hash: 7 days more")


def _removal(one: "LandingState") -> str:
    """What to do about a landing that does not run."""
    command = f", then `statestore land {shlex.quote(one.product)} --remove {one.id}`" if one.id else ""
    return f", so start it, or remove what it holds{command}"


def _in_letters(settings: Settings, at: datetime, report: "ErasureReport") -> Iterator[Remain]:
    topic, letters = settings.dead_letter_topic, report.letters
    if letters.refusal:
        what = f"{len(letters.records)} dead letters, which no replay takes: {letters.refusal}"
        yield _item(f"topic {topic}", what, _retention(report, topic, at))
    elif letters.records:
        closed = f"the broker closes the segment ({_config(report, topic, ('segment.ms',))})"
        yield _item(f"topic {topic}", "bytes on the broker's disk, which no consumer can read", closed)
    if letters.unread:
        places = _places(letters.unread)
        what = f"{len(letters.unread)} dead letters whose key is unreadable, so each may be one of any row ({places})"
        yield _item(f"topic {topic}", what, f"you erase one with --letter; or {_retention(report, topic, at)}")


def _in_registry(report: "ErasureReport") -> Iterator[Remain]:
    what = "the most frequent value of each join, where it is a former value of the row"
    yield _item("registry", what, "`statestore statistics` counts again")
    if versions := report.leftovers.versions:
        shown = ", ".join(map(str, versions))
        what = f"definitions and reasons that have the text of the key, in the history of versions {shown}"
        yield _item("registry", what, f"{FOR_EVER}: nobody edits the history. `statestore history` shows them")


def _elsewhere(settings: Settings) -> Iterator[Remain]:
    if settings.log_values:
        yield _item(
            "logs and status of the job", "values that it showed, because log_values is true", "you remove them"
        )
    what = "files of Spark that a run left when it was killed, and files that people wrote with statestore"
    yield _item("machines of the job", what, "the platform, or you, remove them")


def _places(records: Sequence[Record], most: int = 20) -> str:
    shown = ", ".join(f"{one.topic}/{one.partition}/{one.offset}" for one in records[:most])
    return shown if len(records) <= most else f"{shown}, and {len(records) - most} more"


def _item(where: str, what: str, until: str) -> Remain:
    return {"where": where, "what": what, "until": until}


def _retention(report: "ErasureReport", topic: str, at: datetime) -> str:
    """Until when a topic keeps the records that it has now."""
    config = report.configs.get(topic)
    if config is None:
        return "its retention ends; the job may not read its configuration (DescribeConfigs)"
    if "delete" in config.get("cleanup.policy", "") and int(config.get("retention.ms", "-1")) >= 0:
        end = at + timedelta(milliseconds=int(config["retention.ms"]))
        return f"{time_text(end)}, then the broker removes their segments ({_config(report, topic, RETENTION)})"
    return f"{FOR_EVER}, or until a compaction or a deletion ({_config(report, topic, RETENTION)})"


def _config(report: "ErasureReport", topic: str, names: Sequence[str]) -> str:
    config = report.configs.get(topic, {})
    return ", ".join(f"{name}={config[name]}" for name in names if name in config) or "its configuration is not known"
