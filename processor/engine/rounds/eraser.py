"""Erases rows on the word of an operator, between the rounds of a driver.

1. `erase` takes the row from the table, and opens a change of it
2. the driver's background work finds its roots, and `release` publishes the documents without it
3. `is_back` looks whether an earlier run has written the row again
4. `retire_entries` ends the erasure
"""

from dataclasses import dataclass

from processor.engine.protocol.erase import ErasedRow, erase
from processor.engine.protocol.erasures import Erasure, erasure_key, name_of, read_erasure, write_erasure
from processor.engine.protocol.held_portion import without_roots
from processor.engine.protocol.identity import SEQUENCES, ledgers_in
from processor.engine.protocol.keep_edges import keep_edges
from processor.engine.protocol.ledger import (
    NO_DOCUMENT,
    RetiredEntries,
    group_partition,
    ledgers_of,
    read_entries,
    retire_entries,
)
from processor.engine.protocol.replays import PARTITION as REPLAYS
from processor.engine.protocol.replays import end_note, noted_keys, notes_of_row
from processor.engine.protocol.segment import changes_key, make_segment
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.step_runner import StepRunner
from statestore.items import DELETED, JoinKey, key_of_item
from statestore.keys import Key


@dataclass(frozen=True, slots=True)
class Eraser:
    """The erasures of one driver, which no round of it overlaps."""

    driver: Driver

    def erase(self, entity: str, sk: str, erasure: Erasure) -> ErasedRow:
        """Erases the row with this encoded key. `erasure`: which records it covers. Background work then publishes the documents
        without it, and `retire_entries` ends the erasure."""
        rounds, progress, store = self.driver.rounds, self.driver.progress, self.driver.store
        rounds.check_lease()
        plan = progress.plan.entities[entity]
        key, opens = plan.key(sk), changes_key(rounds.run.number, rounds.number, "erase", 0)
        rounds.number += 1
        known = [change for change in progress.open_changes.changes() if change.key == key]
        former = frozenset[JoinKey]().union(*(change.former.union(change.slots) for change in known))
        replays = notes_of_row(store.partition(REPLAYS), key)
        former = former.union(*map(noted_keys, replays))
        expires_at = rounds.next_round().expires_at
        erasing = erase(key, plan, erasure, former=former, opens=opens, expires_at=expires_at)
        edged = keep_edges(erasing, lambda erased: (erased.row, erased.opened.former)) if plan.edges else erasing
        (erased,) = StepRunner(store=store).run([edged])
        progress.erased |= {name_of(erasure_key(entity, sk))}
        progress.open_changes.add([make_segment(opens.sk, [erased.opened])], self.driver.clock.now(), again=True)
        for note in replays:
            store.write(end_note(key_of_item(note), "superseded"))
        return erased

    def release(self) -> None:
        """Publishes what this run has found, whatever the gates say, and takes it out of the items that name it: an erasure does
        not wait, and leaves no key."""
        held, store = self.driver.progress.held, self.driver.store
        if found := held.found():
            portions = held.portions_of(found)
            self.driver.release(found)
            for item in store.get(list(portions)).values():
                store.write(without_roots(item, found.keys()))

    def is_back(self, entity: str, sk: str) -> bool:
        """Whether the table has the row again. The marker has the epoch of the erased row. A task of an earlier run that still
        slept may have had a record of a later epoch, which the erasure covers too."""
        key = self.driver.plan.entities[entity].key(sk)
        item = self.driver.store.get([key]).get(key)
        return item is not None and DELETED not in item

    def retire_entries(self, entity: str, sk: str) -> RetiredEntries:
        """Lets the ledger's items of an erased root expire, after its erasure has kept their sequences. An item stays while a
        product of it has not published its tombstone."""
        rounds, progress, store = self.driver.rounds, self.driver.progress, self.driver.store
        rounds.check_lease()
        own = [product for product in progress.active.products.values() if product.product.root == entity]
        products = {product.number: product.product.name for product in own}
        partitions = {group_partition(product.ledger) for product in own}
        partitions |= {pk for pk in ledgers_in(store.partition(SEQUENCES)) if pk.startswith(ledgers_of(entity))}
        found = store.get([Key(pk, sk) for pk in partitions])
        entries = {key: dict(read_entries(item)) for key, item in found.items()}
        note = erasure_key(entity, sk)
        known = read_erasure(store.get([note]).get(note))
        sequences = {number: entry.seq for some in entries.values() for number, entry in some.items()}
        store.write(write_erasure(note, known._replace(sequences={**known.sequences, **sequences})))
        gone = [key for key, some in entries.items() if all(entry.hash == NO_DOCUMENT for entry in some.values())]
        for key in gone:
            store.write(retire_entries(key, found[key], rounds.next_round().expires_at))
        ended = [
            (key, products[number], entry.seq)
            for key, some in entries.items()
            for number, entry in some.items()
            if number in products and entry.hash == NO_DOCUMENT
        ]
        kept = frozenset(name for key, name, _ in ended if key not in gone)
        return RetiredEntries({name: sequence for _, name, sequence in ended}, kept)
