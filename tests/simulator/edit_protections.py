"""The protections of registry edits (rule 10), with operators who edit the registry during the runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import walks
from tests.simulator.without.switch import Switch
from tests.simulator.worlds import ZOMBIES

EDITS = {"shape": "edits"}
CALM = {**EDITS, "events": 25, "max_faults": 0, "zombie_chance": 0, "lag": "long", "settle_first_chance": 0.9}
OLD_TASKS = {**ZOMBIES, **EDITS, "checkpoint_loss_chance": 1.0}


def edit_protections() -> Iterator[Protection]:
    """Fills, publications, and the steps of the job in the registry."""
    yield _edited("a product waits until its slots are full", "rows without the slot", walks.read_before_full, CALM)
    yield _edited("a fill asks the indexes for every row", "an index that is late", walks.not_verified, CALM)
    yield _edited(
        "a fill asks again for rows that it did not see", "an index that is late", walks.unseen_forgotten, CALM
    )
    yield _edited(
        "a fill ends W after its evidence",
        "replicas that differ",
        walks.no_wait_after_evidence,
        {**CALM, "lag": "mid", "replicas": 2},
    )
    yield _edited(
        "a fill writes under the version seen", "a change that the fill overtakes", walks.unconditional_fill, OLD_TASKS
    )
    yield _edited(
        "a refused write fills the row",
        "a task of an older plan that wrote the row first",
        walks.not_filled_after_refusal,
        OLD_TASKS,
    )
    yield _edited(
        "the layout of a row only rises",
        "a task of an older plan that fills the row again",
        walks.older_plans_fill_too,
        OLD_TASKS,
    )
    yield _edited("the goal of a fill shrinks with the plan", "changes that opened nothing", walks.goal_stays, CALM)
    yield _edited(
        "a run writes all walks once", "a zombie that ends a walk of its own plan", walks.not_claimed, OLD_TASKS
    )
    yield _edited("a publication reads the ledger too", "documents of rows that are gone", walks.rows_only, CALM)
    yield _edited(
        "an equal document goes out again in a new version",
        "documents that show an old version",
        walks.any_version_of_document,
        CALM,
    )
    yield _edited(
        "a resumed product begins its walk again", "roots that a pause dropped", walks.pause_keeps_the_walk, CALM
    )
    yield _edited(
        "only the job of the lease takes steps", "a zombie that takes steps", walks.zombies_take_steps, OLD_TASKS
    )


def _edited(name: str, against: str, switch: Switch, overrides: Mapping[str, Any]) -> Protection:
    return replace(protection(name, against, switch, overrides), kind="edits")
