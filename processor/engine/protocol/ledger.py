"""The publish ledger and the runs: which messages tasks reserved, and which of them the broker acknowledged.

    LEDGER#<entity>#<group>, <root>   turn: rises with each write; key: of the root's messages; e<number>: the entry of a product,
                                      packed; ttl, where the root is erased; at: where messages lie whose product has
                                      `partition_by`, by number
    RUNS, <run>                       through: the highest round that ended with every message acknowledged; attempts: which
                                      attempt of a lane committed, where it was not the first

One item has the entries of up to GROUP products of one root entity, so the products that changed together cost one read and one
write. A write is conditional on the turn: this protects the entries of all products of the group. Each entry has a mark of its
own, so each product's message is acknowledged by itself.

An entry: seq (only rises, never expires), version of the product, mark of the reservation, and the hash of the value, or
without a document the product's topic. The hash begins with `large:` where the document does not fit its topic: then the
message is a dead letter.

A root of a product with `partition_by` may move to another partition. So the ledger knows the partitions that may show a document
of the root: that of the last reservation, and until it is acknowledged those of the reservations before. The next message goes
out with a tombstone in each other one of them, in one transaction, below the sequence of the message.

A reservation counts as acknowledged once the round that made it has ended, for the attempt whose transaction the broker
committed. Rounds of a run end in order. A run is one start of the job: its number is the lease's generation.

A table may lack its last writes, as after a failover to a standby that had not received them. The job tells others what the
table holds: the registry gets the last round that ended, and a message its sequence, both after the table's write. So a table
that knows less than one of them went back to an earlier moment. In DynamoDB, where only a restore loses writes, a lost write
without a round that published is no evidence.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from processor.engine.plan.plan import LedgerPlace
from registry.model import RunMark
from statestore.keys import Key, progress_partition
from statestore.store import Absent, Equals, Item, Write
from statestore.table import TTL
from statestore.writes import write_note

GROUP = 20
"""Products of one root entity that share a ledger item: with an entry of some 35 bytes each, the item stays below 1 KB."""
NO_DOCUMENT = ""
INVALIDATED = "?"
"""The hash of an invalidated entry: no document has it, so the next document is published."""
PLACES = "at"
UNFIT = "large:"
"""The begin of the hash where a dead letter went out in place of a document that does not fit its topic: most are too large."""
_KINDS = (NO_DOCUMENT, INVALIDATED, "", UNFIT)
"""The begin of a hash, by the first byte of a packed entry. The topic follows the first one, the digest the last two."""
_DIGEST_BYTES = 16


class Mark(NamedTuple):
    """Who made a reservation: run, round, lane, attempt of the lane's task."""

    run: int
    round: int
    lane: int
    attempt: int


