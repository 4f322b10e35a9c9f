"""A producer sends changes of one row to two partitions: one of them counts, and the other's changes are dead letters."""

from collections.abc import Iterable
from typing import Any

import pytest

import processor.plan.row_image as row_image
import processor.rounds.write_stage as write_stage
import statestore.row_writes as row_writes
from processor.records.record import Change
from processor.steps.dedupe import NetChange, net_change
from statestore.store import AbsentOrBelow
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.stray_changes import OVERRIDES, StraySimulation
from tests.simulator.without.switch import Switch, always, replacing

SEEDS = share(20)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


def run(seed: int, **more: Any) -> Simulation:
    overrides = {**OVERRIDES, **more.pop("overrides", {})}
    return simulate(seed, simulation_class=StraySimulation, overrides=overrides, **more)


@pytest.mark.parametrize("overrides", [{}, HARD], ids=["plain", "hard"])
def test_every_row_takes_the_changes_of_one_partition_and_no_other_is_lost(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides=overrides) for seed in range(max(1, SEEDS // 2))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["strays"] for run in runs) >= at_least(SEEDS / 4)


def _dedupe_by_key_alone(changes: Iterable[Change]) -> list[NetChange]:
    by_key: dict[Any, list[Change]] = {}
    for change in changes:
        by_key.setdefault((change.entity, change.key), []).append(change)
    return [net_change(of_key) for of_key in by_key.values()]


NO_CONDITION = replacing((row_writes, "_older", lambda _: lambda version: AbsentOrBelow("_v", version)))
NO_REFUSAL = replacing((row_image, "are_comparable", always(True)))
NO_PARTITIONS = replacing((write_stage, "dedupe", lambda _: _dedupe_by_key_alone))


@pytest.mark.parametrize(
    ("seed", "switch"),
    [(12, NO_CONDITION), (1, NO_REFUSAL), (16, NO_PARTITIONS)],
    ids=[
        "the write is conditional on the partition",
        "a refused change is a dead letter",
        "a net change has one partition",
    ],
)
def test_a_history_ends_wrong_without_the_protection(seed: int, switch: Switch) -> None:
    assert run(seed).problem is None
    assert run(seed, switch=switch).problem is not None
