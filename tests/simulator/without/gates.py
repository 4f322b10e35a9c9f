"""Switches that turn the protections of gates off (processor/engine/protocol)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import processor.engine.rounds.round as round_module
import processor.engine.rounds.round_runner as round_runner
from processor.engine.plan.step import Root
from processor.engine.protocol import source_transactions
from processor.engine.protocol.gate_items import ReleaseNotes, SeenPlace
from processor.engine.protocol.gates import SeenTransactions
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.source_transactions import OpenTransaction, ResentRecords, SourceTransactions, StartGate
from processor.engine.rounds.round import Round, StageResult
from processor.job.run import worker
from processor.values.record import Rejected
from statestore.store import Done, Store, Write
from tests.simulator.without.switch import always, replacing

Missing = Callable[[SourceTransactions, Any], Mapping[str, tuple[int, int]] | None]


class _Nowhere:
    """A store that keeps nothing."""

    def write(self, _: Write) -> Done:
        return Done(None)


def _in_memory(hold_back: Any) -> Any:
    def changed(result: StageResult, round_: Round, _: Store) -> StageResult:
        nowhere: Any = _Nowhere()
        held: StageResult = hold_back(result, round_, nowhere)
        return held

    return changed


zombies_roots_left = replacing((HeldRoots, "reload_later", always(())))
"""A run does not look again for the roots that a zombie left after the run's start."""


def _by_end(missing: Missing) -> Missing:
    return lambda self, name: None if missing(self, name) is None else {}


def _by_one_topic(missing: Missing) -> Missing:
    def changed(self: SourceTransactions, name: Any) -> Mapping[str, tuple[int, int]] | None:
        found, known = missing(self, name), self._known[name]
        first, _ = next(iter(known.seen.places))
        return found and {table: counts for table, counts in found.items() if table == first}

    return changed


def _without_letters(see: Any) -> Any:
    def changed(self: SeenTransactions, decoded: Any, entity: Any) -> None:
        if not isinstance(decoded, Rejected):
            see(self, decoded, entity)

    return changed


def _with_each_change(hold: Any) -> Any:
    def changed(self: HeldRoots, root: Root, time: float, item: Any, at: float) -> None:
        hold(self, root, time, item, at)
        self.held[root].since = at

    return changed


def _only_own(blocker: Any) -> Any:
    def changed(self: HeldRoots, root: Root) -> OpenTransaction | None:
        items = self.held[root].items
        open_ones = [one for of in self.transactions._open.values() for one in of.values()]
        return next((one for one in open_ones if items & self.transactions._known[one.name].items), None)

    return changed


def _as_before(reload: Any) -> Any:
    def changed(self: HeldRoots, *args: Any) -> Any:
        unused = reload(self, *args)
        for held in self.held.values():
            held.reloaded = False
        return unused

    return changed


def _found(make_portions: Any) -> Any:
    return lambda held, *names: make_portions(replace(held, unfound=frozenset()), *names)


not_durable = replacing((worker, "hold_back", _in_memory), (round_runner, "hold_back", _in_memory))
"""Only the driver knows which roots wait."""

by_the_end = replacing((SourceTransactions, "missing", _by_end))
"""A transaction is complete when its end is known."""

by_one_topic = replacing((SourceTransactions, "missing", _by_one_topic))
"""A transaction is complete when the records of one table are read."""

without_letters = replacing((SeenTransactions, "see", _without_letters))
"""A dead letter is no record of its transaction."""

at_most_begins_again = replacing((HeldRoots, "_hold", _with_each_change))
"""Each change begins the longest wait again."""

only_own_transactions = replacing((HeldRoots, "blocker", _only_own))
"""A root waits for the transactions that changed it, and for no others."""

fan_outs_found = replacing((round_module, "make_portions", _found))
"""The roots that a fan-out has yet to find wait for nothing."""

ready_at_once = replacing((StartGate, "note_topic_ends", lambda note: lambda self, _: note(self, {})))
"""A run releases roots before it has read what its topics had."""

waits_go_on = replacing((HeldRoots, "reload", _as_before))
"""A change after a start continues a wait that a message may have ended."""

distance_in_memory = replacing((ReleaseNotes, "reload", lambda _: lambda *_args: None))
"""A run does not know when the run before it sent messages."""

ended_ones_are_new = replacing((source_transactions, "is_copy", always(False)))
"""A record that comes after the end of its transaction is a new one."""

numbers_rise = replacing(
    (SeenPlace, "is_followed_by_a_copy", always(False)),
    (
        SeenTransactions,
        "records",
        lambda records: lambda self: {k: v._replace(again=False) for k, v in records(self).items()},
    ),
)
"""The numbers of the records of a transaction tell no copies."""

sent_at_once = replacing((ResentRecords, "is_sent", lambda _: property(lambda _self: True)))
"""A connector has sent all copies when the first one is read."""

read_at_once = replacing((SourceTransactions, "note_topic_ends", lambda note: lambda self, _: note(self, {})))
"""The job has read all copies when their last end has come."""
