"""The protections of rows that no batch has committed, and of rows that no index has shown (rules 3, 5d and 6), where topics
change and each row has a lag of its own."""

from collections.abc import Iterator
from typing import Any

from tests.simulator.protection import Protection
from tests.simulator.without import committed, strays
from tests.simulator.worlds import scripted

KILLED: dict[str, Any] = {"batch_records": 20, "settle_first_chance": 0.5, "consistent": True}
GROWN = (("commit", 2), ("commit", 3))
LATE: dict[str, Any] = {"lag": "rows", "late_share": 0.5, "batch_records": 20, "settle_first_chance": 0.5}


def committed_protections() -> Iterator[Protection]:
    yield Protection(
        name="only a committed record counts as published",
        against="a crash in a batch with two epochs of a row",
        switch=committed.older_than_the_batch,
        overrides=scripted("a star moves while its topic grows", KILLED, changes=((4, "grow"),), aims=GROWN, lanes=1),
        kind="topics",
    )
    yield Protection(
        name="below the begin of its checkpoint nothing counts as published",
        against="a crash before an operator begins a new checkpoint",
        switch=committed.begin_forgotten,
        overrides=scripted(
            "a star moves, and its topic begins again", KILLED, changes=((4, "retain"),), aims=GROWN[:1], lanes=1
        ),
        kind="topics",
    )
    yield Protection(
        name="the first write passes over no row of another epoch",
        against="a row that comes and goes in one batch",
        switch=strays.any_partition,
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
