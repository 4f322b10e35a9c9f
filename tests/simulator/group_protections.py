"""The protections of ledger groups and merged trees (rules 7 and 8), over random sets of products that operators edit."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import groups
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import ZOMBIES

SETS = {"shape": "edits"}
CALM = {**SETS, "events": 25, "max_faults": 0, "zombie_chance": 0, "lag": "none"}


def group_protections() -> Iterator[Protection]:
    """What products of one root share, and what each keeps."""
    yield _of_sets(
        "a reservation is conditional on the turn of the whole group",
        "two publishers of different products of a root",
        groups.condition_on_one_entry,
        {**SETS, **ZOMBIES},
    )
    yield _of_sets(
        "each product of a group has its own mark",
        "a message that was not sent, next to one that was",
        groups.one_mark_for_a_group,
        {**SETS, "max_faults": 5, "fault_chance": 0.05, "task_retries": 0},
    )
    yield replace(
        _of_sets(
            "one lane publishes all products of a root",
            "two tasks that write one ledger item",
            groups.lanes_by_product,
            {**CALM, "lanes": 2, "interleaving_chance": 0.5},
        ),
        saves_requests=True,
    )
    yield _of_sets(
        "a ledger number is never used again",
        "an equal document of a product that is gone",
        groups.number_used_again,
        CALM,
    )
    yield _of_sets(
        "a node knows the columns that each product reads",
        "a change of a column that only some products read",
        groups.first_columns_of_a_node,
        CALM,
    )


def _of_sets(name: str, against: str, switch: Switch, overrides: Mapping[str, Any]) -> Protection:
    return replace(protection(name, against, switch, overrides), kind="product sets")
