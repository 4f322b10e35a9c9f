"""The protections of ledger groups and merged trees (rules 7 and 8): each product of a root keeps what belongs to it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.simulator.mixed import OVERRIDES as MIXED
from tests.simulator.protection import Protection, protection
from tests.simulator.without import groups
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import scripted, wide

EDITS = {"shape": "edits"}


def group_protections() -> Iterator[Protection]:
    """What products of one root share, and what each keeps."""
    yield _scripted(
        "a reservation is conditional on the turn of the group",
        groups.condition_on_one_entry,
        "two products change, and then one of them",
        max_faults=1,
        fault_chance=1,
        fault_target="write Key(pk='LEDGER#user#0'",
        fault_weights={"task lost": 1},
        zombie_chance=1,
        zombie_turn_chance=0,
        checkpoint_loss_chance=1,
        batch_records=2,
    )
    yield _scripted(
        "each product of a group has its own mark",
        groups.one_mark_for_a_group,
        "a message of a second product is lost",
        fault_chance=1,
        fault_target="commit",
        fault_weights={"not delivered": 1},
    )
    yield replace(
        _scripted(
            "one lane publishes all products of a root", groups.lanes_by_product, "two products of two users", lanes=2
        ),
        saves_requests=True,
    )
    yield protection(
        "a group has no row only by evidence",
        "an index that does not show the first row of a group yet",
        groups.groups_by_the_index,
        {"shape": "totals", "lag": "short"},
    )
    yield replace(
        protection(
            "a publication looks at the groups that had a document",
            "groups without a row, which no row names",
            groups.groups_of_rows_alone,
            wide(0) | MIXED | {"shape": "drawn grouped 4"},
        ),
        kind="drawn edits",
    )
    yield _scripted(
        "a ledger number is never used again", groups.number_used_again, "a product comes after another one that went"
    )
    yield _scripted(
        "a node knows the columns that each product reads",
        groups.first_columns_of_a_node,
        "a star changes that two products show",
    )


def _scripted(name: str, switch: Switch, script: str, **conditions: Any) -> Protection:
    """A protection against the end of this script."""
    return replace(protection(name, script, switch, scripted(script, EDITS, **conditions)), kind="scripted edits")