class LedgerEntry(NamedTuple):
    """The ledger's entry of a product of a root. A product without an entry has `mark` None. `version`: the product's, in the
    document; `topic`: which one has the tombstone, where the root has no document."""

    seq: int = 0
    hash: str = NO_DOCUMENT
    mark: Mark | None = None
    version: int = 0
    topic: str = ""

    def shows(self, digest: str, version: int, topic: str) -> bool:
        """Whether the root's last message shows a document with this hash, by this version of the product. No document is the
        same for every version, but another topic may still show an earlier document."""
        if digest == NO_DOCUMENT:
            return self.hash == digest and (self.mark is None or self.topic == topic)
        return self.hash == digest and self.version == version

    @property
    def unfit(self) -> bool:
        """Whether the root's last document did not fit its topic."""
        return self.hash.startswith(UNFIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How far a run came. `attempts`: (round, lane) -> the attempt that committed, where it was not the first."""

    number: int
    through: int = -1
    attempts: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def acknowledges(self, mark: Mark) -> bool:
        """Whether the broker is known to have acknowledged the reservation's message."""
        return mark.round <= self.through and self.attempts.get((mark.round, mark.lane), 0) == mark.attempt


class RetiredEntries(NamedTuple):
    """The entries of an erased root. `tombstones`: product -> the sequence of its tombstone; `kept`: those of them whose item
    stays, because another product of their group shows a document."""

    tombstones: Mapping[str, int]
    kept: frozenset[str]


def group_partition(place: LedgerPlace) -> str:
    """The partition of the ledger items that have the entries of this product, and of the others of its group."""
    return progress_partition("LEDGER", f"{place.root}#{place.number // GROUP}")


def ledgers_of(root: str) -> str:
    """The begin of the keys of all partitions of the ledger of this root entity."""
    return progress_partition("LEDGER", f"{root}#")


def group_key(place: LedgerPlace, root: str) -> Key:
    """The key of the ledger item of a root that has the entry of this product."""
    return Key(group_partition(place), root)


def run_key(number: int) -> Key:
    """The key of a run's item."""
    return Key(progress_partition("RUNS"), f"{number:010d}")


def read_entry(item: Item | None, number: int, earlier: int = 0) -> LedgerEntry:
    """The entry of a product in a ledger item. `earlier`: the highest sequence that the product's topic had before the product
    published there. A root without an entry has no document, acknowledged; but where the topic had messages, its
    document is unknown. The sequences of each root continue above `earlier`."""
    packed = None if item is None else item.get(f"e{number}")
    if packed is None:
        return LedgerEntry(seq=earlier, hash=INVALIDATED) if earlier else LedgerEntry()
    entry = unpack(packed)
    return entry if entry.seq >= earlier else entry._replace(seq=earlier)


def read_places(item: Item | None, number: int, topic: str) -> tuple[int, ...] | None:
    """The partitions of the topic that the last reservations of a product named, the newest first. None: its messages have gone
    by their keys."""
    text = None if item is None else item.get(PLACES, {}).get(f"{number}")
    if text is None:
        return None
    of, *partitions = text.split(" ")
    return tuple(map(int, partitions)) if of == topic else ()


def places_of(item: Item | None, topic: str) -> set[int]:
    """The partitions of the topic that reservations of any product named."""
    numbers = [] if item is None else item.get(PLACES, {})
    return {place for number in numbers for place in read_places(item, int(number), topic) or ()}


def shown_places(entry: LedgerEntry, places: tuple[int, ...], *, acknowledged: bool) -> tuple[int, ...]:
    """Those of the named partitions that may show a document of the root, the newest first. An acknowledged message went out with
    tombstones in all others."""
    if not acknowledged or entry.hash == INVALIDATED or entry.unfit:
        return places
    return () if entry.hash == NO_DOCUMENT else places[:1]


def read_entries(item: Item | None) -> Iterator[tuple[int, LedgerEntry]]:
    """All entries of a ledger item, each with the number of its product."""
    for name, packed in (item or {}).items():
        if name[0] == "e" and name[1:].isdigit():
            yield int(name[1:]), unpack(packed)


def due_in(item: Item | None, number: int) -> int | None:
    """The tick of the due item that a product's root has, by its ledger item (`protocol.ticks`); None for none."""
    due = None if item is None else item.get(f"d{number}")
    return None if due is None else int(due)


def message_key(item: Item | None) -> str:
    """The key of the root's messages, by its ledger item; empty without one."""
    return "" if item is None else str(item["key"])


def read_run(number: int, item: Item | None) -> Run:
    """How far a run came, by its item."""
    if item is None:
        return Run(number=number)
    attempts = {(int(r), int(s)): int(a) for r, s, a in item.get("attempts", ())}
    return Run(number=number, through=item["through"], attempts=attempts)


def turn_of(item: Item | None) -> int:
    """The turn of a ledger item; 0 without one."""
    turn: int = 0 if item is None else item["turn"]
    return turn


def hash_of(value: bytes | None, headers: Collection[tuple[str, bytes]] = ()) -> str:
    """The hash of a document's encoded value, with the headers that its product gives it; empty for no document."""
    if value is None:
        return NO_DOCUMENT
    hashed = hashlib.blake2b(value, digest_size=_DIGEST_BYTES)
    if not headers:
        return hashed.hexdigest()
    for name, text in headers:
        hashed.update(b"\0%d:%b%d:%b" % (len(name.encode()), name.encode(), len(text), text))
    return hashed.hexdigest()


class Placed(NamedTuple):
    """The partitions of a topic that a reservation names."""

    topic: str
    partitions: tuple[int, ...]


def reserve(
    key: Key,
    seen: Item | None,
    entries: Mapping[int, LedgerEntry],
    message_key: str,
    dues: Mapping[int, int] = MappingProxyType({}),
    placed: Mapping[int, Placed] = MappingProxyType({}),
) -> Write:
    """Reserves the next messages of a root, for products of one group by their numbers. The store refuses it when another
    publisher has written any entry of the group after `seen` was read. `dues`: the ticks of new due items; `placed`: where the
    messages of some products go."""
    turn = turn_of(seen)
    values = {"turn": turn + 1, "key": message_key, **{f"e{number}": pack(entry) for number, entry in entries.items()}}
    if dues:
        values |= {f"d{number}": tick for number, tick in dues.items()}
    if placed:
        at = {f"{number}": " ".join(map(str, (one.topic, *one.partitions))) for number, one in placed.items()}
        values[PLACES] = {**(seen or {}).get(PLACES, {}), **at}
    remove = (TTL,) if seen is not None and TTL in seen else ()
    return write_note(key, values, remove=remove, when=Absent() if seen is None else Equals("turn", turn))


def retire_entries(key: Key, seen: Item, forget: int) -> Write:
    """Lets DynamoDB remove the ledger item of an erased root from `forget` on (seconds since 1970): not earlier, because a task
    of an earlier run may still reserve by what it read."""
    turn, dues = turn_of(seen), tuple(name for name in seen if name[0] == "d" and name[1:].isdigit())
    return write_note(key, {"turn": turn + 1, "key": "", TTL: forget}, remove=dues, when=Equals("turn", turn))


def end_round(run: Run, before: int) -> Write:
    """Records that the broker acknowledged every message of the run up to round `run.through`. `before`: the round that the run
    recorded last, -1 for none; refused where the table does not know that, because it went back to an earlier moment."""
    values: dict[str, object] = {"through": run.through}
    if run.attempts:
        values["attempts"] = [[r, s, a] for (r, s), a in sorted(run.attempts.items())]
    return write_note(run_key(run.number), values, when=Absent() if before < 0 else Equals("through", before))


def pack(entry: LedgerEntry) -> bytes:
    """An entry as bytes: its kind, then seq, version and mark as varints, then the digest or the topic. Raises ValueError for an
    entry without a mark, which no job wrote."""
    if entry.mark is None:
        raise ValueError("an entry without a mark is no reservation")
    kind = 3 if entry.unfit else 0 if entry.hash == NO_DOCUMENT else 1 if entry.hash == INVALIDATED else 2
    numbers = _varint(entry.seq) + _packed_mark(entry.version, entry.mark)
    tail = bytes.fromhex(entry.hash.removeprefix(_KINDS[kind])) if kind else entry.topic.encode()
    return bytes((kind,)) + numbers + tail


def unpack(packed: bytes) -> LedgerEntry:
    """The entry that `pack` made these bytes of."""
    kind, at = packed[0], 1
    numbers: list[int] = []
    while len(numbers) < 6:
        value = shift = 0
        while (byte := packed[at]) & 0x80:
            value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        numbers.append(value | byte << shift)
        at += 1
    seq, version, run, round_, lane, attempt = numbers
    mark, tail = Mark(run, round_, lane, attempt), packed[at:]
    if not kind:
        return LedgerEntry(seq, NO_DOCUMENT, mark, version, tail.decode())
    return LedgerEntry(seq, _KINDS[kind] + tail.hex(), mark, version)


@lru_cache(maxsize=1024)
def _packed_mark(version: int, mark: Mark) -> bytes:
    """The version and the mark as varints: a task has one mark for all its entries."""
    return b"".join(map(_varint, (version, *mark)))


def _varint(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first; the eighth bit says that another group follows."""
    if number < 0x80:
        return bytes((number,))
    groups = []
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))


RUNS = progress_partition("RUNS")


class ShownMessage(NamedTuple):
    """The last message of a partition of a product's topic. `at`: its place, for people; `root`: its encoded root key."""

    product: str
    root: str
    sequence: int
    at: str


def lost_round(mark: RunMark, run: Run) -> str:
    """Why the table lacks a round that the registry knows; empty where it does not. `run`: the run of the mark, in the table."""
    if mark.round <= run.through:
        return ""
    known = f"round {run.through}" if run.through >= 0 else "no round"
    return f"the registry knows that round {mark.round} of run {mark.run} ended, and the table knows {known} of it"


def lost_message(shown: ShownMessage, entry: LedgerEntry, erased: int) -> str:
    """Why the table lacks a message that its topic has; empty where it does not. `erased`: the sequence of the root's tombstone
    by its erasure, 0 without one."""
    known = max(entry.seq, erased)
    if shown.sequence <= known:
        return ""
    return f"{shown.at} has message {shown.sequence} of a root, and the table knows {known or 'none'} of that root"


def later_run(key: Key, generation: int) -> str:
    """Why the registry lacks a run that the table knows; empty where it does not. `key`: of the table's next run, behind
    that with the registry's highest generation."""
    if key.pk != RUNS or key <= run_key(generation):
        return ""
    return f"the table knows run {int(key.sk)}, and the registry's last run is {generation}"
