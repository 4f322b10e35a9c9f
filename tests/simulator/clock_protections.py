"""The protections of products with a clock (processor/engine/protocol/ticks.py)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import ticks
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import CRASHES

SKEWED = {"max_clock_skew": 30}
KILLED = {"zombie_chance": 0, "aims": (("commit", 3), ("write Key(pk='LEDGER", 4))}


def clock_protections() -> Iterator[Protection]:
    """Each over the products that showed it most often."""

    def of_clock(name: str, against: str, switch: Switch, shape: int, **overrides: Any) -> Protection:
        conditions: Mapping[str, Any] = {**CRASHES, "late_events": False, "shape": f"clocked {shape}", **overrides}
        return replace(protection(name, against, switch, conditions), kind="clock")

    s = ticks
    yield of_clock(
        "a due item is durable before its document", "a crash after the message", s.written_at_last, 45, **KILLED
    )
    yield of_clock(
        "a due item stays until its root is published", "a crash in the round of a tick", s.deleted_first, 36
    )
    yield of_clock("a start reads the buckets that are over", "ticks while no job ran", s.read_from_now, 0)
    yield of_clock("the driver hears of new ticks", "a bucket that is read already", s.unnoticed, 15)
    yield of_clock("a tick that is over counts no more", "a second tick of a root", s.over_counts, 4)
    yield of_clock("the clock never goes back", "a machine whose clock is behind", s.goes_back, 59, **SKEWED)
    yield of_clock("a tick knows when clocks go back", "an hour that comes twice", s.unbroken, 77)
