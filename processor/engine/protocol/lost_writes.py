"""Evidence that a table lacks its last writes, as after a failover to a standby that had not received them. Pure.

The job tells others what the table holds: the registry gets the last round that ended, and a message its sequence, both after the
table's write. So a table that knows less than one of them went back to an earlier moment. In DynamoDB, where only a restore loses
writes, a lost write without a round that published is no evidence.
"""

from typing import NamedTuple

from processor.engine.protocol.ledger import LedgerEntry, Run, run_key
from registry.model import RunMark
from statestore.keys import Key, progress_partition

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
