"""The protections of documents that wait at gates (processor/engine/protocol)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulator.mixed import OVERRIDES as MIXED
from tests.simulator.protection import Protection, protection
from tests.simulator.without import gates
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import CALM, CRASHES

PAGES = {**CALM, "fan_out_page": 1, "events": 20, "many_moves": True}
KILLED = {**CALM, "late_events": False, "truncate_chance": 0}
SLOW = {**CALM, "tick_chance": 0.2, "late_events": False, "zombie_chance": 0}
ZOMBIE_WALKS = {**MIXED, "shape": "edits"}
"""The recorded history is of a seed of the kind `mixed edits` (`tests.simulator.seeds`), with all its conditions."""


def gate_protections() -> Iterator[Protection]:
    """Each with the kind of its runs."""

    def of_gates(name: str, against: str, switch: Switch, overrides: Mapping[str, Any]) -> Protection:
        return replace(protection(name, against, switch, overrides), kind="gates")

    def whole(name: str, against: str, switch: Switch, overrides: Mapping[str, Any]) -> Protection:
        return replace(protection(name, against, switch, overrides), kind="source transactions")

    def repeated(name: str, against: str, switch: Switch, **more: Any) -> Protection:
        return replace(protection(name, against, switch, {**KILLED, **more}), kind="repeated transactions")

    s = gates
    yield of_gates("a root that waits is durable", "a crash between hold and release", s.not_durable, CRASHES)
    yield of_gates(
        "a release is noted before it", "a crash, and a message too soon after it", s.distance_in_memory, CRASHES
    )
    yield replace(
        protection(
            "a run looks again for roots that wait, once it has the walks",
            "a zombie whose walk passes a root during the start",
            s.zombies_roots_left,
            ZOMBIE_WALKS,
        ),
        kind="mixed edits",
    )
    yield whole("an end alone completes no transaction", "an end before the records", s.by_the_end, CALM)
    yield whole("each table of a transaction counts", "topics that arrive apart", s.by_one_topic, CALM)
    yield whole(
        "a dead letter is a record of its transaction",
        "a transaction that seems open for ever",
        s.without_letters,
        {**SLOW, "broken_chance": 0.3},
    )
    yield whole("a change does not begin `at_most` again", "a root that never rests", s.at_most_begins_again, SLOW)
    yield whole(
        "a root waits for all transactions that are open when it changes",
        "a change that joins a row of another transaction",
        s.only_own_transactions,
        CALM,
    )
    yield whole("a fan-out holds its product", "roots that a later page finds", s.fan_outs_found, PAGES)
    yield whole(
        "a change after a start begins a new wait",
        "the age of a message that is out",
        s.waits_go_on,
        {**CRASHES, "late_events": False},
    )
    yield whole(
        "a run reads what its topics had before it releases a root",
        "rows of a batch that failed",
        s.ready_at_once,
        {**CRASHES, "checkpoint_loss_chance": 1.0},
    )
    yield repeated("copies are known by the end before them", "a connector that sends again", s.ended_ones_are_new)
    yield repeated(
        "copies are known by their numbers", "a connector that is killed within a transaction", s.numbers_rise
    )
    yield repeated("copies hold until the newest end comes again", "copies that come later", s.sent_at_once)
    yield repeated("copies hold until the topics are read", "topics that are read apart", s.read_at_once)
