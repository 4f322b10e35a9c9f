"""The checks at the end of a run."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from processor.engine.protocol.segments import open_items
from processor.values import canonical_json
from processor.values.dead_letters import rejected_record
from processor.values.record import HEADERS, Message
from statestore import keys
from statestore.items import TOTALS, read_totals
from tests.simulator.oracle import documents
from tests.simulator.shapes import STAMP

if TYPE_CHECKING:
    from tests.simulator.run import Simulation

HARMLESS = {"throttled", "answer lost", "sent again"}
"""Faults that the client of the store handles by a retry."""


def find_problem(run: "Simulation") -> str | None:
    """What is wrong at the end of a run; None if nothing is wrong."""
    checks = (
        check_last_documents,
        _check_open_changes,
        _check_account,
        _check_corrections,
        _check_order,
        _check_repeats,
        _check_one_publisher,
        _check_totals,
    )
    for check in checks:
        if problem := check(run):
            return problem
    return None


def check_last_documents(run: "Simulation") -> str | None:
    """The last message of a key has the highest sequence, and equals the oracle's document."""
    tables = run.source_tables()
    want = {
        (p.topic, key): document
        for p in run.shape.definitions.products.values()
        for key, document in documents(p, run.shape.definitions, tables, run.clock).items()
    }
    last: dict[tuple[str, str], Any] = {}
    messages: dict[tuple[str, str], Message] = {}
    sequences: dict[tuple[str, str], int] = {}
    for _, message in run.world.broker.log:
        at = (message.topic, _key(message))
        sequence = int(dict(message.headers)["statestore.sequence"] or b"")
        if sequence <= sequences.get(at, 0):
            return f"the sequence falls: {at} {sequence} after {sequences[at]}"
        sequences[at] = sequence
        messages[at] = message
        last[at] = None if message.value is None else canonical_json.loads(message.value)
    for at in sorted(want.keys() | last.keys()):
        if last.get(at) != want.get(at) and not (at not in want and run.is_left(messages[at])):
            return f"wrong at the end: {at} is {_short(last.get(at))}, should be {_short(want.get(at))}"
    return None


def _check_open_changes(run: "Simulation") -> str | None:
    """No change is open at the end. Zombies may leave durable entries, which the next start takes over."""
    job = run.job
    if job is None or job.driver.progress.open_changes.held:
        return "changes are still open at the end"
    zombies = any(kind.startswith("zombie") for kind in run.world.faults)
    if not zombies and (items := list(open_items(run.world.table))):
        return f"open changes are still in the table: {[item['SK'] for item in items]}"
    return None


def _check_account(run: "Simulation") -> str | None:
    """The dead letter topic has every dead letter of the history, unchanged. The job reads every record at least once."""
    records = [*run.records()]
    broken = {r for r in records if run.is_broken(r)}
    may_be_dead = {r for r in (*records, *run.lost_records()) if run.is_broken(r) or run.is_repairable(r)}
    dead = {replace(rejected_record(m).record, epoch=1) for m in run.world.dead_letters}
    if not {r for r in broken if not run.is_left_out(r)} <= dead <= may_be_dead:
        return "the dead letters are not those of the history"
    tally, total = run.total_tally(), len(records)
    read = tally["read"]
    if read < total or (read > total and not run.world.faults):
        return f"the job read {read} records of {total}"
    if read != sum(tally[part] for part in ("applied", "superseded", "ignored", "dead letters")):
        return f"the account does not close: {dict(tally)}"
    return None


def _check_corrections(run: "Simulation") -> str | None:
    """With lag below W settling corrects no document. A fan-out that takes longer than S is an exception: settling publishes its
    roots first."""
    tally = run.total_tally()
    corrections = 0 if tally["fan-out pages"] else tally["corrections"]
    if corrections and run.world.conditions.lag in ("none", "short") and _is_undisturbed(run):
        return f"{corrections} corrections, with lag below W and one run"
    return None


def _is_undisturbed(run: "Simulation") -> bool:
    return run.starts == 1 and not run.world.faults.keys() - HARMLESS


def _check_repeats(run: "Simulation") -> str | None:
    """In an undisturbed run no message repeats the one before it, and no tombstone comes before a document. A task that does a
    small round alone repeats it after any fault, also the lanes that had committed. Another topic of a product gets its
    tombstones again."""
    if not _is_undisturbed(run) or run.facts["other topics"] or (run.world.conditions.small_round and run.world.faults):
        return None
    last: dict[tuple[str, str], Any] = {}
    for _, message in run.world.broker.log:
        at = (message.topic, _key(message))
        headers = dict(message.headers)
        own = {name: text for name, text in headers.items() if name not in HEADERS}
        version = headers["statestore.product_version"]
        shown = (message.value, version, message.partition, own) if message.value else None
        if last.get(at) == shown:
            return f"published twice: {at} {_short(json.loads(message.value or b'null'))}"
        last[at] = shown
    return None


def _check_one_publisher(run: "Simulation") -> str | None:
    """After the start of a run, the broker decides no commit of an earlier run."""
    return run.world.broker.violation


