"""The protections of registry edits (rule 10), with operators who edit the registry during the runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import indexed_columns, publisher, settling, walks
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import scripted

EDITS = {"shape": "edits"}
CALM = {**EDITS, "events": 25, "max_faults": 0, "zombie_chance": 0, "lag": "long", "settle_first_chance": 0.9}


def edit_protections() -> Iterator[Protection]:
    """Fills, publications, and the steps of the job in the registry."""
    yield _edited("a product waits until its slots are full", "rows without the slot", walks.read_before_full, CALM)
    yield _edited("a fill asks the indexes for every row", "an index that is late", walks.not_probed, CALM)
    yield _edited(
        "a fill asks again for rows that it did not see", "an index that is late", walks.unseen_forgotten, CALM
    )
    yield _edited(
        "a fill shows in the indexes what products read there",
        "rows without a column that a product begins to read",
        indexed_columns.columns_not_filled,
        CALM,
    )
    yield _edited(
        "a write shows in the indexes what a waiting product reads there",
        "rows that the job writes behind the fill",
        indexed_columns.columns_of_live_products,
        CALM,
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
    yield _scripted(
        "a fill writes under the version seen",
        walks.fill_overwrites,
        "a fill wakes after a newer change",
        fault_target="write Key(pk='TABLE#star",
        fault_weights={"task lost": 1},
    )
    yield _scripted(
        "a publication reserves under the turn seen",
        walks.publication_overwrites,
        "a publication wakes after a newer document",
        fault_target="write Key(pk='LEDGER#user#0'",
        fault_weights={"task lost": 1},
    )
    yield _scripted(
        "a round has one version of the registry",
        walks.version_inside_a_round,
        "a product goes during its first batch",
    )
    yield _scripted(
        "a step waits until the run has applied the version before",
        walks.steps_at_once,
        "a step wakes during a move",
        fault_target="registry advances",
        fault_weights={"crash before": 1},
    )
    yield _scripted(
        "a deleted row stays in the indexes during a fill",
        indexed_columns.left_during_a_fill,
        "a star is deleted while its slot moves",
        max_faults=0,
        lag="long",
    )
    yield _scripted(
        "settling asks only the slots that an entity has",
        settling.slots_that_went,
        "a slot goes while a change is open",
        max_faults=0,
        lag="long",
    )
    yield _scripted(
        "another topic of a product gets the tombstones too",
        walks.any_topic_of_tombstone,
        "a user goes while the product has another topic",
        max_faults=0,
    )
    yield _scripted(
        "the fence, when a slot goes",
        publisher.no_fence,
        "a publication reads by a freed slot",
        fault_target="query GSI_",
        fault_weights={"task lost": 1},
    )


def _edited(name: str, against: str, switch: Switch, overrides: Mapping[str, Any]) -> Protection:
    return replace(protection(name, against, switch, overrides), kind="edits")


def _scripted(name: str, switch: Switch, script: str, **conditions: Any) -> Protection:
    """A protection against the end of this script."""
    zombies = {**EDITS, "task_retries": 1, "fault_chance": 1, "zombie_chance": 1, "zombie_turn_chance": 0}
    return replace(protection(name, script, switch, scripted(script, zombies, **conditions)), kind="scripted edits")
