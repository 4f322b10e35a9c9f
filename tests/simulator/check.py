"""What must hold at the end of a run, whatever happened in it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from processor.model import canonical_json
from processor.model.open_changes import PARTITION
from processor.model.step import Message
from processor.rejects import rejected_record
from statestore import keys
from tests.simulator.history import tables_of
from tests.simulator.oracle import documents
from tests.simulator.shapes import STAMP

if TYPE_CHECKING:
    from tests.simulator.run import Simulation

QUIET = {"throttled", "answer lost", "sent again"}


def verdict(run: "Simulation") -> str | None:
    """What is wrong, None if nothing is."""
    checks = (_converged, _nothing_open, _accounted, _no_corrections, _never_backwards, _nothing_twice, _one_publisher)
    for check in checks:
        if wrong := check(run):
            return wrong
    return None


def _converged(run: "Simulation") -> str | None:
    """The last message of a key, which is also the one with the highest sequence, is what the oracle says."""
    tables = tables_of(run.shape, run.events)
    want = {
        (p.topic, key): document
        for p in run.shape.definitions.products.values()
        for key, document in documents(p, run.shape.definitions, tables).items()
    }
    last: dict[tuple[str, str], Any] = {}
    sequences: dict[tuple[str, str], int] = {}
    for _, message in run.world.broker.log:
        at = (message.topic, _key(message))
        sequence = int(dict(message.headers)["statestore.sequence"] or b"")
        if sequence <= sequences.get(at, 0):
            return f"the sequence falls: {at} {sequence} after {sequences[at]}"
        sequences[at] = sequence
        last[at] = None if message.value is None else canonical_json.loads(message.value)
    for at in sorted(want.keys() | last.keys()):
        if last.get(at) != want.get(at):
            return f"wrong at the end: {at} is {_short(last.get(at))}, should be {_short(want.get(at))}"
    return None


def _nothing_open(run: "Simulation") -> str | None:
    job = run.job
    if job is None or job.rounds.open.entries:
        return "open changes are held at the end"
    zombies = any(kind.startswith("zombie") for kind in run.world.faults)
    if not zombies and (left := run.world.table.partition(PARTITION)):
        return f"open changes are left in the table: {[item['SK'] for item in left]}"
    return None


def _accounted(run: "Simulation") -> str | None:
    """Every dead letter of the history is in the dead letter topic, as it came; records are read at least once."""
    records = {r for log in run.logs.values() for r in log}
    broken, mendable = {r for r in records if r.value == b"{"}, {r for r in records if run.mendable(r)}
    if not broken <= {rejected_record(m).record for m in run.world.rejects} <= broken | mendable:
        return "dead letters are not those of the history"
    done, total = run.done(), sum(map(len, run.logs.values()))
    read = done["read"]
    if read < total or (read > total and not run.world.faults):
        return f"{read} records were read of {total}"
    if read != sum(done[part] for part in ("applied", "superseded", "ignored", "dead letters")):
        return f"the account does not close: {dict(done)}"
    return None


def _no_corrections(run: "Simulation") -> str | None:
    """With lag below W settling finds nothing, unless a fan-out takes longer than S: then it comes first to what is left."""
    done = run.done()
    corrections = 0 if done["fan-out pages"] else done["corrections"]
    if corrections and run.world.temper.lag in ("none", "short") and _undisturbed(run):
        return f"{corrections} corrections, with lag below W and one run"
    return None


def _undisturbed(run: "Simulation") -> bool:
    return run.starts == 1 and not run.world.faults.keys() - QUIET


def _nothing_twice(run: "Simulation") -> str | None:
    """Undisturbed, no message repeats the one before it, and no tombstone comes before any document."""
    if not _undisturbed(run):
        return None
    last: dict[tuple[str, str], bytes | None] = {}
    for _, message in run.world.broker.log:
        at = (message.topic, _key(message))
        if last.get(at) == message.value:
            return f"published for nothing: {at} {_short(json.loads(message.value or b'null'))}"
        last[at] = message.value
    return None


def _one_publisher(run: "Simulation") -> str | None:
    """Once a run has started, no message of an earlier one appears that the broker had not decided before."""
    return run.world.broker.intruded


def _never_backwards(run: "Simulation") -> str | None:
    """With lag below W and one run at a time, no message shows an older version of a row after a newer one of it, or leaves
    out a row that it must show."""
    if not run.shape.stamped or run.facts["mended"]:
        return None
    seen: dict[tuple[str, str, str], int] = {}
    disturbed = run.world.temper.lag not in ("none", "short") or any("zombie" in kind for kind in run.world.faults)
    versions = _Versions(run)
    for at, message in run.world.broker.log:
        if message.value is None:
            continue
        product, document = run.shape.definitions.products[message.topic], json.loads(message.value)
        newest = 0.0
        for row, stamp in _versions(document, product):
            place = (message.topic, _key(message), row)
            if stamp < seen.get(place, 0) and not disturbed:
                return f"backwards: {place} shows version {stamp} after {seen[place]}"
            if stamp > seen.get(place, 0):
                newest = max(newest, _written(run, row, stamp))
                seen[place] = stamp
        if newest:
            run.staleness = max(run.staleness, at - newest)
        if not disturbed and (wrong := versions.missing(message.topic, _key(message), document, product)):
            return wrong
    return None


class _Versions:
    """What rows were, one version after the other: a document that leaves a row out shows a version that is not joined to it."""

    def __init__(self, run: "Simulation") -> None:
        self._rows: dict[str, dict[str, list[Any]]] = {}
        self._key_of = KEYS
        self._at: dict[tuple[str, str, str, str], int] = {}
        for event in run.events:
            if not event.broken:
                sk = keys.spell(list(event.key.values())) or ""
                self._rows.setdefault(event.entity, {}).setdefault(sk, [None]).append(event.row)

    def missing(self, topic: str, root: str, document: Any, product: Any) -> str | None:
        for join in product.joins:
            shown = {keys.spell([r[c] for c in self._key_of[join.entity]]): r[STAMP] for r in document[join.name]}
            wanted = {child: document[parent] for child, parent in join.on}
            for sk, versions in self._rows.get(join.entity, {}).items():
                place = (topic, root, join.name, sk)
                for i in range(self._at.get(place, 0), len(versions)):
                    row = versions[i]
                    apart = row is None or any(v is None or row.get(c) != v for c, v in wanted.items())
                    if (sk not in shown and apart) or (row is not None and shown.get(sk) == row.get(STAMP)):
                        self._at[place] = i
                        break
                else:
                    return f"backwards: {place} is left out, or older than what was shown"
        return None


def _written(run: "Simulation", row: str, stamp: int) -> float:
    entity, sk = row.split(" ", 1)
    key = keys.row_key(entity, run.shape.definitions.entities[entity].shards, sk)
    return run.world.written_at.get((key, stamp), 0.0)


def _versions(document: Any, product: Any) -> Iterator[tuple[str, int]]:
    """The (row, stamp) pairs that a document shows."""
    return _level(document, product.root, product.joins, KEYS)


def _level(shown: Any, entity: str, joins: Any, key_of: Any) -> Iterator[tuple[str, int]]:
    sk = keys.spell([shown[c] for c in key_of[entity]])
    if sk is not None and shown.get(STAMP) is not None:
        yield f"{entity} {sk}", shown[STAMP]
    for join in joins:
        below = shown[join.name]
        for one in below if isinstance(below, list) else [below] if below is not None else []:
            yield from _level(one, join.entity, join.joins, key_of)


KEYS = {"user": ("email",), "repo": ("owner", "name"), "star": ("id",), "label": ("id",)}
"""The keys of the stamped shape's entities."""


def _key(message: Message) -> str:
    return (message.key or b"").decode()


def _short(document: Any) -> str:
    return json.dumps(document, default=str)[:300]