def _check_totals(run: "Simulation") -> str | None:
    """The totals are the sums of what the rows say that they have contributed."""
    items = run.world.table.scan(None, 1_000_000).items
    found: Counter[tuple[Any, ...]] = Counter()
    for item in items:
        if item["PK"].startswith("TOTAL#"):
            found.update({(item["PK"], item["SK"], n): v for n, v in item.items() if n not in ("PK", "SK", "_f")})
    for item in (item for item in items if TOTALS in item):
        held = read_totals(item)
        for fields, (key, numbers) in held.of.items():
            place = keys.total_key(held.number, keys.entity_of(item["PK"]), fields, key, item["SK"])
            found.subtract({(*place, name): number for name, number in numbers.items()})
    counts = (
        {f"TOTAL#{entity.count}#{name}#" for name, entity in run.job.driver.plan.entities.items()} if run.job else ()
    )
    wrong = {at: n for at, n in found.items() if n and any(at[0].startswith(prefix) for prefix in counts)}
    return f"totals that no row has: {wrong}" if wrong else None


def _check_order(run: "Simulation") -> str | None:
    """With lag below W and one run at a time, no message shows an older version of a row after a newer one, or leaves out a row
    that it must show."""
    if not run.shape.stamped or any(
        run.facts[fact] for fact in ("replays", "moved", "erased", "rebuilds", "sent again")
    ):
        return None
    seen: dict[tuple[str, str, str], int] = {}
    disturbed = run.world.conditions.lag not in ("none", "short") or any("zombie" in kind for kind in run.world.faults)
    versions = _Versions(run)
    for at, message in run.world.broker.log:
        if message.value is None:
            continue
        product, document = run.product_of(message), json.loads(message.value)
        newest = 0.0
        for row, stamp in shown_versions(document, product):
            place = (message.topic, _key(message), row)
            if stamp < seen.get(place, 0) and not disturbed:
                return f"backwards: {place} shows version {stamp} after {seen[place]}"
            if stamp > seen.get(place, 0):
                newest = max(newest, _written_at(run, row, stamp))
                seen[place] = stamp
        if newest:
            run.staleness = max(run.staleness, at - newest)
        if not disturbed and (problem := versions.missing(message.topic, _key(message), document, product)):
            return problem
    return None


class _Versions:
    """The versions of all rows, in order. A document without a row must match a version that does not join it, and that is not
    older than the version in the document before."""

    def __init__(self, run: "Simulation") -> None:
        self._rows: dict[str, dict[str, list[Any]]] = {}
        self._key_of = KEYS
        self._shown: dict[tuple[str, str, str, str], int] = {}
        for event in run.events:
            if event.truncate:
                for versions in self._rows.get(event.entity, {}).values():
                    versions.append(None)
            elif not event.broken:
                sk = keys.encode(list(event.key.values())) or ""
                self._rows.setdefault(event.entity, {}).setdefault(sk, [None]).append(event.row)

    def missing(self, topic: str, root: str, document: Any, product: Any) -> str | None:
        for join in (one for one in product.joins if not one.ordered):  # a limit leaves rows out
            shown = {keys.encode([r[c] for c in self._key_of[join.entity]]): r[STAMP] for r in document[join.name]}
            wanted = {child: document[parent] for child, parent in join.on}
            for sk, versions in self._rows.get(join.entity, {}).items():
                place = (topic, root, join.name, sk)
                for i in range(self._shown.get(place, 0), len(versions)):
                    row = versions[i]
                    unjoined = row is None or any(v is None or row.get(c) != v for c, v in wanted.items())
                    if (sk not in shown and unjoined) or (row is not None and shown.get(sk) == row.get(STAMP)):
                        self._shown[place] = i
                        break
                else:
                    return f"backwards: {place} is left out, or older than in an earlier message"
        return None


def _written_at(run: "Simulation", row: str, stamp: int) -> float:
    entity, sk = row.split(" ", 1)
    key = keys.row_key(entity, run.shape.definitions.entities[entity].shards, sk)
    return run.world.written_at.get((key, stamp), 0.0)


def shown_versions(document: Any, product: Any) -> Iterator[tuple[str, int]]:
    """The (row, stamp) pairs in a document."""
    return _level_versions(document, product.root, product.joins, KEYS)


def _level_versions(shown: Any, entity: str, joins: Any, key_of: Any) -> Iterator[tuple[str, int]]:
    sk = keys.encode([shown[c] for c in key_of[entity]])
    if sk is not None and shown.get(STAMP) is not None:
        yield f"{entity} {sk}", shown[STAMP]
    for join in joins:
        below = shown[join.name]
        for child in below if isinstance(below, list) else [below] if below is not None else []:
            yield from _level_versions(child, join.entity, join.joins, key_of)


KEYS = {"user": ("email",), "repo": ("owner", "name"), "star": ("id",), "label": ("id",)}
"""The key columns of the entities of the stamped shapes."""


def _key(message: Message) -> str:
    return (message.key or b"").decode()


def _short(document: Any) -> str:
    return json.dumps(document, default=str)[:300]
