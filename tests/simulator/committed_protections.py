"""The protections of rows that no batch has committed, and of rows that no index has shown (rules 3, 5d and 6), where topics
change and each row has a lag of its own."""

from collections.abc import Iterator
from typing import Any

from tests.simulator.protection import Protection
from tests.simulator.without import committed
from tests.simulator.worlds import scripted

KILLED: dict[str, Any] = {"batch_records": 20, "settle_first_chance": 0.5, "consistent": True}
GROWN = (("commit", 2), ("commit", 3), ("write Key(pk='LEDGER", 2), ("write Key(pk='LEDGER", 3))
LATE: dict[str, Any] = {"lag": "rows", "late_share": 0.5, "batch_records": 20, "settle_first_chance": 0.5}


def committed_protections() -> Iterator[Protection]:
    yield Protection(
        name="only a committed record counts as published",
        against="a crash in a batch with two epochs of a row",
        switch=committed.older_than_the_batch,
        overrides=scripted(
            "a star moves while its topic grows", KILLED, changes=((4, "grow"),), aims=GROWN[:2], lanes=1
        ),
        kind="topics",
    )
    yield Protection(
        name="below the begin of its checkpoint nothing counts as published",
        against="a crash before an operator begins a new checkpoint",
        switch=committed.begin_forgotten,
        overrides=scripted("a star moves, and its topic begins again", KILLED, changes=((4, "retain"),), aims=GROWN),
        kind="topics",
    )
    yield Protection(
        name="absence proves nothing of a version that no index showed",
        against="a row that comes and goes in one batch",
        switch=committed.absence_of_the_unshown,
        overrides=scripted("a star comes and goes while its topic grows", LATE, changes=((4, "grow"),)),
        kind="topics",
    )
    yield Protection(
        name="absence under one key proves nothing of another key",
        against="a late index that still shows the row under its last key",
        switch=committed.absent_under_another_key,
        overrides=scripted("a star moves and goes", LATE, changes=(), aims=(("checkpoint", 3),)),
        kind="topics",
    )
    yield Protection(
        name="an answer that shows a row which left cancels the evidence of others",
        against="replicas of an index that differ",
        switch=committed.stale_answers_ignored,
        overrides=scripted("a star is deleted, then its user changes", LATE, changes=(), replicas=2),
        kind="topics",
    )
    yield Protection(
        name="a row says that a replay wrote it",
        against="a replay that outlives its run",
        switch=committed.unmarked_replays,
        overrides={
            **LATE,
            "shape": "tiny",
            "zombie_chance": 1.0,
            "zombie_turn_chance": 0.1,
            "events": 8,
            "max_faults": 0,
            "aims": (("write Key(pk='TABLE", 2), ("write Key(pk='TABLE", 4)),
        },
        kind="mixed",
    )
