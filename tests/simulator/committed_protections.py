"""The protections of rows that no batch has committed (rule 3), where topics change."""

from collections.abc import Iterator
from typing import Any

from tests.simulator.protection import Protection
from tests.simulator.without import committed
from tests.simulator.worlds import scripted

KILLED: dict[str, Any] = {"batch_records": 20, "settle_first_chance": 0.5, "consistent": True}
GROWN = (("commit", 2), ("commit", 3))


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
            "a star moves, and its topic loses the record",
            KILLED,
            changes=((4, "retain"),),
            aims=GROWN[:1],
            lanes=1,
            tick_chance=0,
        ),
        kind="topics",
    )
