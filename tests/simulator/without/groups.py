"""Switches for the protections of ledger groups and merged trees: what products of one root share, and what each keeps."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import processor.engine.protocol.assemble as assemble
import processor.engine.protocol.publish as publish
import processor.engine.rounds.follow_up_stages as follow_up_stages
import processor.job.run.worker as worker
import tests.simulator.leases as leases
from processor.engine.plan.plan import RootTree
from processor.engine.plan.step import Lookup
from processor.engine.protocol.ledger import LedgerEntry, read_entries
from registry.edits.edit import Edit
from registry.model import Snapshot
from statestore.keys import Key
from statestore.store import Absent, Equals, Write
from tests.simulator.without.switch import replacing, with_requests


def _under_the_first_entry(reserve: Any) -> Any:
    def changed(key: Key, seen: Any, entries: Mapping[int, LedgerEntry], message_key: str, *more: Any) -> Write:
        write: Write = reserve(key, seen, entries, message_key, *more)
        first = f"e{min(entries)}"
        known = None if seen is None else seen.get(first)
        return write._replace(when=Absent() if seen is None else Equals(first, known) if known else None)

    return changed


condition_on_one_entry = replacing((publish, "reserve", _under_the_first_entry))


def _with_the_oldest_mark(read: Any) -> Any:
    def changed(item: Any, number: int, earlier: int = 0) -> LedgerEntry:
        entry: LedgerEntry = read(item, number, earlier)
        marks = [other.mark for _, other in read_entries(item) if other.mark is not None]
        return entry if entry.mark is None else entry._replace(mark=min(marks))

    return changed


one_mark_for_a_group = replacing((publish, "read_entry", _with_the_oldest_mark))


def _by_product(_: Any) -> Any:
    return lambda root, lanes: crc32("/".join(root).encode()) % lanes


lanes_by_product = replacing((worker, "lane_of", _by_product))


def _only_present_numbers(edited: Any) -> Any:
    def changed(stored: Snapshot, change: Edit) -> Snapshot:
        after: Snapshot = edited(stored, change)
        present = {(one.root, one.name) for one in (*after.products, *after.waiting)}
        return replace(after, numbers={at: number for at, number in after.numbers.items() if at in present})

    return changed


number_used_again = replacing((leases, "edited", _only_present_numbers))


def _read_by_the_first(reading: Any) -> Any:
    def changed(self: RootTree, node: int | None, columns: frozenset[str] | None) -> list[str]:
        readers = self.readers if node is None else self.nodes[node].readers
        found: list[str] = reading(self, node, columns)
        return [name for name in found if name in readers[0][1]]

    return changed


def _as_the_index_says(assemble_group: Any) -> Any:
    """The index alone says whether a group has rows."""
    return with_requests(
        assemble_group, lambda request: request._replace(overlay=False) if isinstance(request, Lookup) else request
    )


groups_by_the_index = replacing((assemble, "_assemble_group", _as_the_index_says))


def _of_rows_alone(roots: Any) -> Any:
    def changed(page: Any, *args: Any) -> list[str]:
        found: list[str] = roots(page, *args)
        return [] if page.pk.startswith("LEDGER#") and " by " in page.pk else found

    return changed


groups_of_rows_alone = replacing((follow_up_stages, "_roots", _of_rows_alone))


first_columns_of_a_node = replacing((RootTree, "reading", _read_by_the_first))
