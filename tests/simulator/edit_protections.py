"""The protections of registry edits (rule 10), with operators who edit the registry during the runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import walks
from tests.simulator.without.switch import Switch

EDITS = {"shape": "edits"}
CALM = {**EDITS, "events": 25, "max_faults": 0, "zombie_chance": 0, "lag": "long", "settle_first_chance": 0.9}


def edit_protections() -> Iterator[Protection]:
    """Fills, publications, and the steps of the job in the registry."""
    yield _edited("a product waits until its slots are full", "rows without the slot", walks.read_before_full, CALM)
    yield _edited("a fill asks the indexes for every row", "an index that is late", walks.not_verified, CALM)
    yield _edited(
        "a fill asks again for rows that it did not see", "an index that is late", walks.unseen_forgotten, CALM
    )
    yield _edited("a publication reads the ledger too", "documents of rows that are gone", walks.rows_only, CALM)
    yield _edited(
        "a publication reads tombstones too",
        "a tombstone that nobody acknowledged",
        walks.documents_only,
        {
            **EDITS,
            "zombie_chance": 1.0,
            "many_moves": True,
            "max_faults": 5,
            "fault_chance": 0.05,
            "checkpoint_loss_chance": 1.0,
            "lag": "long",
        },
    )
    yield _edited(
        "an equal document goes out again in a new version",
        "documents that show an old version",
        walks.any_version_of_document,
        CALM,
    )
    yield _edited(
        "a resumed product begins its walk again", "roots that a pause dropped", walks.pause_keeps_the_walk, CALM
    )


def _edited(name: str, against: str, switch: Switch, overrides: Mapping[str, Any]) -> Protection:
    return replace(protection(name, against, switch, overrides), kind="edits")
