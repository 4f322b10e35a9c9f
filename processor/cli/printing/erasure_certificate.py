"""The certificate of an erasure: what was removed, from which positions on records are new, and what remains until when.

It holds no value of the row but the key that the operator gave, or only the hash of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from processor.cli.printing.erasure_remains import remains, time_text
from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.protocol.erasures import erasure_key
from processor.environment.settings.settings import Settings
from processor.tools.inspect.rows import Reference
from processor.values import canonical_json
from processor.values.record import Value
from statestore import keys

if TYPE_CHECKING:
    from processor.tools.operate.erase import ErasureReport


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
    if report.statistics:
        what = f"the most frequent value of {report.statistics} joins, a join key of the row"
        yield {"where": "registry", "what": what, "count": report.statistics}
